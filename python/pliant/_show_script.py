"""Prints scripts on a terminal, with colours."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from pliant import _core


def show(text: str, style: str | None = None, file: TextIO | None = None) -> None:
    """Prints a script. Colours are used if the output is a terminal, ``NO_COLOR`` is not set and
    ``style`` is not ``"none"``."""
    out = file or sys.stdout
    colour = style != "none" and "NO_COLOR" not in os.environ and out.isatty()
    print(_core.highlight_script(text) if colour else text, file=out)
