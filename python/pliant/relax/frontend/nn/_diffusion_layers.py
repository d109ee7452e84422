"""The layers of diffusion models: embeddings of time steps, and cross attention."""

from __future__ import annotations

from typing import Any

from pliant.error import UnsupportedError
from pliant.relax.frontend.nn import op
from pliant.relax.frontend.nn._layers import GroupNorm, Linear, SiLU
from pliant.relax.frontend.nn.core import Module, ModuleList, Tensor


class TimestepEmbedding(Module):
    """Two linear layers with a SiLU between them, applied to embeddings of time steps."""

    def __init__(
        self,
        in_channels: int,
        time_embed_dim: int,
        act_fn: str = "silu",
        out_dim: int | None = None,
        post_act_fn: str | None = None,
        cond_proj_dim: int | None = None,
    ) -> None:
        for name, activation in (("act_fn", act_fn), ("post_act_fn", post_act_fn)):
            if activation not in (None, "silu"):
                raise UnsupportedError(f"TimestepEmbedding: {name} must be 'silu', got {activation!r}")
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = Linear(cond_proj_dim, in_channels, bias=False) if cond_proj_dim is not None else None
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, time_embed_dim if out_dim is None else out_dim)
        self.post_act = SiLU() if post_act_fn is not None else None

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Tensor:
        """Maps embeddings of shape ``(n, in_channels)``. A condition of shape ``(n, cond_proj_dim)`` is projected and added to
        them."""
        if condition is not None:
            if self.cond_proj is None:
                raise ValueError("TimestepEmbedding: a condition requires cond_proj_dim")
            sample = sample + self.cond_proj(condition)
        sample = self.linear_2(self.act(self.linear_1(sample)))
        return sample if self.post_act is None else self.post_act(sample)


class Timesteps(Module):
    """Sinusoidal embeddings of time steps (:func:`op.get_timestep_embedding`) of size ``num_channels``."""

    def __init__(self, num_channels: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1) -> None:
        self.num_channels = num_channels
        self.flip_sin_to_cos = flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x: Tensor) -> Tensor:
        """Maps time steps of shape ``(n,)`` to ``(n, num_channels)``."""
        return op.get_timestep_embedding(
            x,
            embedding_dim=self.num_channels,
            flip_sin_to_cos=self.flip_sin_to_cos,
            downscale_freq_shift=self.downscale_freq_shift,
        )


class Attention(Module):
    """Attention with linear maps of queries, keys, values and the result.

    Keys and values come from a second input of ``cross_attention_dim`` channels, or from the first one. With
    ``norm_num_groups``, the first input is normalized in this number of groups of channels. With ``scale_qk``, scores are
    divided by the root of ``dim_head``.
    """

    def __init__(
        self,
        query_dim: int,
        cross_attention_dim: int | None = None,
        heads: int = 8,
        dim_head: int = 64,
        bias: bool = False,
        norm_num_groups: int | None = None,
        out_bias: bool = True,
        scale_qk: bool = True,
    ) -> None:
        self.query_dim = query_dim
        self.cross_attention_dim = cross_attention_dim or query_dim
        self.heads = heads
        self.dim_head = dim_head
        self.bias = bias
        self.norm_num_groups = norm_num_groups
        self.out_bias = out_bias
        self.scale_qk = scale_qk
        self.scale = dim_head**-0.5 if scale_qk else 1.0
        self.inner_dim = dim_head * heads
        self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
        self.to_k = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.to_v = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.group_norm = GroupNorm(norm_num_groups, query_dim) if norm_num_groups is not None else None
        self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

    def forward(
        self,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        **cross_attention_kwargs: Any,
    ) -> Tensor:
        """Maps ``hidden_states`` of shape ``(batch, length, query_dim)``. ``encoder_hidden_states`` has the shape ``(batch,
        length_kv, cross_attention_dim)``. ``attention_mask`` is that of :func:`op.scaled_dot_product_attention`."""
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        query = self.to_q(hidden_states)
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        key, value = self.to_k(source), self.to_v(source)
        query, key, value = (op.reshape(t, [0, -1, self.heads, self.dim_head]) for t in (query, key, value))
        scale = None if self.scale_qk else 1.0
        result = op.scaled_dot_product_attention(query, key, value, attention_mask, is_causal=False, scale=scale)
        return self.to_out[0](op.reshape(result, [0, -1, self.inner_dim]))


__all__ = ["Attention", "TimestepEmbedding", "Timesteps"]
