"""Calls of tensor expressions, loop functions and packed functions, and output for debugging."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import PrimExpr
from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Tensor, current_builder, wrap_nested

if TYPE_CHECKING:
    from pliant._core import PrimFunc
    from pliant._core.relax import Expr

_relax = _core.relax


def tensor_expr_op(
    tensor_expr_func: Callable[..., Any], name_hint: str, args: Sequence[Any], *, attrs: dict[str, Any] | None = None
) -> Any:
    """Applies a function from ``te`` tensors to one or more ``te`` tensors. ``args`` are tensors, sizes and other values.
    ``name_hint`` is the name of the loop function, and ``attrs`` is ignored."""
    operands = [arg._expr if isinstance(arg, Tensor) else arg for arg in args]
    call = current_builder().call_te(tensor_expr_func, *operands, primfunc_name_hint=name_hint, primfunc_attrs=attrs)
    return wrap_nested(call, name_hint)


def _loop_function_operands(name: str, args: Any) -> tuple[list[Expr], Any]:
    """Splits the arguments of a loop function into tensors and a shape of the values of its size parameters."""
    tensors: list[Expr] = []
    sizes: list[Any] = []
    for arg in args if isinstance(args, tuple | list) else [args]:
        if isinstance(arg, Tensor):
            tensors.append(arg._expr)
        elif isinstance(arg, _relax.ShapeExpr):
            sizes += arg.values
        elif isinstance(arg, PrimExpr | int):
            sizes.append(arg)
        else:
            raise TypeError(f"{name}: arguments are tensors, sizes and shapes, got {type(arg).__name__}")
    return tensors, _relax.ShapeExpr(sizes) if sizes else None


def _types(out: Any) -> list[Any]:
    return [t._expr.struct_info for t in (out if isinstance(out, tuple | list) else [out])]


def tensor_ir_op(func: PrimFunc, name_hint: str, args: Any, out: Any) -> Any:
    """Calls a loop function that writes to new tensors. ``args`` are its tensors, and the values of its size parameters.
    ``out`` are placeholders of the results: a tensor or a list of tensors. Raises ``TypeError`` for other arguments."""
    tensors, sizes = _loop_function_operands("tensor_ir_op", args)
    gvar = current_builder().add_func(func, name_hint)
    types = _types(out)
    call = _op.call_tir(gvar, tensors, types if len(types) > 1 else types[0], sizes)
    return wrap_nested(current_builder().emit(call, name_hint), name_hint)


def tensor_ir_inplace_op(
    func: PrimFunc, name_hint: str, args: Any, inplace_indices: int | Sequence[int], out: Any
) -> Any:
    """Calls a loop function whose results overwrite arguments. ``inplace_indices`` has, for each result, the index of the argument
    that it overwrites, or -1 for a new tensor. The other arguments are those of :func:`tensor_ir_op`."""
    tensors, sizes = _loop_function_operands("tensor_ir_inplace_op", args)
    gvar = current_builder().add_func(func, name_hint)
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    operands = [gvar, _relax.Tuple(tensors), *([sizes] if sizes is not None else [])]
    call = _relax.Call(_relax.get_op("call_tir_inplace"), operands, {"inplace_indices": indices}, _types(out))
    return wrap_nested(current_builder().emit(call, name_hint), name_hint)


def as_operand(value: Any) -> Expr:
    """Converts a tensor, number, string, size or list of these to an operand of a packed function.

    Raises ``TypeError`` for other values.
    """
    if isinstance(value, Tensor):
        return value._expr
    if isinstance(value, str):
        return _relax.StringImm(value)
    if isinstance(value, int | float | PrimExpr):
        return _relax.PrimValue(value)
    if isinstance(value, tuple | list):
        return _relax.Tuple([as_operand(v) for v in value])
    raise TypeError(f"a packed function takes tensors, numbers, strings and lists of these, got {type(value).__name__}")


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """Calls a packed function (``pliant.register_func``) in destination-passing style: it takes ``args`` and then new tensors to
    write, with the types of ``out``, a placeholder or a list of placeholders."""
    types = _types(out)
    result = _op.call_dps_packed(name, [as_operand(arg) for arg in args], types if len(types) > 1 else types[0])
    return wrap_nested(result, name)


def debug_func(name: str, *args: Any, _line_info: str | None = None) -> None:
    """Calls a packed function for its side effect when the method runs: ``function(line, *args)``, where ``line`` is the position
    of the call in your source. ``args`` are tensors, numbers and strings.

    Raises ``RuntimeError`` unless the module is exported with ``debug=True``.
    """
    from pliant.relax.frontend.nn.exporter import Exporter

    io = Exporter.current().io_effect
    if io is None:
        raise RuntimeError("print_ and debug_func require that the module is exported with debug=True")
    operands = [as_operand(arg) for arg in args]
    io.call("vm.builtin.invoke_debug_func", name, _line_info or _caller_position(), *operands)


def print_(tensor: Tensor) -> None:
    """Prints a tensor when the method runs, in the order of the calls.

    Raises ``RuntimeError`` unless the module is exported with ``debug=True``.
    """
    debug_func("vm.builtin.debug_print", tensor, _line_info=_caller_position())


def _caller_position() -> str:
    """The file and line of the code that called the caller."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame is not None else None
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "unknown"


__all__ = ["debug_func", "extern", "print_", "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op"]
