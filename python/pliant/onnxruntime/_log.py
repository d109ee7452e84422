"""Log messages of sessions, through Python's ``logging`` or a callback, filtered by ONNX Runtime's severities.

Messages go to the logger ``pliant.onnxruntime``. A session shows messages from its own severity on
(``SessionOptions.log_severity_level``), or from the default severity (``set_default_logger_severity``), which is 2: warnings.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from typing import SupportsIndex

__all__ = ["log", "set_default_logger_callback", "set_default_logger_severity", "set_default_logger_verbosity"]

Callback = Callable[[int, str, str, str, str], object]
"""A function that takes a severity, a category, the name of a session or run, a code location and a message."""

VERBOSE, INFO, WARNING, ERROR, FATAL = range(5)
_LEVELS = [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
_logger = logging.getLogger("pliant.onnxruntime")
_default_severity = WARNING
_callback: Callback | None = None


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


def set_default_logger_callback(callback: Callback | None, severity: SupportsIndex = WARNING) -> None:
    """Passes messages to a function instead of ``logging``, and sets the default severity. ``None`` restores ``logging``.

    An exception of the function is logged. Raises ``RuntimeError`` for other objects and for numbers that are no severity.
    """
    global _callback
    if callback is not None and not callable(callback):
        raise RuntimeError(f"the callback must be callable or None, got {type(callback).__name__}")
    if callback is not None:
        set_default_logger_severity(severity)
    _callback = callback


def is_severity(number: int) -> bool:
    """Whether the number is a severity."""
    return VERBOSE <= number <= FATAL


def log(severity: int, message: str, lowest: int = -1, logid: str = "") -> None:
    """Logs a message of the session or run ``logid`` unless its severity is below ``lowest``, or below the default if ``lowest``
    is -1."""
    if severity < (_default_severity if lowest < 0 else lowest):
        return
    if _callback is None:
        _logger.log(_LEVELS[severity], "%s", f"{logid}: {message}" if logid else message)
        return
    try:
        _callback(severity, "pliant", logid, "pliant.onnxruntime", message)
    except Exception:
        _logger.exception("the callback of the logger failed")
