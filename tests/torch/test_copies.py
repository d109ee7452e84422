"""Copies, pickles and files of compiled torch models."""

from __future__ import annotations

import asyncio
import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from comparing import Function, same_results
from torch import nn
from torch.export import Dim

import pliant
from pliant.frontend.torch.torch_model import TorchModel


class Normalized(nn.Module):
    """A module whose results have a structure and whose buffers change."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor, *, data: dict[str, torch.Tensor]) -> dict[str, Any]:
        return {"y": self.norm(self.linear(x)) * data["scale"], "rest": (None, x)}


def compiled() -> Any:
    kwargs = {"data": {"scale": torch.ones(())}}
    return pliant.compile(Normalized(), torch.ones(3, 4), kwargs=kwargs, dynamic_shapes={"x": {0: Dim("n")}, "data": {"scale": {}}})


def pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_have_state_of_their_own(copied: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]) -> None:
    model, x, data = compiled(), torch.randn(5, 4), {"scale": torch.tensor(2.0)}
    model(x, data=data)
    other = copied(model)
    assert isinstance(other, TorchModel)
    before = {name: buffer.clone() for name, buffer in model.buffers.items()}
    expected = other(x, data=data)
    same_results(model.buffers, before)
    same_results(model(x, data=data), expected)
    same_results(model.buffers, other.buffers)
    other.explain_shapes()
    assert "n: 0 .. any size" in capsys.readouterr().out


def test_asynchronous_calls() -> None:
    model = compiled()
    result = asyncio.run(model.arun(torch.ones(2, 4), data={"scale": torch.ones(())}))
    assert result["y"].shape == (2, 4) and result["rest"][0] is None


def test_saved_models_take_flat_arguments(tmp_path: Path) -> None:
    module, x = nn.Linear(4, 2), torch.randn(3, 4)
    pliant.compile(module, (x,)).save(str(tmp_path / "model.plx"))
    (result,) = pliant.load(str(tmp_path / "model.plx"))(x)
    same_results(torch.from_dlpack(result), module(x).detach())


LOAD = """
import pickle, sys, torch, pliant
class Normal(torch.nn.Module):
    def forward(self, x):
        return torch.randn_like(x)
pliant.compile(Normal(), (torch.ones(2),))(torch.ones(2))
try:
    pickle.load(open(sys.argv[1], "rb"))(torch.ones(2))
except pliant.PliantError as error:
    print(error)
"""


def test_random_numbers_of_another_process(tmp_path: Path) -> None:
    model = pliant.compile(Function(torch.rand_like), (torch.ones(2),))
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps(model))
    run = subprocess.run([sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True)
    assert "pliant.torch." in run.stdout and "registered" in run.stdout
