"""Creates calls of loop functions, packed functions and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core.relax import Expr, StructInfo

_relax = _core.relax


def _is_sizes(value: Any) -> bool:
    """Whether a value is a shape: a shape expression, or a sequence of sizes."""
    if isinstance(value, _relax.ShapeExpr):
        return True
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(v, int | _core.PrimExpr) for v in value)


def _from_shapes(shapes: Any, dtypes: Any) -> Any:
    """Returns the types of results that are given as shapes and data types, as in 2022. Other values are returned unchanged."""
    if isinstance(shapes, _relax.Tuple):
        shapes = list(shapes.fields)
    if _is_sizes(shapes):
        return _relax.TensorStructInfo(shapes, dtypes or "float32")
    if isinstance(shapes, list | tuple) and shapes and all(_is_sizes(shape) for shape in shapes):
        listed = list(dtypes) if isinstance(dtypes, list | tuple) else [dtypes or "float32"] * len(shapes)
        return [_relax.TensorStructInfo(shape, dtype) for shape, dtype in zip(shapes, listed, strict=True)]
    return shapes


def _result_types(what: str, name: str, types: Any, newer_name: str, newer: Any, dtype: Any = None) -> Any:
    """Returns the argument for result types, which newer versions of TVM call ``newer_name``. In 2022, it was a shape, and
    ``dtype`` the element type."""
    types = _from_shapes(types, dtype)
    if types is not None and newer is not None:
        raise TypeError(f"{what}: {name} and {newer_name} are two names of one argument; pass one of them")
    if types is None and newer is None:
        raise TypeError(f"{what}() is missing the argument '{name}' (or '{newer_name}'), the types of the results")
    return newer if types is None else types


def call_tir(
    gvar: Expr,
    args: Expr | Sequence[Expr],
    out_sinfo: StructInfo | Sequence[StructInfo] | None = None,
    tir_vars: Any = None,
    *,
    out_ty: StructInfo | Sequence[StructInfo] | None = None,
    dtype: Any = None,
) -> Expr:
    """Creates a call of a loop function that writes to new tensors with the types ``out_sinfo``, in newer versions of TVM
    ``out_ty``. For the name of a packed function, creates a :func:`call_dps_packed`. ``tir_vars`` is a shape with the values of additional size parameters. As in 2022, ``out_sinfo`` may also be a
    shape, or a list of shapes, and ``dtype`` the element type or a list of them.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    types = _result_types("call_tir", "out_sinfo", out_sinfo, "out_ty", out_ty, dtype)
    if tir_vars is None and isinstance(gvar, str | _relax.ExternFunc):
        return _relax.call_dps(True, gvar, args, types)
    return _relax.call_dps(False, gvar, args, types, tir_vars)


def call_dps_packed(
    func: str | Expr,
    args: Expr | Sequence[Expr],
    out_sinfo: StructInfo | Sequence[StructInfo] | None = None,
    *,
    out_ty: StructInfo | Sequence[StructInfo] | None = None,
    dtype: Any = None,
) -> Expr:
    """Creates a call of a packed function that writes to new tensors with the types
    ``out_sinfo``, in newer versions of TVM ``out_ty``. Shapes and ``dtype`` are as for :func:`call_tir`.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    types = _result_types("call_dps_packed", "out_sinfo", out_sinfo, "out_ty", out_ty, dtype)
    return _relax.call_dps(True, func, args, types)


def call_tir_inplace(
    gvar: Expr,
    args: Expr | Sequence[Expr],
    inplace_indices: int | Sequence[int],
    out_sinfo: StructInfo | Sequence[StructInfo] | None = None,
    tir_vars: Any = None,
    *,
    out_ty: StructInfo | Sequence[StructInfo] | None = None,
) -> Expr:
    """Creates a call of a loop function that writes results to its arguments. ``inplace_indices`` contains, for each result, the
    index of the argument that it overwrites, or -1 for a new tensor. The other arguments are those of :func:`call_tir`.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    types = _result_types("call_tir_inplace", "out_sinfo", out_sinfo, "out_ty", out_ty)
    call: Any = call_tir(gvar, args, types, tir_vars)
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    return _relax.Call(_relax.OpFunction.get("relax.call_tir_inplace"), call.args, {"inplace_indices": indices}, call.sinfo_args)


