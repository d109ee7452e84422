"""Calls of compiled torch models: how arguments are bound, and which arguments are rejected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from comparing import Function, check_function, same_results
from torch import nn
from torch.export import Dim

import pliant
from pliant.error import CallError, DTypeError
from pliant.frontend.torch.torch_model import TorchModel


def compiled(function: Any, *args: Any) -> TorchModel:
    model = pliant.compile(Function(function), args)
    assert isinstance(model, TorchModel)
    return model


class Difference(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return (left - right) * scale


def test_arguments_are_bound_by_position_or_keyword() -> None:
    left, right, scale = torch.randn(3), torch.randn(3), torch.randn(())
    model = pliant.compile(Difference(), (left, right), kwargs={"scale": scale})
    expected = (left - right) * scale
    same_results(model(left, right, scale=scale), expected)
    same_results(model(left, scale=scale, right=right), expected)
    same_results(model(scale=scale, right=right, left=left), expected)
    with pytest.raises(TypeError, match=r"got \(\*, \*, factor=\*\), expected \(\*, \*, scale=\*\)"):
        model(left, right, factor=scale)
    with pytest.raises(TypeError, match="structure"):
        model(left, right, left=left, scale=scale)


def test_structure_in_messages() -> None:
    model = compiled(lambda pair, data: pair[0] + data["x"], [torch.ones(2), torch.ones(2)], {"x": torch.ones(2)})
    with pytest.raises(TypeError, match=r"got \(\(\*,\), \{'y': \*\}\), expected \(\[\*, \*\], \{'x': \*\}\)"):
        model((torch.ones(2),), {"y": torch.ones(2)})


CONSTANTS = [(2.0, torch.tensor([1.0, 2.0])), (2.0, 2), (1, True), (None, torch.ones(2)), ("a", "b")]


@pytest.mark.parametrize(("constant", "other"), CONSTANTS)
def test_constants_are_compared_by_type_and_value(constant: Any, other: Any) -> None:
    model = compiled(lambda x, k: x * k if isinstance(k, int | float) else x, torch.ones(2), constant)
    model(torch.ones(2), constant)
    with pytest.raises(ValueError, match="constant"):
        model(torch.ones(2), other)


def test_constant_nan_equals_nan() -> None:
    assert compiled(lambda x, k: x * k, torch.ones(2), float("nan"))(torch.ones(2), float("nan")).isnan().all()


def test_complex_and_real_arguments() -> None:
    pairs, numbers = torch.ones(2, 2), torch.ones(2, dtype=torch.complex64)
    with pytest.raises(DTypeError, match="args_0 must be a real tensor"):
        compiled(lambda x: x * 2, pairs)(numbers)
    with pytest.raises(DTypeError, match="args_0 must be a complex tensor"):
        compiled(lambda x: x * 2, numbers)(pairs)


def test_tensors_with_a_pending_negation() -> None:
    x = torch.tensor([1j, 2 - 3j]).conj().imag
    assert x.is_neg()
    same_results(compiled(lambda v: v * 2, torch.ones(2))(x), x * 2)


def test_floats_that_sizes_define() -> None:
    inputs = [(torch.ones(n),) for n in (3, 0)]
    model = check_function(lambda x: (x.shape[0] / 2, x * 1), (torch.ones(4),), ({0: Dim("n")},), inputs)
    assert model(torch.ones(3))[0] == 1.5


def test_mutated_inputs_that_share_memory() -> None:
    model = compiled(lambda x, y: (x.add_(1), y * 2)[1], torch.ones(3), torch.ones(3))
    x = torch.arange(6.0)
    for other in (x[:3], x[2:5]):
        with pytest.raises(CallError, match="overwrites the argument args_0, which shares memory with the argument args_1"):
            model(x[:3], other)
    same_results(model(x[:3], x[3:]), torch.tensor([6.0, 8.0, 10.0]))
    same_results(x, torch.tensor([1.0, 2.0, 3.0, 3.0, 4.0, 5.0]))


def test_mutated_inputs_that_cannot_be_overwritten() -> None:
    model = compiled(lambda x: x.add_(1), torch.ones(3))
    with pytest.raises(CallError, match="some elements of which share memory"):
        model(torch.ones(1).expand(3))
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(CallError, match=r"requires a gradient: call the model under torch.no_grad\(\)"):
        model(x)
    with torch.no_grad():
        model(x)
    same_results(x.detach(), torch.full((3,), 2.0))


def test_mutated_arrays() -> None:
    model = compiled(lambda x: x.add_(1), torch.ones(3))
    x = np.ones(6, np.float32)
    model(x[::-2])
    assert x.tolist() == [1, 2, 1, 2, 1, 2]
    x.flags.writeable = False
    with pytest.raises(CallError, match="read-only"):
        model(x[:3])
    with pytest.raises(CallError, match="is of type NDArray"):
        model(pliant.nd.array(np.ones(3, np.float32)))


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Parameter(torch.zeros(()), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step.add_(1)
        return x * self.step


def test_mutated_parameters() -> None:
    model, module = pliant.compile(Steps(), (torch.ones(2),)), Steps()
    for _ in range(3):
        same_results(model(torch.ones(2)), module(torch.ones(2)))
    assert isinstance(model, TorchModel) and model.buffers["step"] == 3
