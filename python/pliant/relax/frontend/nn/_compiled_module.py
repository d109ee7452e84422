"""Compiled modules: the results of ``nn.Module.jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant import _core
from pliant._core import NDArray, ShapeTuple
from pliant.relax.frontend.nn import spec as _spec
from pliant.relax.frontend.nn.core import as_ndarray

if TYPE_CHECKING:
    from pliant.relax.frontend.nn.core import Module
    from pliant.relax.vm import VirtualMachine

# These pipelines are the passes of Pliant's default pipeline, or a part of them.
_DEFAULT_PIPELINES = (None, "default", "default_build", "zero")


class CompiledModule:
    """A compiled module whose methods take and return NumPy arrays: ``compiled["forward"](x)``.

    The object stores the parameters and the state of the effects, which every call of a method changes. ``vm`` is the virtual
    machine, and ``params`` are the elements of the parameters.
    """

    def __init__(self, spec: _spec.ModuleSpec, vm: VirtualMachine, params: list[NDArray]) -> None:
        self.spec = spec
        self.vm = vm
        self.params = params
        self.effects: list[Any] | None = None
        self.reset()

    def reset(self) -> None:
        """Returns the effects to their initial state; for example, empties all KV caches."""
        if "_initialize_effect" in self.vm:
            self.effects = list(self.vm["_initialize_effect"]())

    def __getitem__(self, method_name: str) -> Callable[..., Any]:
        """Returns a method. Raises ``KeyError`` if there is none with this name."""
        if method_name not in self.spec.method_names:
            raise KeyError(f"the compiled module has no method '{method_name}' (there are: {', '.join(self.spec.method_names)})")
        spec = self.spec.method_specs[self.spec.method_names.index(method_name)]
        function = self.vm[method_name]

        def method(*args: Any) -> Any:
            if len(args) != len(spec.arg_names):
                counts = f"{len(spec.arg_names)} arguments, but {len(args)} are given"
                raise TypeError(f"{method_name} takes {counts}: {spec._repr(method_name)}")
            inputs = [
                self._input(name, arg_spec, arg)
                for name, arg_spec, arg in zip(spec.arg_names, spec.arg_specs, args, strict=True)
            ]
            effects = _packed(self.effects or [], spec.effect_mode)
            params = _packed(self.params, spec.param_mode)
            result = function(*inputs, *effects, *params)
            if self.effects is not None and spec.effect_mode != "none":
                result, states = result
                self.effects = list(states)
            return self._output(result)

        method.__name__ = method_name
        return method

    def _input(self, name: str, spec: _spec.ArgSpec, value: Any) -> Any:
        if isinstance(spec, _spec.Tensor):
            return self._to_ndarray(name, value)
        if isinstance(spec, _spec.Int):
            if not isinstance(value, int | np.integer):
                raise TypeError(f"the argument '{name}' must be an int, got {type(value).__name__}")
            return ShapeTuple([int(value)])
        if isinstance(spec, _spec.Tuple):
            fields = zip(spec.elements, value, strict=True)
            return tuple(self._input(f"{name}[{i}]", element, v) for i, (element, v) in enumerate(fields))
        return value

    def _output(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [self._output(v) for v in value]
        if isinstance(value, NDArray):
            return self._from_ndarray(value)
        return list(value) if isinstance(value, ShapeTuple) else value

    def _to_ndarray(self, name: str, value: Any) -> NDArray:
        if not isinstance(value, NDArray | np.ndarray | np.generic):
            raise TypeError(f"the argument '{name}' must be a NumPy array, got {type(value).__name__}")
        return value if isinstance(value, NDArray) else _core.from_dlpack(np.asarray(value, order="C"))

    def _from_ndarray(self, value: NDArray) -> Any:
        return value.numpy()


def _packed(values: list[Any], mode: str) -> list[Any]:
    return [] if mode == "none" else [tuple(values)] if mode == "packed" else values


def _numpy_module(spec: _spec.ModuleSpec, vm: VirtualMachine, params: list[NDArray]) -> CompiledModule:
    return CompiledModule(spec, vm, params)


def _torch_module(spec: _spec.ModuleSpec, vm: VirtualMachine, params: list[NDArray]) -> CompiledModule:
    from pliant.relax.frontend.nn.torch import TorchModule

    return TorchModule(spec, vm, params)


_FORMATS = {"numpy": _numpy_module, "torch": _torch_module}


def compile_module(
    module: Module, spec: Any, device: Any, pipeline: Any, out_format: str, debug: bool, target: Any
) -> CompiledModule:
    """Exports, compiles and loads a module, as ``nn.Module.jit`` describes."""
    from pliant.relax.frontend.nn.exporter import Exporter
    from pliant.relax.vm import VirtualMachine, build

    if out_format not in _FORMATS:
        raise ValueError(f"unknown out_format {out_format!r} (there are: {', '.join(_FORMATS)})")
    if isinstance(device, str):
        device = _core.device(device)
    module_spec = _spec.ModuleSpec.from_raw(spec, module)
    mod, named_params, extern_mods = Exporter(debug=debug).build(module_spec)
    missing = [name for name, param in named_params if param.data is None]
    if missing:
        raise ValueError(f"parameters without elements: {', '.join(missing)} (set param.data or call load_state_dict)")
    for extern_mod in extern_mods:
        extern_mod.register()
    passes = "default" if isinstance(pipeline, str | None) and pipeline in _DEFAULT_PIPELINES else pipeline
    vm = VirtualMachine(build(mod, target, relax_pipeline=passes), device)
    return _FORMATS[out_format](module_spec, vm, [as_ndarray(param.data) for _, param in named_params])


__all__ = ["CompiledModule", "compile_module"]
