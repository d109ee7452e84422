"""The packed functions with which TVM's programs sample tokens. Functions that change logits do so in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant._core import NDArray

Array = np.ndarray[Any, Any]


def _row(logits: NDArray) -> Array:
    """The logits of one distribution as a vector that shares their memory. Raises ``ValueError`` for several distributions."""
    array = logits.numpy()
    if array.ndim == 0 or array.size != array.shape[-1]:
        raise ValueError(f"expected the logits or probabilities of one token, got an array of shape {array.shape}")
    return array.reshape(-1)


def _softmax(logits: Array, temperature: float) -> Array:
    """The probabilities of logits. At temperatures near 0, the largest logit has the probability 1."""
    if temperature < 1e-6:
        return (np.arange(logits.size) == logits.argmax()).astype(logits.dtype)
    scaled = (logits - logits.max()) / logits.dtype.type(temperature)
    weights = np.exp(scaled)
    return weights / weights.sum()


def _sample(prob: Array, top_p: float, uniform: float) -> int:
    """Samples from the smallest number of tokens whose probability is at least ``top_p``."""
    order = np.argsort(-prob, kind="stable")
    cumulative = np.cumsum(prob[order].astype(np.float64))
    count = min(int(np.searchsorted(cumulative, top_p)) + 1, prob.size)
    rank = int(np.searchsorted(cumulative[:count], uniform * cumulative[count - 1], side="right"))
    return int(order[min(rank, count - 1)])


def sample_top_p_from_logits(logits: NDArray, temperature: float, top_p: float, uniform: float) -> int:
    """Samples a token. ``uniform`` is a random number from 0 to 1."""
    return _sample(_softmax(_row(logits), float(temperature)), float(top_p), float(uniform))


def sample_top_p_from_prob(prob: NDArray, top_p: float, uniform: float) -> int:
    """Samples a token from probabilities. ``uniform`` is a random number from 0 to 1."""
    return _sample(_row(prob), float(top_p), float(uniform))


def apply_softmax_with_temperature(logits: NDArray, temperature: float) -> None:
    """Replaces logits by probabilities."""
    row = _row(logits)
    row[:] = _softmax(row, float(temperature))


def apply_repetition_penalty(logits: NDArray, token_ids: NDArray, penalty: float) -> None:
    """Divides the positive logits of tokens by ``penalty``, and multiplies the others by it."""
    row, ids = _row(logits), np.unique(token_ids.numpy().reshape(-1))
    chosen = row[ids]
    row[ids] = np.where(chosen <= 0, chosen * penalty, chosen / penalty)


def apply_presence_and_frequency_penalty(
    logits: NDArray, token_ids: NDArray, token_freqs: NDArray, presence_penalty: float, frequency_penalty: float
) -> None:
    """Reduces the logits of distinct tokens by ``presence_penalty``, and by ``frequency_penalty`` for each occurrence."""
    row, ids = _row(logits), token_ids.numpy().reshape(-1)
    row[ids] -= presence_penalty + token_freqs.numpy().reshape(-1) * frequency_penalty


__all__ = [
    "apply_presence_and_frequency_penalty",
    "apply_repetition_penalty",
    "apply_softmax_with_temperature",
    "sample_top_p_from_logits",
    "sample_top_p_from_prob",
]
