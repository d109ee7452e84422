"""Small layers for tests: placeholders, parameters and modules whose calls emit bindings into the current block builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pliant import _core, topi
from pliant.relax.block_builder import BlockBuilder
from pliant.runtime import NDArray, tensor

__all__ = [
    "Linear",
    "Module",
    "Parameter",
    "Placeholder",
    "ReLU",
    "LogSoftmax",
    "Sequential",
    "Sigmoid",
    "Tanh",
    "emit",
    "emit_checkpoint",
    "emit_te",
    "init_params",
]

_relax = _core.relax


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise ValueError("no function is open (help: call this inside 'with bb.function(...)')")
    return builder


def _unique(name: str) -> str:
    builder = BlockBuilder.current()
    return builder.get_unique_name(name) if builder is not None else name


def emit(expr: Any, name_hint: str = "") -> Any:
    """Binds an expression to a new variable of the current function and returns the variable."""
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Emits a call of a tensor expression in the current function. See ``BlockBuilder.emit_te``."""
    return _builder().emit_te(func, *args, **kwargs)


class Placeholder(_relax.Var):  # type: ignore[misc]
    """An input of a function: a variable with a shape and a data type."""

    def __new__(cls, shape: Sequence[Any] | None, dtype: str | None = "float32", ndim: int = -1, name: str = "data") -> Any:
        info = _relax.TensorStructInfo(None if shape is None else list(shape), dtype, ndim=ndim)
        return _relax.Var(_unique(name), info)


class Parameter(_relax.Var):  # type: ignore[misc]
    """A parameter of a layer: a variable with a shape and a data type."""

    def __new__(cls, shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> Any:
        return _relax.Var(_unique(name), _relax.TensorStructInfo(list(shape), dtype))


def _parameters_in(value: Any) -> list[Any]:
    if isinstance(value, _relax.Var):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    if isinstance(value, dict):
        return [p for v in value.values() for p in _parameters_in(v)]
    if isinstance(value, list | tuple):
        return [p for v in value for p in _parameters_in(v)]
    return []


class Module:
    """The base of layers. ``forward`` emits the bindings of a call."""

    def __init__(self) -> None:
        self._params: list[Any] = []

    def parameters(self) -> list[Any]:
        """Returns the parameters of this layer and of the layers in its attributes."""
        return _parameters_in([value for name, value in vars(self).items() if name != "_params"])

    def forward(self, *inputs: Any) -> Any:
        """Emits a call of the layer. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.forward(*inputs, **options)


class Sequential(Module):
    """Layers that are applied one after another."""

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        self.modules = list(modules)

    def forward(self, input: Any) -> Any:
        """Applies the layers in order."""
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    """The layer ``max(x, 0)``."""

    def forward(self, input: Any) -> Any:
        """Emits a call of the layer."""
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    """The layer ``log_softmax``."""

    def forward(self, input: Any) -> Any:
        """Emits a call of the layer."""
        return emit_te(topi.nn.log_softmax, input)


class Sigmoid(Module):
    """The layer ``sigmoid``."""

    def forward(self, input: Any) -> Any:
        """Emits a call of the layer."""
        return emit_te(topi.sigmoid, input)


class Tanh(Module):
    """The layer ``tanh``."""

    def forward(self, input: Any) -> Any:
        """Emits a call of the layer."""
        return emit_te(topi.tanh, input)


class Linear(Module):
    """The layer ``x @ weight + bias``."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: Any) -> Any:
        """Emits a call of the layer."""
        result = emit_te(topi.matmul, input, self.weight)
        return result if self.bias is None else emit_te(topi.add, result, self.bias)


def emit_checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Emits a call of a function of expressions. Its values are recomputed in the gradient instead of stored."""
    return func(*args, **kwargs)


def init_params(mod: Any, func: str = "main") -> list[NDArray]:
    """Returns random values for the parameters of a function with known sizes."""
    generator = np.random.default_rng(0)
    values = []
    for param in mod[func].params:
        shape = [int(size) for size in param.struct_info.shape.values]
        values.append(tensor(generator.random(shape).astype(param.struct_info.dtype)))
    return values
