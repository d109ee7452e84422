"""Creates calls of loop functions, packed functions and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core.relax import Expr, StructInfo

_relax = _core.relax


def call_tir(
    gvar: Expr,
    args: Expr | Sequence[Expr],
    out_sinfo: StructInfo | Sequence[StructInfo],
    tir_vars: Any = None,
) -> Expr:
    """Creates a call of a loop function that writes to new tensors with the types ``out_sinfo``.
    ``tir_vars`` is a shape with the values of additional size parameters.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    return _relax.call_dps(False, gvar, args, out_sinfo, tir_vars)


def call_dps_packed(
    func: str | Expr, args: Expr | Sequence[Expr], out_sinfo: StructInfo | Sequence[StructInfo]
) -> Expr:
    """Creates a call of a packed function that writes to new tensors with the types
    ``out_sinfo``.

    Raises ``TypeError`` if ``out_sinfo`` is not a type, or an argument cannot be an operand.
    """
    return _relax.call_dps(True, func, args, out_sinfo)


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


def call_pure_packed(func: str | Expr, *args: Any, sinfo_args: Any = None) -> Expr:
    """Creates a call of a packed function without side effects. ``sinfo_args`` is the type of the
    result, by default that of any value.

    Raises ``TypeError`` if ``sinfo_args`` is not a type, or an argument cannot be an operand.
    """
    return _relax.call_packed(True, func, *args, sinfo_args=sinfo_args)


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


def call_packed(func: str | Expr, *args: Any, sinfo_args: Any = None) -> Expr:
    """Creates a call of a packed function, which may have side effects. ``sinfo_args`` is the type
    of the result, by default that of any value.

    Raises ``TypeError`` if ``sinfo_args`` is not a type, or an argument cannot be an operand.
    """
    return _relax.call_packed(False, func, *args, sinfo_args=sinfo_args)


__all__ = ["call_dps_packed", "call_kernel", "call_packed", "call_pure_packed", "call_py_func", "call_tir"]
