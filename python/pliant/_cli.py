"""The console script ``pliant``: the entry point of the wheel, which runs the Rust command line."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Runs the command line with ``sys.argv`` and returns its exit status."""
    from pliant import _core

    # Python's handler only records Ctrl-C and would never run, because control stays in Rust.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The command line starts this interpreter to run the runtimes that it compares a model with.
    os.environ.setdefault("PLIANT_PYTHON", sys.executable)
    return _core.cli_main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