def call_tir_with_grad(
    gvar: Expr,
    args: Expr | Sequence[Expr],
    out_sinfo: StructInfo | Sequence[StructInfo] | None = None,
    te_grad_name: str = "",
    te_grad_kwargs: dict[str, Any] | None = None,
    tir_vars: Any = None,
    *,
    out_ty: StructInfo | Sequence[StructInfo] | None = None,
) -> Expr:
    """Creates a call of a loop function whose gradient is registered under the name ``te_grad_name``
    (:func:`pliant.relax.training.utils.register_te_gradient`). The pass ``Gradient`` calls the registered function with
    ``te_grad_kwargs`` as keyword arguments. The other arguments are those of :func:`call_tir`.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    types = _result_types("call_tir_with_grad", "out_sinfo", out_sinfo, "out_ty", out_ty)
    call: Any = call_tir(gvar, args, types, tir_vars)
    attrs = {"te_grad_name": te_grad_name, "te_grad_kwargs": te_grad_kwargs}
    return _relax.Call(_relax.OpFunction.get("relax.call_tir_with_grad"), call.args, attrs, call.sinfo_args)


def call_kernel(
    kernel: str,
    *,
    out_sinfo: StructInfo | Sequence[StructInfo],
    axes: dict[str, Sequence[int]] | None = None,
    **arguments: Any,
) -> Expr:
    """Creates a call of a library kernel (see docs/reference/kernels.md), which writes to new
    tensors. ``out_sinfo`` are the types of the operands that the kernel writes, in the order of its
    declaration.

    The operands that the kernel reads and its attributes are keyword arguments. ``axes`` permutes
    the dims of an operand or a result: for each dim of the kernel, it gives the dim of the tensor,
    or -1 for a dim of size 1.

    >>> relax.op.call_kernel("transpose", x=x, axes={"x": [1, 0]}, out_sinfo=R.Tensor((m, n), "float32"))

    Raises ``ValueError`` for an unknown kernel, and ``CompileError`` for arguments that do not
    match its declaration.
    """
    return _relax.call_kernel(kernel, arguments, axes, out_sinfo)


def call_pure_packed(func: str | Expr, *args: Any, sinfo_args: Any = None, ty_args: Any = None) -> Expr:
    """Creates a call of a packed function without side effects. ``sinfo_args`` is the type of the
    result, by default that of any value; newer versions of TVM call it ``ty_args``.

    Raises ``TypeError`` if ``sinfo_args`` is not a type, or an argument cannot be an operand.
    """
    types = sinfo_args if ty_args is None else ty_args
    return _relax.call_packed(True, func, *args, sinfo_args=types)


def call_py_func(
    func_name: str | Expr, args: Expr | Sequence[Expr], out_sinfo: StructInfo | Sequence[StructInfo]
) -> Expr:
    """Creates a call of a registered Python function that returns its result, with the types
    ``out_sinfo``, and has no side effects.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    fields = args.fields if isinstance(args, _relax.Tuple) else [args] if isinstance(args, _relax.Expr) else args
    infos = list(out_sinfo) if isinstance(out_sinfo, list | tuple) else [out_sinfo]
    return _relax.call_packed(True, func_name, *fields, sinfo_args=infos)


def call_packed(func: str | Expr, *args: Any, sinfo_args: Any = None, ty_args: Any = None) -> Expr:
    """Creates a call of a packed function, which may have side effects. ``sinfo_args`` is the type
    of the result, by default that of any value; newer versions of TVM call it ``ty_args``.

    Raises ``TypeError`` if ``sinfo_args`` is not a type, or an argument cannot be an operand.
    """
    types = sinfo_args if ty_args is None else ty_args
    return _relax.call_packed(False, func, *args, sinfo_args=types)


__all__ = ["call_dps_packed", "call_kernel", "call_packed", "call_pure_packed", "call_py_func", "call_tir"]
