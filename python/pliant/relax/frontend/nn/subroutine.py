"""Modules whose calls become calls of a function of their own."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import Var as TirVar
from pliant.error import UnsupportedError
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.frontend.nn._tensor import Object, Parameter, Tensor, current_builder, wrap_nested

if TYPE_CHECKING:
    from pliant._core import PrimExpr
    from pliant._core.relax import Expr, GlobalVar, StructInfo, Var
    from pliant.relax.frontend.nn.core import Module
_relax = _core.relax


class SubroutineMixin:
    """The mixin of ``nn.Module`` that creates functions for modules. If a class sets ``define_subroutine = True``, each call of
    ``forward`` becomes a call of a private function, named after the class. Calls with arguments and parameters of the same
    types share a function."""

    define_subroutine: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        forward = cls.__dict__.get("forward")
        if forward is not None and not hasattr(forward, "_calls_subroutine"):
            cls.forward = _dispatching(forward)  # type: ignore[attr-defined]


def _dispatching(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the method ``forward`` of a class so that it calls a subroutine if the class defines one."""

    @functools.wraps(forward)
    def dispatch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.define_subroutine:
            return forward(self, *args, **kwargs)
        return _call_subroutine(self, forward, args, kwargs)

    dispatch._calls_subroutine = True  # type: ignore[attr-defined]
    return dispatch


