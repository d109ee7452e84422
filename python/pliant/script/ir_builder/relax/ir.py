"""The functions that open frames and emit bindings. All other names are those of ``R``."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from pliant import _core
from pliant.script import relax as _script
from pliant.script.ir_builder.base import IRBuilder
from pliant.script.ir_builder.relax.frame import (
    BlockFrame,
    ElseFrame,
    FunctionFrame,
    IfFrame,
    ThenFrame,
    emit_binding,
    emit_value,
)

__all__ = [
    "Else",
    "If",
    "Then",
    "arg",
    "dataflow",
    "emit",
    "emit_match_cast",
    "emit_te",
    "emit_var_binding",
    "emit_with_sinfo",
    "func_attr",
    "func_name",
    "func_ret_struct_info",
    "func_ret_ty",
    "func_ret_value",
    "function",
    "output",
    "py_print",
    "py_str",
    "py_tuple",
]

_relax = _core.relax
py_print = builtins.print
py_str = builtins.str
py_tuple = builtins.tuple


def function(is_pure: bool | None = None, is_private: bool | None = None) -> FunctionFrame:
    """Opens a graph function. By default, it is pure if its calls have no side effects."""
    return FunctionFrame(is_pure, is_private)


def _function(what: str) -> FunctionFrame:
    return IRBuilder.current().find(FunctionFrame, what)


def arg(name: str, struct_info: Any) -> Any:
    """Adds a parameter to the function, and returns its variable."""
    var = _relax.Var(name, struct_info)
    _function("R.arg").params.append(var)
    return var


def func_name(name: str) -> None:
    """Sets the name of the function."""
    _function("R.func_name").name = name


def func_attr(attrs: dict[str, Any]) -> None:
    """Sets attributes of the function."""
    _function("R.func_attr").attrs.update(attrs)


def func_ret_struct_info(ret_sinfo: Any) -> None:
    """Declares the type of the function's result."""
    _function("R.func_ret_struct_info").ret_struct_info = ret_sinfo


func_ret_ty = func_ret_struct_info


def func_ret_value(value: Any) -> None:
    """Sets the result of the function."""
    _function("R.func_ret_value").output = value


def dataflow() -> BlockFrame:
    """Opens a dataflow block."""
    return BlockFrame()


def output(*vars: Any) -> None:
    """Declares the variables that are visible after the dataflow block."""
    IRBuilder.current().find(BlockFrame, "R.output").output_vars = vars


def emit(value: Any, annotate_struct_info: Any = None) -> Any:
    """Binds an expression to a new variable, and returns the variable. The default type is the inferred one."""
    return emit_value(value, annotate_struct_info)


def emit_with_sinfo(op: str, args: Any, sinfo_args: Any = None) -> Any:
    """Emits a call of an operator with explicit result types."""
    return emit_value(_relax.Call(_relax.OpFunction.get(op), args, None, sinfo_args))


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Emits a call of a tensor expression. Raises ``UnsupportedError``: use ``BlockBuilder.emit_te``."""
    from pliant.error import UnsupportedError

    raise UnsupportedError(
        "R.emit_te in an IRBuilder is not supported (help: build the function with relax.BlockBuilder and emit_te)"
    )


def emit_match_cast(value: Any, struct_info: Any) -> Any:
    """Emits a run-time check that a value has a type, and returns the new variable."""
    var = _relax.Var("gv", struct_info)
    emit_binding(_relax.MatchCast(var, value, struct_info))
    return var


def emit_var_binding(value: Any) -> Any:
    """Emits an existing binding, and returns its variable."""
    emit_binding(value)
    return value.var


def If(condition: Any) -> IfFrame:
    """Opens a conditional."""
    return IfFrame(condition)


def Then() -> ThenFrame:
    """Opens the branch that runs if the condition is true."""
    return ThenFrame()


def Else() -> ElseFrame:
    """Opens the branch that runs if the condition is false."""
    return ElseFrame()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_script, name)
