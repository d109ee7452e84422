"""Rotary position embeddings (RoPE) over NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from pliant.error import UnsupportedError

Array: TypeAlias = np.ndarray[Any, Any]


def _plain(inverse: Array, scaling: Mapping[str, Any], theta: float) -> Array:
    return inverse


def _llama3(inverse: Array, scaling: Mapping[str, Any], theta: float) -> Array:
    """Divides low frequencies by a factor, and blends between the bounds."""
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    rotations = float(scaling["original_max_position_embeddings"]) * inverse / (2 * math.pi)
    blend = np.clip((rotations - low) / (high - low), 0, 1) if high != low else (rotations >= low).astype(inverse.dtype)
    return (1 - blend) * inverse / float(scaling["factor"]) + blend * inverse


def _yarn(inverse: Array, scaling: Mapping[str, Any], theta: float) -> Array:
    """Divides the frequencies of slow dims by a factor, along a ramp between two dims."""
    half = inverse.shape[0]
    length = float(scaling["original_max_position_embeddings"])

    def dim_of(rotations: float) -> float:
        return half * math.log(length / (rotations * 2 * math.pi)) / math.log(theta)

    low = max(math.floor(dim_of(float(scaling.get("beta_fast", 32)))), 0)
    high = min(math.ceil(dim_of(float(scaling.get("beta_slow", 1)))), 2 * half - 1)
    ramp = np.clip((np.arange(half) - low) / max(high - low, 0.001), 0, 1)
    return inverse * (1 - ramp) + inverse / float(scaling["factor"]) * ramp


def _linear(inverse: Array, scaling: Mapping[str, Any], theta: float) -> Array:
    return inverse / float(scaling["factor"])


_SCALINGS: dict[str, Callable[[Array, Mapping[str, Any], float], Array]] = {
    "default": _plain,
    "gptj": _plain,
    "linear": _linear,
    "llama3": _llama3,
    "llama4": _llama3,
    "longrope": _plain,
    "yarn": _yarn,
}


_INTERLEAVED = ("gptj", "llama4")


def rope_type(scaling: Mapping[str, Any] | None) -> str:
    """The kind of scaling in the ``rope_scaling`` of a model's configuration.

    Raises ``UnsupportedError`` for an unknown kind.
    """
    scaling = scaling or {}
    kind = str(scaling.get("rope_type", scaling.get("type", "default")))
    if kind not in _SCALINGS:
        raise UnsupportedError(f"the rope_type {kind!r} is not supported (there are: {', '.join(_SCALINGS)})")
    return kind


def is_interleaved(scaling: Mapping[str, Any] | None) -> bool:
    """Whether neighbouring dims are rotated together, as in GPT-J, rather than dims of the two halves."""
    return rope_type(scaling) in _INTERLEAVED


def attention_factor(scaling: Mapping[str, Any] | None) -> float:
    """The number by which sines and cosines are multiplied."""
    scaling = scaling or {}
    if "attention_factor" in scaling:
        return float(scaling["attention_factor"])
    if rope_type(scaling) != "longrope" or "max_position_embeddings" not in scaling:
        return 1.0
    original = float(scaling["original_max_position_embeddings"])
    ratio = float(scaling["max_position_embeddings"]) / original
    return math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0


def inverse_frequencies(rotary_dim: int, theta: float, scaling: Mapping[str, Any] | None = None) -> Array:
    """The angle per position of each pair of dims, of shape ``(rotary_dim / 2,)``. ``scaling`` is the ``rope_scaling`` of a model's
    configuration.

    Raises ``UnsupportedError`` for an unknown ``rope_type``, and ``KeyError`` if the configuration lacks a value.
    """
    inverse = 1.0 / theta ** (np.arange(0, rotary_dim, 2) / rotary_dim)
    return _SCALINGS[rope_type(scaling)](inverse, scaling or {}, theta).astype(np.float32)


class RotaryEmbedding:
    """Rotates pairs of dims by an angle proportional to the position. The pairs are dims ``i`` and ``i + rotary_dim / 2``, or
    neighbours if ``interleaved``. Dims after ``rotary_dim`` are not changed. ``factor`` multiplies sines and cosines."""

    def __init__(self, inverse: Array, scale: float = 1.0, interleaved: bool = False, factor: float = 1.0) -> None:
        self.inverse = inverse.astype(np.float64) * scale
        self.interleaved = interleaved
        self.factor = factor

    def angles(self, positions: Array) -> tuple[Array, Array]:
        """The cosines and sines for positions, each of shape ``(n, 1, rotary_dim / 2)``."""
        angles = positions[:, None, None] * self.inverse
        return (np.cos(angles) * self.factor).astype(np.float32), (np.sin(angles) * self.factor).astype(np.float32)

    def rotate(self, x: Array, angles: tuple[Array, Array]) -> Array:
        """Rotates ``x`` of shape ``(n, heads, head_dim)``. The result has the type of ``x``."""
        cos, sin = angles
        half = self.inverse.shape[0]
        first = slice(0, 2 * half, 2) if self.interleaved else slice(0, half)
        second = slice(1, 2 * half, 2) if self.interleaved else slice(half, 2 * half)
        a, b = x[..., first].astype(np.float32), x[..., second].astype(np.float32)
        result = x.copy()
        result[..., first] = (a * cos - b * sin).astype(x.dtype)
        result[..., second] = (b * cos + a * sin).astype(x.dtype)
        return result


__all__ = ["RotaryEmbedding", "attention_factor", "inverse_frequencies", "is_interleaved", "rope_type"]
