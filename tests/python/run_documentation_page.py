"""Runs the Python code of a documentation page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the blocks of Python in order. A block of text after a block of Python is its expected output; a block without one may
    print anything. The code is written to files in ``folder``."""
    monkeypatch.setitem(sys.modules, "__page__", type(sys)("__page__"))
    scope = vars(sys.modules["__page__"])
    text = page.read_text()
    printed = ""
    for block in BLOCK.finditer(text):
        kind, code = block.groups()
        line = text[: block.start()].count("\n") + 1
        if kind == "text":
            assert code.strip() == printed.strip(), f"{page.name}:{line}"
            continue
        # Decorators of scripts read their own source, so each block is a file with the line numbers of the page.
        file = folder / f"{page.stem}_{line}.py"
        file.write_text("\n" * line + code)
        scope["__file__"] = str(file)
        exec(compile(file.read_text(), str(file), "exec"), scope)
        printed = capsys.readouterr().out
