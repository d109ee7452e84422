"""Calls of loop functions, packed functions and kernels, and user-defined operators."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax.op._operator_lookup import find, forget

if TYPE_CHECKING:
    from pliant._core.relax import Expr, StructInfo

_relax = _core.relax


def register_op(name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Makes an operator from a function that maps ``te`` tensors to one or more tensors, and
    returns the operator.

    The positional parameters are the operands, and the keyword-only parameters are the attributes.
    An operand with the default ``None`` is optional, and ``*xs`` means any number of operands. The
    type of a call follows from the shape and data type of the function's result, also for symbolic
    sizes, so no type rule is needed.

    >>> @relax.op.register_op("my.scaled_sum")
    ... def scaled_sum(x, y, *, scale=1.0):
    ...     return te.compute(x.shape, lambda *i: (x(*i) + y(*i)) * scale)
    >>> relax.op.my.scaled_sum(a, b, scale=2.0)       # R.my.scaled_sum in a script

    Raises ``ValueError`` for a name that is taken or cannot be written in a script, and
    ``TypeError`` for a signature that does not follow these rules.
    """
    if callable(name):
        return register_op()(name)  # type: ignore[no-any-return]

    def register(func: Callable[..., Any]) -> Any:
        operands, attrs = [], []
        own = name or func.__name__
        for p in inspect.signature(func).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                operands.append(f"*{p.name}")
            elif p.kind is p.KEYWORD_ONLY:
                attrs.append((p.name, [] if p.default is p.empty else [p.default]))
            elif p.kind is p.VAR_KEYWORD:
                raise TypeError(f"operator '{own}': **{p.name} is not supported; declare each attribute as a keyword-only parameter")
            elif p.default is p.empty:
                operands.append(p.name)
            elif p.default is None:
                operands.append(f"{p.name}?")
            else:
                raise TypeError(
                    f"operator '{own}': the default of operand '{p.name}' must be None (help: attributes are "
                    f"keyword-only parameters, after a *)"
                )
        _check_name(own)
        path = _relax.register_te_op(own, operands, attrs, func)
        forget(path)
        return find(path)

    return register


def _check_name(name: str) -> None:
    """Raises ``ValueError`` for a name that cannot be written in a script or that has another
    meaning there."""
    from pliant.script import relax as script

    path = name.removeprefix("relax.")
    for word in path.split("."):
        if not word.isidentifier() or keyword.iskeyword(word) or word.startswith("__"):
            raise ValueError(f"{name!r} is not a valid operator name: R.{path} cannot be written in a script")
    if path.split(".")[0] in vars(script):
        raise ValueError(f"{name!r} is not a valid operator name: R.{path.split('.')[0]} has another meaning in scripts")


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


__all__ = ["call_dps_packed", "call_kernel", "call_packed", "call_pure_packed", "call_py_func", "call_tir", "register_op"]
