"""Tensor expressions: each stage is a function from the indices of an element to its value.

>>> n = te.size_var("n")
>>> A = te.placeholder((n, 4), name="A")
>>> B = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="B")
>>> te.create_prim_func([A, B])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from pliant import _core
from pliant._core import (
    ComputeOp,
    ExternOp,
    IterVar,
    Operation,
    PlaceholderOp,
    PrimExpr,
    PrimFunc,
    ScanOp,
    Tensor,
)
from pliant.tir.op import *  # noqa: F403
from pliant.tir.op import __all__ as _op_names
from pliant.tir.stmt import Buffer, Evaluate, Stmt, decl_buffer

if TYPE_CHECKING:
    from pliant._core import Range, TupleReduction, Var
    from pliant.tir.op import PrimExprLike

Axis: TypeAlias = "IterVar | Sequence[IterVar]"

__all__ = [
    "ComputeOp",
    "ExternOp",
    "IterVar",
    "Operation",
    "PlaceholderOp",
    "PrimExpr",
    "ScanOp",
    "Tensor",
    "comm_reducer",
    "compute",
    "create_prim_func",
    "extern",
    "extern_primfunc",
    "max",
    "min",
    "placeholder",
    "prod",
    "reduce_axis",
    "scan",
    "size_var",
    "sum",
    "tag_scope",
    "var",
    *_op_names,
]


def var(name: str = "tindex", dtype: str = "int64") -> Var:
    """Creates a variable. Sizes and indices are int64."""
    return _core.Var(name, dtype)


def size_var(name: str = "size", dtype: str = "int64") -> Var:
    """Creates a size variable, which is not negative."""
    return _core.SizeVar(name, dtype)


def placeholder(
    shape: Sequence[PrimExprLike] | PrimExprLike, dtype: str = "float32", name: str = "placeholder"
) -> Tensor:
    """Creates a placeholder for a tensor that the caller passes.

    Raises ``ShapeError`` for an invalid size, and ``DTypeError`` for an unknown data type.
    """
    return _core.te_placeholder(shape, dtype, name)


def compute(
    shape: Sequence[PrimExprLike] | PrimExprLike,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: dict[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """Creates a tensor with the given shape whose element at ``idx`` is ``fcompute(*idx)``.

    If ``fcompute`` returns a tuple or list of values, or a reduction of several values
    (:func:`comm_reducer`), the result is a list of tensors. The axes have the names
    ``varargs_names``, or those of the parameters of ``fcompute``. ``tag`` and ``attrs`` are
    ignored.

    Raises ``ValueError`` if ``fcompute`` takes another number of indices than the shape has dims,
    and ``ShapeError`` for an invalid size.
    """
    return _core.te_compute(shape, fcompute, name, list(varargs_names) if varargs_names else None)


def tag_scope(tag: str) -> AbstractContextManager[None]:
    """Does nothing. Programs written for TVM use this context manager to tag their stages."""
    return nullcontext()


def reduce_axis(dom: Range | tuple[PrimExprLike, PrimExprLike], name: str = "rv") -> IterVar:
    """Creates an axis of a reduction over the range ``dom``: a ``Range`` or a pair
    ``(begin, end)``."""
    return _core.te_reduce_axis(dom, name)


def sum(expr: PrimExprLike, axis: Axis, where: Any = None, init: Any = None) -> PrimExpr:
    """The sum over the axes, or 0 if they are empty. Only elements for which ``where`` holds are
    added. ``init`` is the initial value.

    Raises ``TypeError`` for bools.
    """
    return _core.te_reduce("sum", expr, axis, where, init)


def prod(expr: PrimExprLike, axis: Axis, where: Any = None, init: Any = None) -> PrimExpr:
    """The product over the axes, or 1 if they are empty. Only elements for which ``where`` holds
    are multiplied. ``init`` is the initial value.

    Raises ``TypeError`` for bools.
    """
    return _core.te_reduce("prod", expr, axis, where, init)


def max(expr: PrimExprLike, axis: Any, where: Any = None, init: Any = None) -> PrimExpr:
    """The maximum of ``expr`` over the axes. ``max(a, b)`` of two scalars is the larger one. Only elements for which ``where``
    holds are reduced. ``init`` is the initial value."""
    if _is_axis(axis):
        return _core.te_reduce("max", expr, axis, where, init)
    return _core.tir_binary("max", expr, axis)


def min(expr: PrimExprLike, axis: Any, where: Any = None, init: Any = None) -> PrimExpr:
    """The minimum of ``expr`` over the axes. ``min(a, b)`` of two scalars is the smaller one. Only elements for which ``where``
    holds are reduced. ``init`` is the initial value."""
    if _is_axis(axis):
        return _core.te_reduce("min", expr, axis, where, init)
    return _core.tir_binary("min", expr, axis)


def _is_axis(axis: object) -> bool:
    if isinstance(axis, list | tuple):
        return True
    return isinstance(axis, IterVar) and axis.kind == "R"


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Creates a reducer from a commutative and associative function:
    ``reducer(expr, axis, where, init)`` is a reduction.

    For one value, ``fcombine(x, y)`` combines two values, and ``fidentity(dtype)`` returns the
    neutral value. For several values at once, ``fcombine`` takes two tuples and returns one, and
    ``fidentity(*dtypes)`` returns the neutral values.

    >>> argmax = te.comm_reducer(
    ...     lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
    ...     lambda i, v: (tir.const(-1, i), te.min_value(v)), name="argmax")
    >>> index, value = te.compute((n,), lambda i: argmax((k.var, A[i, k]), axis=k))
    """

    def reducer(expr: Any, axis: Axis, where: Any = None, init: Any = None) -> PrimExpr | TupleReduction:
        if not isinstance(expr, list | tuple):
            return _core.te_reduce_with(fcombine, fidentity(_core.tir_const(expr).dtype), expr, axis, where, init)
        identity = fidentity(*(_core.tir_const(e).dtype for e in expr))
        return _core.te_reduce_several(fcombine, identity, expr, axis, where, init)

    reducer.__name__ = name
    return reducer


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Any = None,
    name: str = "scan",
    tag: str = "",
    attrs: dict[str, object] | None = None,
) -> Any:
    """Creates a scan and returns its state after all steps, or a list for several states. The first
    dim of a state counts the steps.

    The first rows are those of ``init``. Each later row is the row of ``update`` at the same index.
    ``update`` reads earlier rows through ``state_placeholder``. ``inputs``, ``tag`` and ``attrs``
    are ignored.

    >>> s = te.placeholder((n, 4))
    >>> first = te.compute((1, 4), lambda _, i: X[0, i])
    >>> step = te.compute((n, 4), lambda t, i: s[t - 1, i] + X[t, i])
    >>> sums = te.scan(first, step, s)

    Raises ``CompileError`` if the shapes or data types do not match.
    """
    groups = [[g] if isinstance(g, Tensor) else list(g) for g in (init, update, state_placeholder)]
    states = _core.te_scan(name, *groups)
    return states[0] if isinstance(state_placeholder, Tensor) else states


