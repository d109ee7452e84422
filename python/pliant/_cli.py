"""The console script ``pliant``: the Rust command line, in the wheel."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Runs the command line with ``sys.argv`` and returns its exit status."""
    from pliant import _core

    # Python would only note Ctrl-C and never get to look at it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Runtimes that a model is compared with are those of this Python.
    os.environ.setdefault("PLIANT_PYTHON", sys.executable)
    return _core.cli_main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
