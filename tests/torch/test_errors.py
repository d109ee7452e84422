"""Errors name the operator, the argument or the source line."""

from __future__ import annotations

import pytest
import torch
from comparing import Function
from torch.export import Dim

import pliant
from pliant.error import CompileError, UnsupportedError


class Unsupported(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.special.airy_ai(x)
        z = torch.special.airy_ai(y)
        return torch.mode(z)[0]


def test_all_unsupported_operators_are_reported_at_once() -> None:
    with pytest.raises(UnsupportedError) as error:
        pliant.compile(Unsupported(), (torch.ones(3),))
    text = str(error.value)
    assert "2 unsupported operators" in text and "aten.special_airy_ai.default (2 nodes)" in text
    assert "aten.mode.default (1 node)" in text and "test_errors.py" in text and "torch.mode(z)" in text


def test_module_without_example_inputs() -> None:
    with pytest.raises(TypeError, match="example inputs"):
        pliant.compile(torch.nn.Linear(2, 2))


def test_module_that_cannot_be_exported() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(CompileError, match="torch cannot export"):
        pliant.compile(Function(function), (torch.ones(3),))


def test_dynamic_shapes_that_do_not_fit() -> None:
    module, x = torch.nn.Linear(4, 2), torch.ones(1, 4)
    with pytest.raises(CompileError, match=r"declares axis 7, but the example input of shape \(1, 4\) has 2 axes"):
        pliant.compile(module, (x,), dynamic_shapes=({7: Dim("n")},))
    for shapes in ({0: Dim("n")}, {"other": {0: Dim("n")}}, ({0: Dim("n")}, None), Dim("n"), (Dim("n"),), ({0: "n"},)):
        with pytest.raises(CompileError, match="torch cannot export Linear"):
            pliant.compile(module, (x,), dynamic_shapes=shapes)
    with pytest.raises(CompileError, match="specialized it to be a constant"):
        pliant.compile(module, (x,), dynamic_shapes=({1: Dim("k")},))


def test_wrong_inputs() -> None:
    model = pliant.compile(torch.nn.Linear(4, 2), (torch.ones(2, 4),), dynamic_shapes=({0: Dim("n")},))
    with pytest.raises(pliant.ShapeError, match="input"):
        model(torch.ones(2, 5))
    with pytest.raises(pliant.DTypeError, match="input"):
        model(torch.ones(2, 4, dtype=torch.float64))
    with pytest.raises(TypeError, match="structure"):
        model(torch.ones(2, 4), torch.ones(2))


def test_tensors_outside_of_memory() -> None:
    model = pliant.compile(torch.nn.Linear(4, 2), (torch.ones(2, 4),))
    with pytest.raises(pliant.error.CallError, match="input is a tensor on the device meta"):
        model(torch.ones(2, 4, device="meta"))
    with pytest.raises(pliant.error.CallError, match="to_dense"):
        model(torch.ones(2, 4).to_sparse())


def test_changed_constant_argument() -> None:
    model = pliant.compile(Function(lambda x, scale: x * scale), (torch.ones(2), 3.0))
    assert model(torch.ones(2), 3.0).tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match="constant 3.0"):
        model(torch.ones(2), 4.0)


def test_options_of_modules_are_rejected_for_programs() -> None:
    program = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(2, 4),))
    with pytest.raises(TypeError, match="dynamic_shapes"):
        pliant.compile(program, dynamic_shapes={})
    with pytest.raises(TypeError, match="export"):
        pliant.frontend.torch.from_exported_program(torch.nn.Linear(4, 2))