def extern(
    shape: Any,
    inputs: Sequence[Tensor],
    fcompute: Callable[[list[Buffer], list[Buffer]], Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: dict[str, object] | None = None,
) -> Any:
    """Creates tensors that statements or a packed function write. ``fcompute(ins, outs)`` gets
    buffers and returns the statement (see :mod:`pliant.tir.ir_builder`) or the call
    (:func:`pliant.tir.call_packed`).

    ``shape`` is one shape, or a list of shapes for several outputs. By default, the outputs have the data type of the inputs.
    ``tag`` and ``attrs`` are ignored.

    >>> te.extern((n,), [A], lambda ins, outs: tir.call_packed("my.sort", ins[0], outs[0]), dtype="float32")

    Raises ``ValueError`` if ``dtype`` is missing or does not match the shapes, ``TypeError`` if
    ``fcompute`` returns something else, and ``NotImplementedError`` for ``in_buffers`` and
    ``out_buffers``.
    """
    one = not shape or not isinstance(shape[0], list | tuple)
    shapes = [shape] if one else list(shape)
    if dtype is None:
        found = {t.dtype for t in inputs}
        if len(found) != 1:
            raise ValueError(f"te.extern '{name}': pass dtype, because the inputs do not have exactly one data type")
        dtype = found.pop()
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    if len(dtypes) != len(shapes):
        raise ValueError(f"te.extern '{name}': the number of data types must be that of shapes, {len(shapes)}, got {len(dtypes)}")
    if in_buffers is not None or out_buffers is not None:
        raise NotImplementedError(
            "te.extern: the arguments in_buffers and out_buffers are not supported; fcompute receives the buffers of the tensors"
        )
    label = [name if len(shapes) == 1 else f"{name}_{k}" for k in range(len(shapes))]
    outs = [decl_buffer(s, d, n) for s, d, n in zip(shapes, dtypes, label, strict=True)]
    body = fcompute([Buffer(t) for t in inputs], outs)
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise TypeError(f"te.extern '{name}': the function returned {type(body).__name__}, not a statement or a call")
    result = _core.te_extern(name, [b.tensor for b in outs], body)
    return result[0] if one else result


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc) -> Any:
    """Applies a loop function to tensors and returns its output, or a list of several outputs. The first buffers of the function
    are its inputs, and the others are its outputs.

    The sizes of the function are bound to those of the inputs. The function becomes one opaque
    stage, which is not scheduled. Raises ``ValueError`` if no buffer is left for an output, and
    ``TypeError`` if an input has another rank or data type than its buffer.
    """
    result = _core.te_extern_primfunc(list(input_tensors), primfunc)
    return result[0] if len(result) == 1 else result


def create_prim_func(ops: Sequence[Tensor | PrimExpr], index_dtype_override: str | None = None) -> PrimFunc:
    """Creates the loop function that computes the stages among ``ops`` from the placeholders among ``ops``. Indices are int64;
    ``index_dtype_override`` is ignored.

    A size variable that is no dim of a buffer by itself, such as ``m`` in ``2 * m``, becomes an extra parameter. Raises
    ``CompileError`` if a stage reads a placeholder that is not among ``ops``.
    """
    return _core.te_create_prim_func(list(ops))
