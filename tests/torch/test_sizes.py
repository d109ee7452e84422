"""Sizes at which torch computes something else than at the sizes of the example inputs, and sizes that floats define."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from comparing import Function, check_function, same_results
from torch.export import Dim

import pliant
from pliant.error import AssertionFailed, CompileError, UnsupportedError
from pliant.frontend.torch import any_size
from pliant.frontend.torch.dynamo_backend import pliant as backend

ROWS = ({0: Dim.AUTO},)


def rows(*counts: int) -> list[tuple[torch.Tensor]]:
    return [(torch.randn(n, 3),) for n in counts]


@pytest.mark.parametrize("dims", [(), (0,), ((0, 1),)])
def test_squeeze_rejects_size_1_of_a_symbolic_dim(dims: Any) -> None:
    model = check_function(lambda x: x.squeeze(*dims), (torch.ones(4, 3),), ROWS, rows(5, 0, 2))
    with pytest.raises(AssertionFailed, match="squeeze keeps dim 0"):
        model(torch.ones(1, 3))


def test_squeeze_of_other_dims() -> None:
    check_function(lambda x: (x[:, :1].squeeze(-1), x.squeeze(1), x.sum().squeeze()), (torch.ones(4, 3),), ROWS, rows(1, 5, 0))


def test_squeeze_under_torch_compile() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.squeeze(0) + 1, backend=backend, dynamic=True)
    with any_size():
        same_results(compiled(torch.ones(3, 2)), torch.full((3, 2), 2.0))
        with pytest.raises(AssertionFailed, match="squeeze keeps dim 0"):
            compiled(torch.ones(1, 2))


def test_fewer_parts_than_traced() -> None:
    model = check_function(lambda x: x.chunk(3), (torch.ones(8, 3),), ROWS, rows(9, 5, 3, 0))
    with pytest.raises(AssertionFailed, match="traced for 3 parts"):
        model(torch.ones(4, 3))


def test_strided_views_of_tensors_that_are_not_contiguous() -> None:
    module, x = Function(lambda x: x.as_strided((2, 2), (1, 2))), torch.randn(3, 4)
    same_results(pliant.compile(module, (x,))(x), module(x))
    with pytest.raises(CompileError, match="not contiguous"):
        pliant.compile(Function(lambda x: x.t().as_strided((2, 2), (1, 2))), (x,))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="not contiguous"):
        torch.compile(lambda x: (x + 1).t().as_strided((2, 2), (1, 2)) * 2, backend=backend)(x)


@pytest.mark.parametrize("scale", [1.7, 0.1, 1 / 3, 2.5])
def test_scaled_sizes_are_those_of_doubles(scale: float) -> None:
    module = Function(lambda x: torch.nn.functional.interpolate(x, scale_factor=scale, mode="bilinear"))
    model = pliant.compile(module, (torch.ones(1, 1, 50, 20),), dynamic_shapes=(({2: Dim.AUTO},),))
    for n in (10, 11, 20, 100, 1210, 5000):
        image = torch.randn(1, 1, n, 20)
        assert model(image).shape == module(image).shape


def test_scaled_sizes_that_depend_on_the_rounding_of_floats() -> None:
    module = Function(lambda x: torch.nn.functional.interpolate(x, scale_factor=0.29))
    with pytest.raises(UnsupportedError, match=r"a size times 0.29 depends on the rounding of floats"):
        pliant.compile(module, (torch.ones(1, 1, 50, 50),), dynamic_shapes=(({2: Dim.AUTO, 3: Dim.AUTO},),))
