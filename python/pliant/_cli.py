"""The console script ``pliant``: the Rust command line, in the wheel."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the command line with ``sys.argv`` and returns its exit status."""
    from pliant import _core

    # Python would only note Ctrl-C and never get to look at it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.cli_main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
