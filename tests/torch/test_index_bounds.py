"""Indices that are negative or too large: an error where torch raises one, and the same result where negative indices are valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from comparing import Function, same_results
from torch.export import Dim

import pliant

ROWS = torch.arange(12.0).reshape(4, 3)

REJECTING: dict[str, Callable[[torch.Tensor], Any]] = {
    "embedding": lambda i: F.embedding(i, ROWS),
    "embedding_bag": lambda i: F.embedding_bag(i[None], ROWS),
    "index_select": lambda i: ROWS.index_select(0, i),
    "gather": lambda i: ROWS.gather(0, i[:, None].expand(-1, 3)),
    "scatter": lambda i: ROWS.scatter(0, i[:, None].expand(-1, 3), 9.0),
    "scatter_add": lambda i: ROWS.scatter_add(0, i[:, None].expand(-1, 3), torch.ones(i.shape[0], 3)),
    "scatter_reduce": lambda i: ROWS.scatter_reduce(0, i[:, None].expand(-1, 3), torch.ones(i.shape[0], 3), "amax"),
    "index_add": lambda i: ROWS.index_add(0, i, torch.ones(i.shape[0], 3)),
    "index_copy": lambda i: ROWS.index_copy(0, i, torch.ones(i.shape[0], 3)),
    "one_hot": lambda i: F.one_hot(i, 4),
    "nll_loss": lambda i: F.nll_loss(ROWS[: i.shape[0]], i, reduction="none"),
}
COUNTING_FROM_THE_END: dict[str, Callable[[torch.Tensor], Any]] = {
    "index": lambda i: ROWS[i],
    "index_fill": lambda i: ROWS.index_fill(0, i, 9.0),
    "take": lambda i: ROWS.take(i),
    "take_along_dim": lambda i: torch.take_along_dim(ROWS, i[:, None].expand(-1, 3), 0),
    "put": lambda i: ROWS.put(i, torch.ones(i.shape[0])),
    "index_put": lambda i: ROWS.index_put((i,), torch.ones(i.shape[0], 3)),
}


def compiled(function: Callable[[torch.Tensor], Any]) -> pliant.Model:
    """A function of an index vector of two elements, or of any size."""
    return pliant.compile(Function(function), (torch.tensor([0, 1]),))


@pytest.mark.parametrize("name", REJECTING)
def test_indices_out_of_range_are_errors(name: str) -> None:
    function = REJECTING[name]
    model = compiled(function)
    for indices in ([0, 1], [2, 2], [1, 0]):
        same_results(model(torch.tensor(indices)), function(torch.tensor(indices)))
    for indices in ([-1, 0], [0, 4] if name != "nll_loss" else [0, 3]):
        with pytest.raises((RuntimeError, IndexError)):
            function(torch.tensor(indices))
        with pytest.raises((pliant.VMError, IndexError), match=r"out of range|bounds"):
            model(torch.tensor(indices))


@pytest.mark.parametrize("name", COUNTING_FROM_THE_END)
def test_negative_indices_count_from_the_end(name: str) -> None:
    function = COUNTING_FROM_THE_END[name]
    model = compiled(function)
    for indices in ([-1, 0], [-4, 3]):
        same_results(model(torch.tensor(indices)), function(torch.tensor(indices)))
    with pytest.raises((pliant.VMError, IndexError), match="out of range"):
        model(torch.tensor([0, 12 if name in ("take", "put") else 4]))


def test_ignored_targets_of_a_loss_are_no_indices() -> None:
    scores, targets = torch.randn(4, 3), torch.tensor([-100, 0, 2, -100])
    model = pliant.compile(Function(F.cross_entropy), (scores, targets))
    same_results(model(scores, targets), F.cross_entropy(scores, targets))


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("scale", [1.1, 1.7, 0.3, 2.0, 0.9])
def test_nearest_positions_are_rounded_as_in_torch(mode: str, scale: float) -> None:
    def resize(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=scale, mode=mode)

    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        model = pliant.compile(Function(resize), (torch.ones(1, 1, 20, 21, dtype=dtype),))
        x = torch.arange(20.0 * 21).reshape(1, 1, 20, 21).to(dtype)
        same_results(model(x), resize(x))


def test_nearest_positions_at_dynamic_sizes() -> None:
    def resize(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=1.1, mode="nearest")

    model = pliant.compile(Function(resize), (torch.ones(1, 1, 10),), dynamic_shapes=(({2: Dim("n")},),))
    for n in range(1, 60):
        x = torch.arange(float(n))[None, None]
        same_results(model(x), resize(x))
