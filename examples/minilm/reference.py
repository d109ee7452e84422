"""The encoder network in float64 NumPy, written from the description of the model and sharing no code with the Relax module."""

from __future__ import annotations

from math import erf

import numpy as np

from .weights import Config

_ERF = np.vectorize(erf, otypes=[np.float64])


def _norm(x: np.ndarray, w: dict[str, np.ndarray], name: str, eps: float) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]


def _dense(x: np.ndarray, w: dict[str, np.ndarray], name: str) -> np.ndarray:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _attend(x: np.ndarray, mask: np.ndarray, w: dict[str, np.ndarray], name: str, c: Config) -> np.ndarray:
    batch, seq, hidden = x.shape
    q, k, v = (
        _dense(x, w, f"{name}.self.{part}").reshape(batch, seq, c.num_attention_heads, c.head_size)
        for part in ("query", "key", "value")
    )
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(c.head_size)
    scores = np.where(mask[:, None, None, :] != 0, scores, -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, seq, hidden)


def embed(
    ids: np.ndarray, mask: np.ndarray, config: Config, weights: dict[str, np.ndarray]
) -> np.ndarray:
    """Computes the embeddings (batch, hidden) of token ids and mask (batch, seq), with all
    arithmetic in float64.
    """
    w = {name: a.astype(np.float64) for name, a in weights.items() if a.dtype.kind == "f"}
    eps = config.layer_norm_eps
    x = w["embeddings.word_embeddings.weight"][ids]
    x = x + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
    x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = _norm(x, w, "embeddings.LayerNorm", eps)
    for i in range(config.num_hidden_layers):
        name = f"encoder.layer.{i}"
        mixed = _attend(x, mask, w, f"{name}.attention", config)
        attended = _dense(mixed, w, f"{name}.attention.output.dense") + x
        x = _norm(attended, w, f"{name}.attention.output.LayerNorm", eps)
        h = _dense(x, w, f"{name}.intermediate.dense")
        h = h * 0.5 * (1.0 + _ERF(h / np.sqrt(2.0)))
        x = _norm(_dense(h, w, f"{name}.output.dense") + x, w, f"{name}.output.LayerNorm", eps)
    keep = mask[:, :, None].astype(np.float64)
    mean = (x * keep).sum(1) / np.maximum(keep.sum(1), 1e-9)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
