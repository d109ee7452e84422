"""Operators that sample tokens from probability distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant import te, tir
from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Tensor, wrap_nested
from pliant.relax.frontend.nn.op._calls import tensor_expr_op
from pliant.relax.frontend.nn.op._elementwise import divide
from pliant.relax.frontend.nn.op._elementwise import sum as sum_of
from pliant.relax.frontend.nn.op._shapes import cumsum


def _sample_indices(given: Tensor | None, uniform_sample: Tensor, batch: Any) -> Tensor:
    """The row of each sample: the given ones, or one sample per row."""
    if given is not None:
        if [str(d) for d in given.shape] != [str(d) for d in uniform_sample.shape]:
            raise ValueError(f"sample_indices must have the shape of uniform_sample, {uniform_sample.shape}, not {given.shape}")
        return given
    count = uniform_sample.shape[0]
    if str(count) != str(batch):
        raise ValueError(
            f"without sample_indices, there must be one sample per row, but there are {count} samples and {batch} rows"
        )
    if isinstance(count, int):
        return Tensor.from_const(np.arange(count, dtype="int64").reshape(count, 1))
    return wrap_nested(_op.expand_dims(_op.arange(0, count, 1, "int64"), 1), "sample_indices")


def multinomial_from_uniform(
    prob: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
    dtype: str = "int64",
    name: str = "multinomial_from_uniform",
) -> Tensor:
    """Samples indices from distributions. ``prob`` has the shape ``(batch, vocab)``; each row sums to 1. Sample ``i`` is the first
    index in row ``sample_indices[i, 0]`` whose cumulative probability exceeds ``uniform_sample[i, 0]``, a number from 0 to 1. By
    default, there is one sample per row. The result has the shape ``(n, 1)`` and the type ``dtype``."""
    indices = _sample_indices(sample_indices, uniform_sample, prob.shape[0])
    return wrap_nested(
        _op.multinomial_from_uniform(prob._expr, uniform_sample._expr, indices._expr, dtype), name
    )


def _kept(cumulative: Any, top_p: Any, top_k: Any, i: Any, j: Any) -> Any:
    """Whether the token of rank ``j`` in row ``i`` is sampled. The first token always is; another one if the tokens before it have
    neither the probability ``top_p`` nor the number ``top_k``."""
    before = tir.max(j - 1, 0)
    return tir.any(j == 0, tir.all(cumulative[i, before] < top_p[i, 0], j < top_k[i, 0].astype("int64")))


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor,
    sorted_index: Tensor,
    top_p: Tensor,
    top_k: Tensor,
    uniform_sample: Tensor,
    sample_indices: Tensor | None = None,
) -> Tensor:
    """Samples tokens from the most probable ones: the smallest number of tokens with the total probability ``top_p``, but at most
    ``top_k``.

    ``sorted_prob`` and ``sorted_index`` have the shape ``(batch, vocab)``: the probabilities in descending order, and their tokens.
    ``top_p`` and ``top_k`` have the shape ``(batch, 1)``. The other arguments are those of :func:`multinomial_from_uniform`.
    The result has the shape ``(n, 1)`` and the type of ``sorted_index``.
    """
    indices = _sample_indices(sample_indices, uniform_sample, sorted_prob.shape[0])
    cumulative = cumsum(sorted_prob, axis=1)

    def total(cumulative: Any, top_p: Any, top_k: Any) -> Any:
        batch, vocab = cumulative.shape
        j = te.reduce_axis((0, vocab), "j")
        return te.compute(
            (batch, 1),
            lambda i, _: te.max(
                tir.Select(_kept(cumulative, top_p, top_k, i, j), cumulative[i, j], tir.const(0, cumulative.dtype)), axis=j
            ),
            name="kept_probability",
        )

    def rank(cumulative: Any, kept: Any, uniform: Any, rows: Any) -> Any:
        vocab = cumulative.shape[1]
        j = te.reduce_axis((0, vocab), "j")

        def below(i: Any) -> Any:
            row = rows[i, 0].astype("int64")
            reached = uniform[i, 0] >= cumulative[row, j] / kept[row, 0]
            return te.sum(tir.Select(reached, tir.const(1, "int64"), tir.const(0, "int64")), axis=j)

        return te.compute((uniform.shape[0], 1), lambda i, _: below(i), name="sampled_rank")

    def token(ranks: Any, tokens: Any, rows: Any) -> Any:
        last = tokens.shape[1] - 1
        return te.compute(
            (ranks.shape[0], 1),
            lambda i, _: tokens[rows[i, 0].astype("int64"), tir.min(ranks[i, 0], last)],
            name="sampled_token",
        )

    kept = tensor_expr_op(total, "top_p_top_k_probability", [cumulative, top_p, top_k])
    ranks = tensor_expr_op(rank, "sample_rank", [cumulative, kept, uniform_sample, indices])
    return tensor_expr_op(token, "sample_token", [ranks, sorted_index, indices])


def renormalize_top_p_top_k_prob(prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor) -> Tensor:
    """Sets the probabilities of all but the most probable tokens to 0, and scales the others to the sum 1. The tokens that
    remain are those of :func:`sample_top_p_top_k_from_sorted_prob`, and those with the same probability as the last of them.
    ``prob`` and ``sorted_prob`` have the shape ``(batch, vocab)``, ``top_p`` and ``top_k`` the shape ``(batch, 1)``."""

    def cutoff(ordered: Any, cumulative: Any, top_p: Any, top_k: Any) -> Any:
        batch, vocab = ordered.shape
        j = te.reduce_axis((0, vocab), "j")
        largest = tir.max_value(ordered.dtype)
        return te.compute(
            (batch, 1),
            lambda i, _: te.min(tir.Select(_kept(cumulative, top_p, top_k, i, j), ordered[i, j], largest), axis=j),
            name="smallest_kept",
        )

    def filtered(prob: Any, smallest: Any) -> Any:
        zero = tir.const(0, prob.dtype)
        return te.compute(
            prob.shape, lambda i, j: tir.Select(prob[i, j] >= smallest[i, 0], prob[i, j], zero), name="filtered"
        )

    smallest = tensor_expr_op(cutoff, "top_p_top_k_cutoff", [sorted_prob, cumsum(sorted_prob, axis=1), top_p, top_k])
    kept = tensor_expr_op(filtered, "filter_with_top_p_top_k", [prob, smallest])
    return divide(kept, sum_of(kept, axis=1, keepdims=True))


__all__ = ["multinomial_from_uniform", "renormalize_top_p_top_k_prob", "sample_top_p_top_k_from_sorted_prob"]
