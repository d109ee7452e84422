"""Compares compiled modules with eager execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import pliant
from pliant.frontend.torch.torch_model import TorchModel

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def same_results(actual: Any, expected: Any, tolerance: dict[str, float] | None = None) -> None:
    """Raises ``AssertionError`` unless values, data types and structure agree."""
    torch.testing.assert_close(actual, expected, equal_nan=True, **(tolerance or TOLERANCE))


def check_module(
    module: torch.nn.Module, examples: tuple[Any, ...], shapes: Any, inputs: Sequence[tuple[Any, ...]], tolerance: Any = None
) -> TorchModel:
    """Compiles a module once, and compares it with eager execution for all inputs."""
    module = module.eval()
    model = pliant.compile(module, examples, dynamic_shapes=shapes)
    for args in inputs:
        with torch.no_grad():
            expected = module(*args)
        same_results(model(*args), expected, tolerance)
    assert model.stats().compilations == 1
    assert isinstance(model, TorchModel)
    return model


def check_function(function: Callable[..., Any], examples: tuple[Any, ...], shapes: Any, inputs: Sequence[tuple[Any, ...]]) -> TorchModel:
    """As :func:`check_module`, for a function."""
    return check_module(Function(function), examples, (shapes,), inputs)
