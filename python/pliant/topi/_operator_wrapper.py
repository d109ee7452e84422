"""Operators of the library as functions on ``te`` tensors. They build the same tensor expressions
to which calls of the operators are lowered."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

from pliant import _core

_relax = _core.relax


class TeOperator:
    """An operator that is applied to ``te`` tensors. Its signature and documentation are those of
    the operator in ``relax.op``."""

    def __init__(self, op: Any) -> None:
        self._op = op
        self.__name__ = op.__name__
        self.__qualname__ = f"topi.{op.__qualname__}"
        self.__doc__ = op.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the computed tensor, or a list of tensors if the operator returns a tuple."""
        return _core.te_operator(self._op, *args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._op)

    def __repr__(self) -> str:
        return f"<{self.__qualname__}>"


def names(prefix: str = "") -> list[str]:
    """Returns the operators that have a tensor expression and whose names start with the prefix,
    without the prefix."""
    start = f"relax.{prefix}"
    found = (n for n in _relax.op_names() if n.startswith(start))
    return sorted({n[len(start) :] for n in found if _core.has_te(_relax.get_op(n))})


def find(path: str) -> Any:
    """Returns the operator or the group of operators with this name.

    Raises ``AttributeError`` if there is none, or if it has no tensor expression.
    """
    try:
        op = _relax.get_op(path)
    except ValueError:
        if not names(path + "."):
            raise AttributeError(f"pliant.topi has no '{path}': no operator is called 'relax.{path}'") from None
        return Group(path)
    if not _core.has_te(op):
        raise AttributeError(f"pliant.topi has no '{path}': relax.{path} cannot be applied to tensor expressions")
    return TeOperator(op)


def accumulator(dtype: str) -> str:
    """Returns the data type for sums of elements of type ``dtype``: float32 for 16-bit floats,
    which would lose too much precision, otherwise ``dtype`` itself."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def axis_of(axis: int, ndim: int) -> int:
    """Converts an axis that may be negative to a non-negative one.

    Raises ``ValueError`` if there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for a tensor of {ndim} dims")
    return axis % ndim


class Group(ModuleType):
    """A group of operators, such as ``topi.image``."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"pliant.topi.{prefix}", f"The operators under ``relax.{prefix}`` over ``te`` tensors.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return find(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        return sorted({n.split(".")[0] for n in names(self._prefix + ".")})


def names_of_topi(name: str) -> Any:
    """Looks up a name of a TVM-compatible submodule, such as ``topi.math``. These submodules have
    all names of ``topi``.

    Raises ``AttributeError`` if ``topi`` has no such name.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("pliant.topi"), name)


__all__ = ["Group", "TeOperator", "axis_of", "find", "names", "names_of_topi"]
