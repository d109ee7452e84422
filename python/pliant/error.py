"""The exceptions of Pliant. All derive from :class:`PliantError`, and most also from the built-in
exception for the same kind of error."""

from __future__ import annotations

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "AssertionFailed",
    "BoundsError",
    "CallError",
    "CancelledError",
    "CompileError",
    "DTypeError",
    "DiagnosticError",
    "DivisionError",
    "ExecutableError",
    "IndexRangeError",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "PliantError",
    "ScheduleError",
    "ScriptError",
    "ShapeError",
    "TVMError",
    "TimeLimitError",
    "UnknownNameError",
    "UnsupportedError",
    "VMError",
]


class PliantError(RuntimeError):
    """The base of all exceptions of Pliant. It is a ``RuntimeError``, as ``tvm.TVMError`` is."""


class ScriptError(SyntaxError, PliantError):
    """A script does not parse or is not valid. ``filename``, ``lineno``, ``offset`` and ``text``
    are the source location.

    ``rendered`` contains the full report, with the source line, a caret and advice.
    """

    rendered: str = ""


class CompileError(PliantError):
    """A module does not compile, a call of an operator has invalid operands, or a model file is
    invalid."""


class ScheduleError(PliantError, ValueError):
    """A primitive of a schedule cannot be applied. The message names the primitive, the function, and the loop or block."""


class UnsupportedError(PliantError, NotImplementedError):
    """Pliant does not support a feature, which the message names."""


class VMError(PliantError, RuntimeError):
    """A run failed. The subclasses are more specific."""


class TimeLimitError(VMError, TimeoutError):
    """A run exceeded the ``timeout`` of its call and was stopped. The message names the function
    and the limit in seconds and, if known, the source lines or nodes that were running. Ctrl-C
    raises ``KeyboardInterrupt`` instead."""


class CancelledError(VMError):
    """A run was stopped by the ``cancel`` token of its call. The message names the function and, if known, the source lines or nodes
    that were running."""


class AssertionFailed(VMError, AssertionError):
    """An assertion of a program failed."""


class DivisionError(VMError, ZeroDivisionError):
    """A program divided an integer by zero."""


class CallError(PliantError, TypeError):
    """A function was called with the wrong number of arguments, or with a value of the wrong
    kind."""


class ExecutableError(PliantError, ValueError):
    """A saved executable is damaged, invalid or written by another version."""


class ShapeError(PliantError, ValueError):
    """A value has the wrong shape: a wrong rank, a dim that disagrees with another one, or a size
    that overflows."""


class BoundsError(ShapeError, IndexError):
    """A program accessed an index that is out of bounds."""


class DTypeError(PliantError, TypeError, ValueError):
    """A value has the wrong data type."""


class ArgumentTypeError(PliantError, TypeError):
    """An argument has the wrong type."""


class ArgumentValueError(PliantError, ValueError):
    """An argument has an invalid value."""


class UnknownNameError(PliantError, KeyError):
    """A name is unknown, such as the name of a function."""


class IndexRangeError(PliantError, IndexError):
    """An index is out of range."""


class InternalError(PliantError):
    """A bug in Pliant. Please report it."""


# The names of these exceptions in TVM.
TVMError = PliantError
DiagnosticError = ScriptError
OpError = CompileError
OpNotImplemented = UnsupportedError
OpAttributeUnImplemented = UnsupportedError
OpAttributeInvalid = CompileError
OpAttributeRequired = CompileError
