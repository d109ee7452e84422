"""Exports modules: every method becomes a function of an ``IRModule``."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import IRModule, PrimExpr
from pliant._core import Var as TirVar
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.frontend.nn import spec as _spec
from pliant.relax.frontend.nn.core import Effect, Module, Object, Parameter, Tensor, find_attributes

if TYPE_CHECKING:
    from pliant._core.relax import Expr, Var
    from pliant.relax.frontend.nn.extern import ExternModule

_relax = _core.relax
_current = threading.local()


def add_extern(mod: ExternModule) -> None:
    """Adds an external module to the result of the export that is running.

    Raises ``RuntimeError`` outside of an export, and ``ValueError`` if another module defines one of its symbols.
    """
    exporter = Exporter.current_or_none()
    if exporter is None:
        raise RuntimeError("nn.add_extern may be called only while a module is exported")
    exporter.add_external_module(mod)


class Exporter:
    """Exports the methods of a module. With ``debug``, methods may print."""

    def __init__(self, debug: bool) -> None:
        from pliant.relax.frontend.nn.modules import IOEffect

        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None
        self.extern_mods: list[ExternModule] = []

    @staticmethod
    def current_or_none() -> Exporter | None:
        """Returns the exporter that is running in this thread, or ``None``."""
        return getattr(_current, "exporter", None)

    @staticmethod
    def current() -> Exporter:
        """Returns the exporter that is running in this thread. Raises ``RuntimeError`` if there is none."""
        exporter = Exporter.current_or_none()
        if exporter is None:
            raise RuntimeError("no module is being exported")
        return exporter

    def __enter__(self) -> Exporter:
        if Exporter.current_or_none() is not None:
            raise RuntimeError("a module cannot be exported while another export is running")
        _current.exporter = self
        return self

    def __exit__(self, *exc: object) -> None:
        del _current.exporter

    def add_external_module(self, mod: ExternModule) -> None:
        """Adds an external module. Raises ``ValueError`` if another one defines one of its symbols."""
        known = {symbol for other in self.extern_mods for symbol in other.symbols}
        duplicates = sorted(known & mod.symbols.keys())
        if duplicates:
            raise ValueError(f"several external modules define the symbols {', '.join(duplicates)}")
        self.extern_mods.append(mod)

    def build(self, spec: _spec.ModuleSpec) -> tuple[IRModule, list[tuple[str, Parameter]], list[ExternModule]]:
        """Exports the methods. Returns the module, the parameters by name, and the external modules."""
        _warn_of_plain_containers(spec.module, type(spec.module).__name__)
        params = _unique(find_attributes(spec.module, "", lambda value: isinstance(value, Parameter)))
        effects: list[tuple[str, Effect]] = [("", self.io_effect)] if self.io_effect is not None else []
        effects += _unique(find_attributes(spec.module, "", lambda value: isinstance(value, Effect)))
        exprs = [param._expr for _, param in params]
        try:
            with self:
                if effects:
                    self._initialize_effects(effects)
                for name, method in zip(spec.method_names, spec.method_specs, strict=True):
                    _Method(self.builder, name, method, params, effects).export()
        finally:
            for (_, param), expr in zip(params, exprs, strict=True):
                param._expr = expr
        return self.builder.get(), params, self.extern_mods

    def _initialize_effects(self, effects: list[tuple[str, Effect]]) -> None:
        """Emits the function ``_initialize_effect``, which returns the initial states of the effects."""
        builder = self.builder
        with builder.function("_initialize_effect", []):
            with builder.dataflow():
                states: list[Any] = []
                for name, effect in effects:
                    states += effect.emit_init(name, builder)
                output = builder.emit_output(builder.emit(_relax.Tuple(states)))
            builder.emit_func_output(output)


class _Method:
    """Exports one method."""

    def __init__(
        self,
        builder: BlockBuilder,
        name: str,
        spec: _spec.MethodSpec,
        params: list[tuple[str, Parameter]],
        effects: list[tuple[str, Effect]],
    ) -> None:
        self.builder = builder
        self.name = name
        self.spec = spec
        self.params = params
        self.effects = effects
        # The size variables by name. Those of parameters come first, since code of the module may refer to them.
        self.symbols: dict[str, TirVar] = {}
        for _, param in params:
            for dim in param.shape:
                self.dim(dim)

    def export(self) -> None:
        spec, builder = self.spec, self.builder
        effect_inputs = {"none": 0, "packed": 1, "plain": len(self.effects)}[spec.effect_mode]
        with builder.function(self.name, attrs={"num_input": len(spec.arg_specs) + effect_inputs}):
            with builder.dataflow():
                inputs = [self.variable(name, arg) for name, arg in zip(spec.arg_names, spec.arg_specs, strict=True)]
                inputs += self.effect_inputs(spec.effect_mode)
                inputs += self.parameter_inputs(spec.param_mode)
                arguments = dict(zip(spec.arg_names, map(self.argument, spec.arg_specs, inputs), strict=False))
                result = self.unwrap(spec.method(**arguments))
                states = [var for _, effect in self.effects for var in effect.finalize()]
                if states and spec.effect_mode != "none":
                    result = _relax.Tuple([result, _relax.Tuple(states)])
                output = builder.emit_output(result)
            builder.emit_func_output(output, inputs)

    def symbol(self, name: str) -> TirVar:
        """The size variable with this name. All arguments and parameters of the method share it."""
        return self.symbols.setdefault(name, TirVar(name, "int64"))

    def dim(self, dim: Any) -> Any:
        """A dim of an argument or parameter. A variable in it stands for the size with its name."""
        if isinstance(dim, str):
            return self.symbol(dim)
        if isinstance(dim, TirVar):
            return self.symbols.setdefault(dim.name, dim)
        return dim

    def variable(self, name: str, spec: _spec.ArgSpec) -> Var:
        """Creates the parameter of the function for an argument."""
        return _relax.Var(name, self.type_of(name, spec))

    def type_of(self, name: str, spec: _spec.ArgSpec) -> Any:
        if isinstance(spec, _spec.Int):
            return _relax.ShapeStructInfo([self.symbol(name)])
        if isinstance(spec, _spec.Tensor):
            dims = [self.dim(dim) for dim in spec.shape]
            return _relax.TensorStructInfo(dims, spec.dtype)
        if isinstance(spec, _spec.Object):
            return _relax.ObjectStructInfo()
        return _relax.TupleStructInfo([self.type_of(f"{name}_{i}", e) for i, e in enumerate(spec.elements)])

    def argument(self, spec: _spec.ArgSpec, var: Var) -> Any:
        """The value of an argument as the method receives it. Fields of tuples are bound to variables."""
        if isinstance(spec, _spec.Tensor):
            return Tensor(_expr=var)
        if isinstance(spec, _spec.Object):
            return spec.object_type(_expr=var, _name=var.name_hint)
        if isinstance(spec, _spec.Int):
            return var.struct_info.values[0]
        fields = []
        for i, element in enumerate(spec.elements):
            field = self.builder.emit(_relax.TupleGetItem(var, i), f"{spec.name}_{i}")
            fields.append(self.argument(element, field))
        return type(spec.elements)(fields)

    def parameter_inputs(self, mode: str) -> list[Var]:
        """Binds the parameters of the module to variables of the function, and returns the parameters of the function for them."""
        variables = []
        for name, param in self.params:
            dims = [self.dim(dim) for dim in param.shape]
            variables.append(_relax.Var(name, _relax.TensorStructInfo(dims, param.dtype)))
        inputs = self.packed("packed_params", variables) if mode == "packed" else variables
        for i, (name, param) in enumerate(self.params):
            param._expr = self.builder.emit(_relax.TupleGetItem(inputs[0], i), name) if mode == "packed" else variables[i]
        return [] if mode == "none" else inputs

    def effect_inputs(self, mode: str) -> list[Var]:
        """Sets the states of the effects to variables of the function, and returns the parameters of the function for them."""
        states = [effect.create(name) for name, effect in self.effects]
        variables = [var for state in states for var in state]
        inputs = self.packed("packed_effects", variables) if mode == "packed" and variables else variables
        index = 0
        for (_, effect), state in zip(self.effects, states, strict=True):
            if mode == "packed":
                unpacked = []
                for var in state:
                    unpacked.append(self.builder.emit(_relax.TupleGetItem(inputs[0], index), var.name_hint))
                    index += 1
                state = unpacked
            effect.set_state(state)
        return [] if mode == "none" else inputs

    @staticmethod
    def packed(name: str, variables: list[Var]) -> list[Var]:
        return [_relax.Var(name, _relax.TupleStructInfo([var.struct_info for var in variables]))]

    def unwrap(self, value: Any) -> Expr:
        """Converts the result of the method to an expression."""
        if isinstance(value, Tensor | Object):
            return value._expr
        if isinstance(value, tuple | list):
            return _relax.Tuple([self.unwrap(v) for v in value])
        if isinstance(value, _relax.Expr):
            return value
        if isinstance(value, PrimExpr | int) and not isinstance(value, bool):
            return _relax.ShapeExpr([value])
        raise TypeError(
            f"the method '{self.name}' must return tensors, objects, sizes or tuples of these, but returned {type(value).__name__}"
        )


def _warn_of_plain_containers(module: Module, path: str) -> None:
    """Warns of Python lists and dicts of modules or parameters, which are not found in them."""
    for name, value in module._children():
        if isinstance(value, Module):
            _warn_of_plain_containers(value, f"{path}.{name}")
        items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
        if any(isinstance(item, Module | Parameter | Effect) for item in items):
            container = "nn.ModuleDict or nn.ParameterDict" if isinstance(value, dict) else "nn.ModuleList or nn.ParameterList"
            message = f"the parameters in the Python {type(value).__name__} '{path}.{name}' are not exported: use {container}"
            warnings.warn(message, stacklevel=4)


def _unique(named: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Keeps only the first name of a parameter or effect that a module contains several times."""
    first: dict[int, tuple[str, Any]] = {}
    for name, value in named:
        first.setdefault(id(value), (name, value))
    return list(first.values())


__all__ = ["Exporter", "add_extern"]
