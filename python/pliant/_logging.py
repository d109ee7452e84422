"""The logger ``pliant`` of Python's ``logging``, and the environment variable ``PLIANT_LOG``.

Compilations are logged with the level ``INFO``, and their phases with ``DEBUG``. ``PLIANT_LOG=debug`` prints the messages to standard
error, in the same way as a handler that the application adds.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from pliant.error import ArgumentValueError

if TYPE_CHECKING:
    from pliant._core import Executable

__all__ = ["log_compilation", "logger"]

_VARIABLE = "PLIANT_LOG"
_LEVELS = ("debug", "info", "warning", "error")


@lru_cache(maxsize=1)
def logger() -> logging.Logger:
    """Returns the logger ``pliant``. The first call adds the handler that ``PLIANT_LOG`` requests.

    Raises ``ArgumentValueError`` if the variable has an invalid value.
    """
    log = logging.getLogger("pliant")
    level = os.environ.get(_VARIABLE, "").lower()
    if not level:
        return log
    if level not in _LEVELS:
        raise ArgumentValueError(f"the environment variable {_VARIABLE} must be one of {', '.join(_LEVELS)}, not '{level}'")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False
    return log


def log_compilation(executable: Executable, seconds: float) -> None:
    """Logs a compilation that took ``seconds``, and the time of each phase."""
    log = logger()
    if not log.isEnabledFor(logging.INFO):
        return
    names = executable.function_names
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    log.info("compiled %s in %.3f s", shown, seconds)
    for line in executable.timing().splitlines():
        log.debug("%s", line)
