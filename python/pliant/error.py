"""The exceptions of Pliant. All derive from :class:`PliantError`, and most also from the built-in
exception for the same kind of error."""

from __future__ import annotations

__all__ = [
    "AssertionFailed",
    "BoundsError",
    "CallError",
    "CompileError",
    "DTypeError",
    "DivisionError",
    "ExecutableError",
    "InternalError",
    "PliantError",
    "ScriptError",
    "ShapeError",
    "TVMError",
    "TimeLimitError",
    "UnsupportedError",
    "VMError",
]


class PliantError(Exception):
    """The base of all exceptions of Pliant."""


class ScriptError(PliantError, SyntaxError):
    """A script does not parse or is not valid. ``filename``, ``lineno``, ``offset`` and ``text``
    are the source location.

    ``rendered`` contains the full report, with the source line, a caret and advice.
    """

    rendered: str = ""


class CompileError(PliantError):
    """A module does not compile, or the operands of an operator cannot be valid."""


class UnsupportedError(PliantError, NotImplementedError):
    """Pliant does not support a feature. The message names the feature."""


class VMError(PliantError, RuntimeError):
    """A run-time error."""


class TimeLimitError(VMError, TimeoutError):
    """A run exceeded the ``timeout`` of its call and was stopped. The message names the function
    and the limit in seconds. If known, it also names the source lines or nodes that were running.
    Ctrl-C raises ``KeyboardInterrupt`` instead."""


class AssertionFailed(VMError, AssertionError):
    """An assertion of a program failed."""


class DivisionError(VMError, ZeroDivisionError):
    """A program divides an integer by zero."""


class CallError(PliantError, TypeError):
    """A function was called with the wrong number of arguments, or with a value of the wrong
    kind."""


class ExecutableError(PliantError, ValueError):
    """A saved executable is damaged, invalid or written by another version."""


class ShapeError(PliantError, ValueError):
    """A value has the wrong shape: a wrong rank, a dim that disagrees with another one, or a size
    that overflows."""


class BoundsError(ShapeError, IndexError):
    """A program accesses an index that is out of bounds."""


class DTypeError(PliantError, TypeError):
    """A value has the wrong data type."""


class InternalError(PliantError):
    """A bug in Pliant."""


TVMError = PliantError
