"""Tensor expressions: what an operator computes, as a function from output indices to a scalar.

>>> n = te.size_var("n")
>>> A = te.placeholder((n, 4), name="A")
>>> B = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="B")
>>> te.create_prim_func([A, B])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pliant import _core
from pliant._core import IterVar, Operation, PrimExpr, PrimFunc, Tensor
from pliant.tir.op import *  # noqa: F403
from pliant.tir.op import __all__ as _op_names

if TYPE_CHECKING:
    from pliant._core import Range, Var
    from pliant.tir.op import PrimExprLike

Axis: TypeAlias = "IterVar | Sequence[IterVar]"

__all__ = [
    "IterVar",
    "Operation",
    "PrimExpr",
    "Tensor",
    "comm_reducer",
    "compute",
    "create_prim_func",
    "max",
    "min",
    "placeholder",
    "prod",
    "reduce_axis",
    "size_var",
    "sum",
    "var",
    *(name for name in _op_names if name not in ("min", "max")),
]


def var(name: str = "tindex", dtype: str = "int64") -> Var:
    """A new variable. Sizes and indices are int64."""
    return _core.Var(name, dtype)


def size_var(name: str = "size", dtype: str = "int64") -> Var:
    """A new size: a variable that is not negative."""
    return _core.SizeVar(name, dtype)


def placeholder(
    shape: Sequence[PrimExprLike] | PrimExprLike, dtype: str = "float32", name: str = "placeholder"
) -> Tensor:
    """A tensor that the caller supplies."""
    return _core.te_placeholder(shape, dtype, name)


def compute(
    shape: Sequence[PrimExprLike] | PrimExprLike,
    fcompute: Callable[..., PrimExprLike],
    name: str = "compute",
    tag: str = "",
    attrs: dict[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor:
    """A tensor of that shape whose element at ``idx`` is ``fcompute(*idx)``.

    The axes are named after the parameters of ``fcompute``. ``tag`` and ``attrs`` are accepted and have no effect.
    """
    return _core.te_compute(shape, fcompute, name, list(varargs_names) if varargs_names else None)


def reduce_axis(dom: Range | tuple[PrimExprLike, PrimExprLike], name: str = "rv") -> IterVar:
    """An axis to reduce over the range ``dom``: a ``Range`` or ``(begin, end)``."""
    return _core.te_reduce_axis(dom, name)


def sum(expr: PrimExprLike, axis: Axis) -> PrimExpr:
    """The sum over the axes; 0 over none."""
    return _core.te_reduce("sum", expr, axis)


def prod(expr: PrimExprLike, axis: Axis) -> PrimExpr:
    """The product over the axes; 1 over none."""
    return _core.te_reduce("prod", expr, axis)


def max(expr: PrimExprLike, axis: Any) -> PrimExpr:  # type: ignore[no-redef]
    """The largest over the axes; with two scalars, the larger of them."""
    if _is_axis(axis):
        return _core.te_reduce("max", expr, axis)
    return _core.tir_binary("max", expr, axis)


def min(expr: PrimExprLike, axis: Any) -> PrimExpr:  # type: ignore[no-redef]
    """The smallest over the axes; with two scalars, the smaller of them."""
    if _is_axis(axis):
        return _core.te_reduce("min", expr, axis)
    return _core.tir_binary("min", expr, axis)


def _is_axis(axis: object) -> bool:
    if isinstance(axis, list | tuple):
        return True
    return isinstance(axis, IterVar) and axis.kind == "R"


def comm_reducer(
    fcombine: Callable[[PrimExpr, PrimExpr], PrimExprLike],
    fidentity: Callable[[str], PrimExprLike],
    name: str = "reduce",
) -> Callable[..., PrimExpr]:
    """A reduction with a commutative, associative function of two values.

    ``fidentity(dtype)`` is its neutral value.
    """

    def reducer(expr: PrimExpr, axis: Axis) -> PrimExpr:
        return _core.te_reduce_with(fcombine, fidentity(expr.dtype), expr, axis)

    reducer.__name__ = name
    return reducer


def create_prim_func(ops: Sequence[Tensor | PrimExpr]) -> PrimFunc:
    """The loop function that computes the stages among ``ops`` from the placeholders among them.

    Size variables that no buffer defines by itself become extra parameters.
    """
    return _core.te_create_prim_func(list(ops))
