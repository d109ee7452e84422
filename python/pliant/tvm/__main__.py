"""``python -m pliant.tvm script.py ARGUMENTS`` runs a script that imports ``tvm`` with Pliant.

``python -m pliant.tvm -m module ARGUMENTS`` runs a module.
"""

from __future__ import annotations

import os
import runpy
import sys

from pliant.tvm import install

USAGE = "usage: python -m pliant.tvm (SCRIPT | -m MODULE) [ARGUMENTS ...]"


def main() -> None:
    """Makes ``import tvm`` return Pliant and runs the script or module that the command line names."""
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    rest = arguments[1:] if is_module else arguments
    if not rest or rest[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if rest else 2)
    install()
    sys.argv = rest
    if is_module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")


if __name__ == "__main__":
    main()
