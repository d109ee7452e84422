"""Log messages of sessions, through Python's ``logging``, filtered by ONNX Runtime's severities.

Messages go to the logger ``pliant.onnxruntime``. A session shows messages from its own severity on
(``SessionOptions.log_severity_level``), or from the default severity (``set_default_logger_severity``), which is 2: warnings.
"""

from __future__ import annotations

import logging
import operator
from typing import SupportsIndex

__all__ = ["log", "set_default_logger_severity", "set_default_logger_verbosity"]

VERBOSE, INFO, WARNING, ERROR, FATAL = range(5)
_LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
_logger = logging.getLogger("pliant.onnxruntime")
_default_severity = WARNING


def set_default_logger_severity(severity: SupportsIndex) -> None:
    """Sets the lowest severity of messages that are shown: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    Raises ``RuntimeError`` for other numbers.
    """
    global _default_severity
    number = operator.index(severity)
    if not is_severity(number):
        raise RuntimeError("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal")
    _default_severity = number


def set_default_logger_verbosity(verbosity: SupportsIndex) -> None:
    """Accepted for compatibility; ignored, because all verbose messages have the same level."""
    operator.index(verbosity)


def is_severity(number: int) -> bool:
    """Whether the number is a severity."""
    return VERBOSE <= number <= FATAL


def log(severity: int, message: str, lowest: int = -1) -> None:
    """Logs a message unless its severity is below ``lowest``, or below the default if ``lowest`` is -1."""
    if severity >= (_default_severity if lowest < 0 else lowest):
        _logger.log(_LEVELS[severity], "%s", message)
