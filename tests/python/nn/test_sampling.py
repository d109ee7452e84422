"""Tests the operators that sample tokens against loops over the tokens in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn_programs import evaluate

import pliant
from pliant.relax.frontend import nn
from pliant.runtime import ShapeTuple


def _distributions(rng: np.random.Generator, batch: int, vocab: int) -> Any:
    weights = rng.random((batch, vocab)) + 0.01
    return (weights / weights.sum(1, keepdims=True)).astype("float32")


def _kept(sorted_row: Any, top_p: float, top_k: int) -> int:
    """The number of tokens that are sampled."""
    count, total = 1, float(sorted_row[0])
    while count < len(sorted_row) and total < top_p and count < top_k:
        total += float(sorted_row[count])
        count += 1
    return count


@pytest.mark.parametrize(("batch", "vocab", "samples"), [(0, 3, 0), (1, 1, 1), (2, 7, 2), (3, 16, 8)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_sampling(batch: int, vocab: int, samples: int, symbolic: bool) -> None:
    rng = np.random.default_rng(5)
    prob = _distributions(rng, batch, vocab)
    order = np.argsort(-prob, 1, kind="stable").astype("int32")
    ordered = np.take_along_axis(prob, order, 1)
    top_p = rng.random((batch, 1)).astype("float32")
    top_k = rng.integers(1, vocab + 1, (batch, 1)).astype("int32")
    uniform = rng.random((samples, 1)).astype("float32")
    rows = (rng.integers(0, batch, (samples, 1)) if batch else np.zeros((0, 1))).astype("int64")
    dims = [("b", "v"), ("b", "v"), ("b", 1), ("b", 1), ("s", 1), ("s", 1)] if symbolic else None

    got = evaluate(nn.sample_top_p_top_k_from_sorted_prob, [ordered, order, top_p, top_k, uniform, rows], dims)
    expected = np.zeros((samples, 1), "int32")
    for i, row in enumerate(rows[:, 0]):
        count = _kept(ordered[row], top_p[row, 0], top_k[row, 0])
        cumulative = np.cumsum(ordered[row][:count])
        rank = int(np.searchsorted(cumulative / cumulative[-1], uniform[i, 0], side="right"))
        expected[i] = order[row, min(rank, vocab - 1)]
    np.testing.assert_array_equal(got, expected)

    got = evaluate(nn.renormalize_top_p_top_k_prob, [prob, ordered, top_p, top_k], dims[:4] if dims else None)
    expected_prob = np.zeros_like(prob)
    for row in range(batch):
        count = _kept(ordered[row], top_p[row, 0], top_k[row, 0])
        kept = prob[row] >= ordered[row, count - 1]
        expected_prob[row, kept] = prob[row, kept] / prob[row, kept].sum()
    np.testing.assert_allclose(got, expected_prob, rtol=1e-5)

    got = evaluate(
        nn.multinomial_from_uniform, [prob, uniform, rows], [("b", "v"), ("s", 1), ("s", 1)] if symbolic else None
    )
    ranks = [min(int((np.cumsum(prob[r]) <= u).sum()), vocab - 1) for r, u in zip(rows[:, 0], uniform[:, 0], strict=True)]
    np.testing.assert_array_equal(got[:, 0], ranks)


@pytest.mark.parametrize("symbolic", [False, True])
def test_one_sample_per_row_by_default(symbolic: bool) -> None:
    prob = np.array([[0.2, 0.3, 0.5], [0.3, 0.4, 0.3]], "float32")
    uniform = np.array([[0.4], [0.9]], "float32")
    dims = [("b", 3), ("b", 1)] if symbolic else None
    got = evaluate(nn.multinomial_from_uniform, [prob, uniform], dims)
    np.testing.assert_array_equal(got, [[1], [2]])


def test_errors_of_sampling() -> None:
    prob, uniform = np.ones((2, 3), "float32"), np.ones((3, 1), "float32")
    with pytest.raises(ValueError, match="3 samples and 2 rows"):
        evaluate(nn.multinomial_from_uniform, [prob, uniform])
    with pytest.raises(ValueError, match="sample_indices must have the shape"):
        evaluate(nn.multinomial_from_uniform, [prob, uniform, np.zeros((2, 1), "int64")])


def _builtin(name: str) -> Any:
    return pliant.get_global_func(f"vm.builtin.{name}")


def test_packed_functions_that_sample() -> None:
    logits = np.log(np.array([[0.1, 0.5, 0.15, 0.25]], "float32"))
    sample = _builtin("sample_top_p_from_logits")
    assert [sample(logits, 1.0, 1.0, u) for u in (0.0, 0.45, 0.55, 0.7, 0.8, 0.95)] == [1, 1, 3, 3, 2, 0]
    assert [sample(logits, 1.0, 0.7, u) for u in (0.0, 0.6, 0.7, 0.99)] == [1, 1, 3, 3]
    assert [sample(logits, 0.0, 1.0, u) for u in (0.0, 0.99)] == [1, 1]
    prob = np.exp(logits)
    assert _builtin("sample_top_p_from_prob")(prob, 0.4, 0.99) == 1

    array = pliant.nd.array(logits)
    _builtin("apply_softmax_with_temperature")(array, 2.0)
    np.testing.assert_allclose(array.numpy(), np.sqrt(prob) / np.sqrt(prob).sum(), rtol=1e-6)

    array = pliant.nd.array(np.array([1, -1, 2, 3], "float32"))
    _builtin("apply_repetition_penalty")(array, pliant.nd.array(np.array([1, 2, 2], "int32")), 2.0)
    np.testing.assert_allclose(array.numpy(), [1, -2, 1, 3])
    ids, counts = (pliant.nd.array(np.array(a, "int32")) for a in ([0, 3], [2, 1]))
    _builtin("apply_presence_and_frequency_penalty")(array, ids, counts, 0.5, 0.25)
    np.testing.assert_allclose(array.numpy(), [0, -2, 1, 2.25])
    with pytest.raises(ValueError, match="of one token"):
        sample(np.ones((2, 3), "float32"), 1.0, 1.0, 0.5)


def test_builtins_as_packed_functions() -> None:
    x = pliant.nd.array(np.arange(6, dtype="float32"))
    reshaped = _builtin("reshape")(x, ShapeTuple([2, 3]))
    assert reshaped.shape == (2, 3)
    assert np.shares_memory(reshaped.numpy(), x.numpy())
    assert not np.shares_memory(_builtin("copy")(x).numpy(), x.numpy())
    assert list(_builtin("shape_of")(reshaped)) == [2, 3]
    pair = _builtin("make_tuple")(x, 3)
    assert _builtin("tuple_getitem")(pair, 1) == 3
