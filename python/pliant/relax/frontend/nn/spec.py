"""The types of the arguments of exported methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from pliant._core import PrimExpr

if TYPE_CHECKING:
    from pliant.relax.frontend.nn.core import Module

_MODES = ("plain", "packed", "none")


class Int:
    """An integer argument. In the method, it is a size variable; callers pass a shape of one dim."""

    def __repr__(self) -> str:
        return "int"


class Tensor:
    """A tensor argument. A dim that is a string is symbolic: equal strings in the arguments of one method are one size.

    Raises ``TypeError`` for a dim that is neither an int, a string nor a ``tir`` expression.
    """

    def __init__(self, shape: Sequence[int | str | PrimExpr], dtype: str) -> None:
        if isinstance(shape, str) or not isinstance(shape, Sequence):
            raise TypeError(f"the shape of spec.Tensor must be a list of dims, got {shape!r}")
        for dim in shape:
            if isinstance(dim, bool) or not isinstance(dim, int | str | PrimExpr):
                raise TypeError(f"a dim of spec.Tensor must be an int or a string, got {dim!r} in {list(shape)}")
        self.shape = list(shape)
        self.dtype = str(dtype)

    def __repr__(self) -> str:
        return f"Tensor([{', '.join(str(dim) for dim in self.shape)}], '{self.dtype}')"


class Object:
    """An argument that is not a tensor, such as a KV cache. ``object_type`` is the class that the method receives: ``nn.Object`` or
    a subclass."""

    def __init__(self, object_type: type) -> None:
        self.object_type = object_type

    def __repr__(self) -> str:
        return "object"


class Tuple:
    """A tuple or list of arguments."""

    def __init__(self, name: str, elements: list[Any] | tuple[Any, ...]) -> None:
        if not isinstance(elements, tuple | list):
            raise TypeError(f"the elements of spec.Tuple '{name}' must be a tuple or list, got {type(elements).__name__}")
        self.name = name
        self.elements = elements

    def __repr__(self) -> str:
        return repr(self.elements)


ArgSpec: TypeAlias = Int | Tensor | Object | Tuple
MethodSpecType: TypeAlias = "MethodSpec | Mapping[str, Any]"
ModuleSpecType: TypeAlias = "ModuleSpec | Mapping[str, Any]"


def as_arg_spec(spec: Any, name: str) -> ArgSpec:
    """Converts the type of an argument: ``int`` or ``"int"`` to ``Int``, and tuples and lists to ``Tuple``.

    Raises ``TypeError`` for other objects.
    """
    if spec is Int or spec is int or (isinstance(spec, str) and spec == "int"):
        return Int()
    if isinstance(spec, Int | Tensor | Object):
        return spec
    elements = spec.elements if isinstance(spec, Tuple) else spec
    if isinstance(elements, tuple | list):
        return Tuple(name, type(elements)([as_arg_spec(e, f"{name}_{i}") for i, e in enumerate(elements)]))
    raise TypeError(
        f"the spec of the argument '{name}' must be spec.Tensor, spec.Int, spec.Object, int or a tuple of these, got {spec!r}"
    )


class MethodSpec:
    """The types of the arguments of a method.

    ``param_mode`` and ``effect_mode`` are ``"plain"`` (each parameter is an argument of the function), ``"packed"`` (all are one
    tuple) or ``"none"`` (the function does not take them).
    """

    def __init__(
        self,
        method: Callable[..., Any],
        arg_names: Sequence[str],
        arg_specs: Sequence[Any],
        param_mode: str = "plain",
        effect_mode: str = "plain",
    ) -> None:
        for name, mode in (("param_mode", param_mode), ("effect_mode", effect_mode)):
            if mode not in _MODES:
                raise ValueError(f"{name} must be one of {', '.join(_MODES)}, got {mode!r}")
        if len(arg_names) != len(arg_specs):
            raise ValueError(f"{len(arg_names)} names of arguments, but {len(arg_specs)} types: {list(arg_names)}")
        self.method = method
        self.arg_names = list(arg_names)
        self.arg_specs = [as_arg_spec(spec, name) for name, spec in zip(arg_names, arg_specs, strict=True)]
        self.param_mode = param_mode
        self.effect_mode = effect_mode

    def _repr(self, name: str) -> str:
        args = zip(self.arg_names, self.arg_specs, strict=True)
        return f"{name}({', '.join(f'{arg}: {spec}' for arg, spec in args)})"

    def __repr__(self) -> str:
        return self._repr("MethodSpec")

    @staticmethod
    def from_raw(spec: MethodSpecType, method: Callable[..., Any]) -> MethodSpec:
        """Creates the spec of a method from a dict from argument names to types. The key ``"$"`` holds ``param_mode`` and
        ``effect_mode``.

        Raises ``TypeError`` if the method has no such argument, or if the dict lacks an argument that has no default.
        """
        if isinstance(spec, MethodSpec):
            return spec
        if not isinstance(spec, Mapping):
            raise TypeError(f"the spec of a method must be a dict from argument names to types, got {spec!r}")
        config = dict(spec.get("$", {}))
        types = {name: value for name, value in spec.items() if name != "$"}
        name = getattr(method, "__name__", "method")
        params = {
            p.name: p for p in inspect.signature(method).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        for arg in types:
            if arg not in params:
                raise TypeError(f"the method '{name}' has no argument '{arg}' ({_suggestion(arg, list(params))})")
        missing = [arg for arg, p in params.items() if p.default is p.empty and arg not in types]
        if missing:
            raise TypeError(f"the spec of the method '{name}' lacks the arguments {', '.join(missing)}")
        unknown = config.keys() - {"param_mode", "effect_mode"}
        if unknown:
            raise TypeError(f"unknown settings of the method '{name}': {', '.join(sorted(unknown))}")
        names = [arg for arg in params if arg in types]
        return MethodSpec(method, names, [types[arg] for arg in names], **config)

    @staticmethod
    def from_torch(args: Sequence[Any], method: Callable[..., Any]) -> MethodSpec:
        """Creates the spec of a method from example arguments: tensors of PyTorch and ints."""
        names = list(inspect.signature(method).parameters)
        if len(names) != len(args):
            raise TypeError(f"the method has {len(names)} arguments, but {len(args)} examples are given")
        specs: list[Any] = []
        for name, arg in zip(names, args, strict=True):
            if isinstance(arg, int):
                specs.append(Int())
            elif hasattr(arg, "shape") and hasattr(arg, "dtype"):
                specs.append(Tensor([int(size) for size in arg.shape], str(arg.dtype).rsplit(".", 1)[-1]))
            else:
                raise TypeError(f"the example of the argument '{name}' must be a tensor or an int, got {type(arg).__name__}")
        return MethodSpec(method, names, specs)


class ModuleSpec:
    """The methods of a module to export, and the types of their arguments."""

    def __init__(self, module: Module, method_names: Sequence[str], method_specs: Sequence[MethodSpec]) -> None:
        self.module = module
        self.method_names = list(method_names)
        self.method_specs = list(method_specs)

    @staticmethod
    def from_raw(spec: ModuleSpecType, module: Module) -> ModuleSpec:
        """Creates the spec of a module from a dict from method names to the specs of methods.

        Raises ``TypeError`` for an invalid spec, and ``AttributeError`` if the module has no such method.
        """
        if isinstance(spec, ModuleSpec):
            return spec
        if not isinstance(spec, Mapping):
            raise TypeError(f"the spec of a module must be a dict from method names to specs, got {spec!r}")
        methods = []
        for name, method_spec in spec.items():
            method = getattr(module, name, None)
            if method is None and not isinstance(method_spec, MethodSpec):
                known = [m for m in dir(module) if not m.startswith("_") and callable(getattr(module, m))]
                raise AttributeError(f"{type(module).__name__} has no method '{name}' ({_suggestion(name, known)})")
            methods.append(MethodSpec.from_raw(method_spec, method))  # type: ignore[arg-type]
        return ModuleSpec(module, list(spec), methods)

    def __repr__(self) -> str:
        methods = zip(self.method_names, self.method_specs, strict=True)
        return "\n".join(["ModuleSpec:", *(f"  {spec._repr(name)}" for name, spec in methods)])


def _suggestion(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known) or 'none'}"


__all__ = ["ArgSpec", "Int", "MethodSpec", "ModuleSpec", "Object", "Tensor", "Tuple"]
