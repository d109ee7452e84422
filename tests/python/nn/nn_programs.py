"""Helpers of the tests of the nn front end: run a function of ``nn`` tensors on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pliant.relax.frontend import nn


class FunctionModule(nn.Module):
    """A module without parameters."""


def evaluate(
    function: Callable[..., Any],
    arrays: Sequence[np.ndarray[Any, Any]],
    dims: Sequence[Sequence[int | str]] | None = None,
) -> Any:
    """Exports a function of tensors, compiles it and runs it. ``dims`` are the dims of the arguments, by default the sizes."""
    names = [f"x{i}" for i in range(len(arrays))]
    shapes = [list(array.shape) for array in arrays] if dims is None else dims
    specs = [nn.spec.Tensor(shape, str(array.dtype)) for shape, array in zip(shapes, arrays, strict=True)]

    def call(**tensors: Any) -> Any:
        return function(*tensors.values())

    module = FunctionModule()
    spec = nn.spec.ModuleSpec(module, ["main"], [nn.spec.MethodSpec(call, names, specs)])
    return module.jit(spec, out_format="numpy")["main"](*arrays)


def run_module(
    module: nn.Module,
    arrays: Sequence[np.ndarray[Any, Any]],
    dims: Sequence[Sequence[int | str]] | None = None,
    seed: int = 0,
) -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    """Sets the parameters of a module to random elements and runs ``forward``. Returns the result and the parameters."""
    rng = np.random.default_rng(seed)
    params = {}
    for name, param in module.named_parameters():
        params[name] = rng.standard_normal(param.shape).astype(param.dtype)
        param.data = params[name]
    shapes = [list(array.shape) for array in arrays] if dims is None else dims
    names = [f"x{i}" for i in range(len(arrays))]
    specs = [nn.spec.Tensor(shape, str(array.dtype)) for shape, array in zip(shapes, arrays, strict=True)]

    def call(**tensors: Any) -> Any:
        return module(*tensors.values())

    spec = nn.spec.ModuleSpec(module, ["main"], [nn.spec.MethodSpec(call, names, specs)])
    return module.jit(spec, out_format="numpy")["main"](*arrays), params


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """Random float32 elements."""
    return rng.standard_normal(shape).astype("float32")
