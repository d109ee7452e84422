"""The layers and effects of the nn front end."""

from __future__ import annotations

from pliant.relax.frontend.nn._diffusion_layers import Attention, TimestepEmbedding, Timesteps
from pliant.relax.frontend.nn._effects import IOEffect, KVCache
from pliant.relax.frontend.nn._layers import (
    GELU,
    Conv1D,
    Conv2D,
    Conv3D,
    ConvTranspose1D,
    Dropout,
    Embedding,
    GroupNorm,
    Identity,
    LayerNorm,
    Linear,
    MultiLinear,
    ReLU,
    RMSNorm,
    SiLU,
)

__all__ = [
    "Attention",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Dropout",
    "Embedding",
    "GELU",
    "GroupNorm",
    "IOEffect",
    "Identity",
    "KVCache",
    "LayerNorm",
    "Linear",
    "MultiLinear",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "TimestepEmbedding",
    "Timesteps",
]