def _call_subroutine(module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pliant.relax.frontend.nn.core import Effect, find_attributes

    builder = current_builder()
    effect = next(find_attributes(module, "", lambda value: isinstance(value, Effect)), None)
    if effect is not None:
        raise UnsupportedError(f"{type(module).__name__} cannot be a subroutine, because it contains the effect '{effect[0]}'")
    arguments = inspect.signature(forward).bind(module, *args, **kwargs).arguments
    arguments.pop(next(iter(arguments)))
    arguments = {name: _to_expr(value, builder) for name, value in arguments.items()}
    tensors = {name: value for name, value in arguments.items() if isinstance(value, _relax.Expr)}
    params = list(module.parameters())
    operands = [*tensors.values(), *(param._expr for param in params)]

    cache: dict[Any, GlobalVar] = builder.__dict__.setdefault("_subroutines", {})
    others = [(name, value) for name, value in arguments.items() if name not in tensors]
    key = (forward, _types_key(operands), builder.current_block_is_dataflow(), repr(others), _configuration(module))
    if key not in cache:
        cache[key] = _define(builder, module, forward, arguments, params)
    subroutine = cache[key]
    return wrap_nested(subroutine(*operands), f"{subroutine.name_hint}_output")


def _define(
    outer: BlockBuilder, module: Module, forward: Callable[..., Any], arguments: dict[str, Any], params: list[Parameter]
) -> GlobalVar:
    """Creates the function of a module and adds it to the module that ``outer`` builds."""
    # A builder of its own, since a builder builds one function at a time.
    existing = outer.get()
    inner = BlockBuilder(existing)
    tensors = {name: value for name, value in arguments.items() if isinstance(value, _relax.Expr)}
    symbols = _Symbols([*tensors.values(), *(param._expr for param in params)])
    inputs = {name: _relax.Var(name, symbols.type(value.struct_info_)) for name, value in tensors.items()}
    weights = [_relax.Var(f"param_{i}", symbols.type(param._expr.struct_info_)) for i, param in enumerate(params)]
    with _parameters_bound(params, weights):
        with inner.function(_snake_case(type(module).__name__), [*inputs.values(), *weights], private=True):
            with ExitStack() as stack:
                if dataflow := outer.current_block_is_dataflow():
                    stack.enter_context(inner.dataflow())
                values = {name: _as_nn(inputs[name]) if name in inputs else value for name, value in arguments.items()}
                result = forward(module, **values)
                results = list(result) if isinstance(result, tuple | list) else [result]
                if not all(isinstance(r, Tensor) for r in results):
                    raise TypeError(f"{type(module).__name__}.forward must return tensors, because it is a subroutine")
                output = result._expr if isinstance(result, Tensor) else _relax.Tuple([r._expr for r in results])
                if dataflow:
                    output = inner.emit_output(output)
            created = inner.emit_func_output(output)
    subroutine = created
    for gvar, func in inner.get().functions_items():
        if gvar.name_hint not in existing:
            added = outer.add_func(func, gvar.name_hint)
            if gvar.name_hint == created.name_hint:
                subroutine = added
    return subroutine


def _configuration(module: Any) -> tuple[Any, ...]:
    """The attributes of a module that are not parameters. Modules that differ in them do not share a function."""
    values: list[Any] = [type(module)]
    for name, value in module._children():
        if isinstance(value, SubroutineMixin):
            values.append((name, _configuration(value)))
        elif not isinstance(value, Parameter):
            plain = isinstance(value, int | float | str | tuple | list | dict | None)
            values.append((name, repr(value) if plain else id(value)))
    return tuple(values)


@contextmanager
def _parameters_bound(params: list[Parameter], variables: list[Var]) -> Iterator[None]:
    """Makes parameters refer to the variables of a function inside the block."""
    before = [param._expr for param in params]
    try:
        for param, var in zip(params, variables, strict=True):
            param._expr = var
        yield
    finally:
        for param, expr in zip(params, before, strict=True):
            param._expr = expr


def _to_expr(value: Any, builder: BlockBuilder) -> Any:
    """Converts tensors, also inside tuples, to expressions of known type. Returns other values unchanged."""
    if isinstance(value, Tensor | Object):
        return value._expr
    if isinstance(value, tuple | list) and value and all(isinstance(v, Tensor) for v in value):
        return builder.emit(_relax.Tuple([v._expr for v in value]))
    if isinstance(value, _relax.Expr) and value.struct_info_ is None:
        return builder.emit(value)
    return value


def _as_nn(var: Var) -> Any:
    info = var.struct_info_
    if isinstance(info, _relax.TensorStructInfo):
        return Tensor(_expr=var)
    if isinstance(info, _relax.TupleStructInfo):
        return wrap_nested(var, var.name_hint)
    return Object(_expr=var, _name=var.name_hint)


class _Symbols:
    """Renames the size variables in the types of operands to those of a function. A dim whose variables the operands do not define,
    such as ``2 * n`` alone, becomes a variable itself."""

    def __init__(self, operands: list[Expr], canonical: bool = False) -> None:
        info = _relax.TupleStructInfo([operand.struct_info_ for operand in operands])
        self._canonical = canonical
        self._renamed: list[tuple[PrimExpr, TirVar]] = []
        for var in _relax.struct_info_vars(info, True):
            self._renamed.append((var, self._variable(var.name)))
        self._whole: dict[str, TirVar] = {}

    def _variable(self, name: str) -> TirVar:
        return TirVar(f"s{len(self._renamed)}" if self._canonical else name, "int64")

    def dim(self, dim: PrimExpr) -> PrimExpr:
        """The dim in terms of the new variables."""
        defined = all(any(var.same_as(old) for old, _ in self._renamed) for var in _core.tir_free_vars(dim))
        if defined:
            return _core.tir_substitute(dim, self._renamed)  # type: ignore[arg-type]
        return self._whole.setdefault(str(dim), TirVar(f"size_{len(self._whole)}", "int64"))

    def type(self, info: StructInfo) -> StructInfo:
        """The type in terms of the new variables."""
        if isinstance(info, _relax.TupleStructInfo):
            return _relax.TupleStructInfo([self.type(field) for field in info.fields])
        if isinstance(info, _relax.TensorStructInfo) and info.shape is not None:
            return _relax.TensorStructInfo([self.dim(dim) for dim in info.shape.values], info.dtype)
        if isinstance(info, _relax.ShapeStructInfo) and info.values is not None:
            return _relax.ShapeStructInfo([self.dim(dim) for dim in info.values])
        return info


def _types_key(operands: list[Expr]) -> str:
    """The types of operands as a string that does not depend on the names of size variables."""
    symbols = _Symbols(operands, canonical=True)
    return repr([symbols.type(operand.struct_info_) for operand in operands])


def _snake_case(name: str) -> str:
    """Converts ``CamelCase`` to ``camel_case``."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


__all__ = ["SubroutineMixin"]
