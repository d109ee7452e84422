"""The exceptions of Pliant. All derive from :class:`PliantError`, and each also from the built-in that fits."""

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
    """A script does not parse or verify. ``filename``, ``lineno``, ``offset`` and ``text`` tell where.

    ``rendered`` holds the full report, with the source line, a caret and advice.
    """

    rendered: str = ""


class CompileError(PliantError):
    """A module does not compile, or an operator's operands cannot fit together."""


class UnsupportedError(PliantError, NotImplementedError):
    """Something that Pliant does not do, named."""


class VMError(PliantError, RuntimeError):
    """A run failed."""


class TimeLimitError(VMError, TimeoutError):
    """A run exceeded the ``timeout`` of its call and was stopped. The message names the function, the limit in seconds and, where
    known, the lines of the source or the nodes that were running. Ctrl-C raises ``KeyboardInterrupt`` instead."""


class AssertionFailed(VMError, AssertionError):
    """Something that a program asserts does not hold."""


class DivisionError(VMError, ZeroDivisionError):
    """A program divides an integer by zero."""


class CallError(PliantError, TypeError):
    """A function was called with the wrong number of arguments, or with a value that is no tensor where one is due."""


class ExecutableError(PliantError, ValueError):
    """A saved executable is damaged, foreign or not valid."""


class ShapeError(PliantError, ValueError):
    """A value's shape does not fit: wrong rank, a dim that disagrees, a size that overflows."""


class BoundsError(ShapeError, IndexError):
    """An index lies outside of what a program reads or writes."""


class DTypeError(PliantError, TypeError):
    """A value's data type does not fit."""


class InternalError(PliantError):
    """A bug in Pliant."""


TVMError = PliantError
