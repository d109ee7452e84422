"""Helper functions for passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core import PrimFunc
    from pliant._core.relax import Function, ShapeExpr, StructInfo, Tuple, Var

_relax = _core.relax


def copy_with_new_vars(func: Function) -> Function:
    """Copies a function. The parameters, variables and size variables of the copy are new."""
    return func._copied()


def convert_to_expr(value: Any) -> Any:
    """Converts a Python value to an expression: a number or scalar expression to a scalar, a string
    to a string constant, and a tuple or list to a tuple of converted items. Expressions are
    returned unchanged.

    Raises ``TypeError`` for other objects.
    """
    if isinstance(value, _relax.Expr | _relax.OpFunction):
        return value
    if isinstance(value, bool | int | float | _core.PrimExpr):
        return _relax.PrimValue(value)
    if isinstance(value, str):
        return _relax.StringImm(value)
    if isinstance(value, tuple | list):
        return _relax.Tuple([convert_to_expr(v) for v in value])
    raise TypeError(
        "expected an expression, a number, a string, or a tuple or list of these, "
        f"got {type(value).__name__}"
    )


def gen_call_tir_inputs(
    func: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[PrimFunc, Tuple, list[StructInfo], ShapeExpr | None]:
    """Returns the loop function that ``func(*args, **kwargs)`` defines by tensor expressions, and
    the arguments for an ``R.call_tir`` of it: the tuple of its inputs, the types of its outputs,
    and the additional sizes or ``None``."""
    from pliant.relax.block_builder import BlockBuilder

    builder = BlockBuilder.current()
    if builder is not None:
        call: Any = builder.call_te(func, *args, **kwargs)
        result = builder.get()
    else:
        builder = BlockBuilder()
        with builder.function("gen_call_tir_inputs", _variables((args, kwargs))):
            call = builder.call_te(func, *args, **kwargs)
            result = builder.get()
            builder.emit_func_output(call)
    sizes = call.args[2] if len(call.args) > 2 else None
    infos = [info for given in call.sinfo_args for info in getattr(given, "fields", [given])]
    return result[call.args[0]], call.args[1], infos, sizes


def _variables(value: Any) -> list[Var]:
    """Returns the variables in arguments, each once, in order."""
    if isinstance(value, _relax.Expr):
        return list(_relax.find_vars(value, "free"))
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return []
    return list(dict.fromkeys(var for part in value for var in _variables(part)))


__all__ = ["convert_to_expr", "copy_with_new_vars", "gen_call_tir_inputs"]
