"""Programs of ``torch.export.load``, which have no record of their symbols, and the bounds of dims without names."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from comparing import Function, same_results
from torch import nn
from torch.export import Dim, ExportedProgram

import pliant
from pliant.error import AssertionFailed, CompileError


def saved_and_loaded(program: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def reloaded(function: Any, args: tuple[Any, ...], shapes: Any) -> Any:
    module = function if isinstance(function, nn.Module) else Function(function)
    return pliant.compile(saved_and_loaded(torch.export.export(module, args, dynamic_shapes=(shapes,))))


def branches(data: dict[str, torch.Tensor]) -> torch.Tensor:
    x = data["A key"]
    return x + 1 if 3 < x.shape[0] < 10 and x.shape[0] * 2 != 14 and x.shape[0] % 2 == 0 else x


def test_guards_of_loaded_programs_are_checked() -> None:
    model = reloaded(branches, ({"A key": torch.ones(6)},), ({"A key": {0: Dim.AUTO}},))
    for n in (4, 6, 8):
        assert model({"A key": torch.ones(n)}).tolist() == [2.0] * n
    for n in (2, 3, 5, 7, 10):
        with pytest.raises(AssertionFailed):
            model({"A key": torch.ones(n)})


def test_guards_between_arguments_of_loaded_programs() -> None:
    model = reloaded(lambda x, y: x + 1 if x.shape[0] > 2 * y.shape[0] else x, (torch.ones(7), torch.ones(3)), ({0: Dim.AUTO}, {0: Dim.AUTO}))
    same_results(model(torch.ones(9), torch.ones(4)), torch.full((9,), 2.0))
    with pytest.raises(AssertionFailed, match=r"args_0.size\(\)\[0\]"):
        model(torch.ones(8), torch.ones(4))


@pytest.mark.parametrize("dim", [Dim("batch", min=3, max=9), Dim.AUTO(min=3, max=9)])
def test_bounds(dim: Any) -> None:
    program = torch.export.export(nn.Linear(4, 2), (torch.ones(5, 4),), dynamic_shapes=({0: dim},))
    for model in (pliant.compile(program), pliant.compile(saved_and_loaded(program))):
        assert model(torch.ones(3, 4)).shape == (3, 2)
        for n in (2, 10):
            with pytest.raises(AssertionFailed):
                model(torch.ones(n, 4))


def test_declared_bounds_of_1_and_2() -> None:
    for least in (1, 2):
        shapes = ({0: Dim("batch", min=least)},)
        model = pliant.compile(nn.Linear(4, 2), (torch.ones(5, 4),), dynamic_shapes=shapes)
        assert model(torch.ones(least, 4)).shape == (least, 2)
        with pytest.raises(AssertionFailed, match=f"batch must be at least {least}"):
            model(torch.ones(least - 1, 4))


class SharedBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        buffer = torch.ones(2)
        self.register_buffer("first", buffer)
        self.register_buffer("second", buffer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.first.add_(1)
        return x + self.second


def test_programs_that_torch_cannot_decompose() -> None:
    with pytest.raises(CompileError, match="torch cannot decompose the exported program"):
        pliant.compile(SharedBuffer(), (torch.ones(2),))


def test_parameters_on_the_device_meta() -> None:
    with pytest.raises(CompileError, match=r"shape \(2, 4\) is on the device meta"):
        pliant.compile(nn.Linear(4, 2, device="meta"), (torch.ones(3, 4, device="meta"),))
