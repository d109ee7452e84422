"""The packed functions of paged KV caches, with the names and arguments of TVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pliant._core import NDArray
from pliant.error import UnsupportedError
from pliant.runtime.kv_cache.attention import merge
from pliant.runtime.kv_cache.paged import CacheConfig, PagedKVCache
from pliant.runtime.kv_cache.rotary import RotaryEmbedding, inverse_frequencies

# The kinds of attention of a layer, and the modes of rotary embeddings, by the numbers of TVM.
_MHA, _MHA_SLIDING = 0, 3
_NO_ROPE = 0


def paged_attention_kv_cache_create(
    sizes: Sequence[int],
    layer_partition: Sequence[int],
    query_heads: int,
    kv_heads: int,
    key_dim: int,
    value_dim: int,
    layer_kinds: Sequence[int],
    enable_disaggregation: Any,
    rope_mode: int,
    rope_scale: float,
    rope_theta: float,
    rope_ext_factors: Any,
    example: NDArray,
    *extra: Any,
) -> PagedKVCache:
    """Creates a cache. ``sizes`` are the maximum number of sequences in a batch, of stored tokens, and of tokens in a forward
    pass, the page size, and whether sliding windows are supported. ``example`` has the data type of keys and values.

    Pliant's front end passes the frequencies of rotary embeddings, their factor, whether pairs are interleaved, and whether
    ``rope_ext_factors`` divides the frequencies, as ``extra``. The kernels that TVM's front end passes are ignored.
    """
    max_batch, max_total, max_forward, page_size, sliding = (int(size) for size in sizes)
    kinds = [int(kind) for kind in layer_kinds]
    unsupported = sorted(set(kinds) - {_MHA, _MHA_SLIDING})
    if unsupported:
        raise UnsupportedError(f"KV caches support the kinds of attention 'mha' and 'mha_sliding', got the numbers {unsupported}")
    if enable_disaggregation:
        raise UnsupportedError("KV caches cannot be distributed over several processes (enable_disaggregation)")
    window_layers = frozenset(i for i, kind in enumerate(kinds) if kind == _MHA_SLIDING)
    config = CacheConfig(
        layers=len(kinds),
        query_heads=int(query_heads),
        kv_heads=int(kv_heads),
        key_dim=int(key_dim),
        value_dim=int(value_dim),
        dtype=example.numpy().dtype,
        max_batch_size=max_batch,
        max_total_tokens=max_total,
        max_tokens_per_forward=max_forward,
        page_size=page_size,
        support_sliding_window=bool(sliding) or bool(window_layers),
        sliding_layers=window_layers if 0 < len(window_layers) < len(kinds) else None,
    )
    rotary = None
    if int(rope_mode) != _NO_ROPE:
        rotary = _rotary(float(rope_scale), float(rope_theta), config.key_dim, rope_ext_factors, extra)
    return PagedKVCache(config, rotary)


def _rotary(scale: float, theta: float, head_dim: int, ext_factors: Any, extra: tuple[Any, ...]) -> RotaryEmbedding:
    if len(extra) != 4 or not isinstance(extra[0], NDArray):
        return RotaryEmbedding(inverse_frequencies(head_dim, theta), scale)
    inverse, factor, interleaved, divided = extra
    frequencies = inverse.numpy()
    if divided:
        frequencies = frequencies / ext_factors.numpy().reshape(-1)[: frequencies.shape[0]]
    return RotaryEmbedding(frequencies, scale, bool(interleaved), float(factor))


def kv_state_clear(cache: PagedKVCache) -> None:
    """Removes all sequences."""
    cache.clear()


def kv_state_add_sequence(cache: PagedKVCache, seq_id: int) -> None:
    """Adds an empty sequence."""
    cache.add_sequence(int(seq_id))


def kv_state_remove_sequence(cache: PagedKVCache, seq_id: int) -> None:
    """Removes a sequence."""
    cache.remove_sequence(int(seq_id))


def kv_state_fork_sequence(cache: PagedKVCache, parent_id: int, child_id: int, fork_pos: int = -1) -> None:
    """Adds a sequence that starts with the tokens of another one."""
    cache.fork_sequence(int(parent_id), int(child_id), int(fork_pos))


def kv_state_popn(cache: PagedKVCache, seq_id: int, count: int) -> None:
    """Removes tokens from the end of a sequence."""
    cache.popn(int(seq_id), int(count))


def kv_state_begin_forward(
    cache: PagedKVCache, seq_ids: Sequence[int], append_lengths: Sequence[int], parents: Sequence[int] | None = None
) -> None:
    """Begins a forward pass."""
    cache.begin_forward(list(seq_ids), list(append_lengths), None if parents is None else list(parents))


def kv_state_end_forward(cache: PagedKVCache) -> None:
    """Ends a forward pass."""
    cache.end_forward()


def attention_kv_cache_enable_sliding_window_for_seq(cache: PagedKVCache, seq_id: int, window: int, sinks: int) -> None:
    """Limits attention in a sequence to its last tokens and its first ``sinks`` tokens."""
    cache.enable_sliding_window_for_seq(int(seq_id), int(window), int(sinks))


def attention_kv_cache_commit_accepted_token_tree_nodes(
    cache: PagedKVCache, seq_ids: Sequence[int], leaves: Sequence[int]
) -> None:
    """Keeps one path of each token tree."""
    cache.commit_accepted_token_tree_nodes(list(seq_ids), list(leaves))


def attention_kv_cache_empty(cache: PagedKVCache) -> bool:
    """Whether the cache has no sequences."""
    return cache.empty


def attention_kv_cache_get_num_available_pages(cache: PagedKVCache) -> int:
    """The number of pages that are not in use."""
    return cache.num_available_pages


def attention_kv_cache_get_total_sequence_length(cache: PagedKVCache) -> int:
    """The sum of the lengths of all sequences."""
    return cache.total_sequence_length


def attention_kv_cache_get_query_positions(cache: PagedKVCache) -> np.ndarray[Any, Any]:
    """The positions of the new tokens in their sequences."""
    return cache.query_positions()


def attention_kv_cache_attention_with_fused_qkv(
    cache: PagedKVCache, layer: int, scale: float, qkv: NDArray, output: NDArray
) -> None:
    """Stores keys and values, and computes attention. Writes the result to ``output``."""
    output.copyfrom(cache.attention_with_fused_qkv(int(layer), float(scale), qkv.numpy()))


def attention_kv_cache_self_attention(
    cache: PagedKVCache, layer: int, scale: float, query: NDArray, key: NDArray, value: NDArray, output: NDArray, lse: NDArray
) -> None:
    """Computes the attention among new tokens. Writes the result and the logarithms of sums."""
    result, logarithms = cache.self_attention(int(layer), float(scale), query.numpy(), key.numpy(), value.numpy())
    output.copyfrom(result)
    lse.copyfrom(logarithms)


def attention_kv_cache_cross_attention(
    cache: PagedKVCache, layer: int, scale: float, query: NDArray, output: NDArray, lse: NDArray
) -> None:
    """Computes the attention of new tokens to earlier ones. Writes the result and the logarithms of sums."""
    result, logarithms = cache.cross_attention(int(layer), float(scale), query.numpy())
    output.copyfrom(result)
    lse.copyfrom(logarithms)


def attention_kv_cache_merge_attn_output_inplace(
    cache: PagedKVCache, out1: NDArray, lse1: NDArray, out2: NDArray, lse2: NDArray
) -> tuple[Any, Any]:
    """Combines two results of attention. Returns new arrays; the operands keep their elements."""
    merged, logarithms = merge((out1.numpy().astype(np.float32), lse1.numpy()), (out2.numpy().astype(np.float32), lse2.numpy()))
    return merged.astype(out1.numpy().dtype), logarithms.astype(np.float32)


def attention_kv_cache_append_mla_kv(cache: PagedKVCache, layer: int, kv: NDArray) -> PagedKVCache:
    """Raises ``UnsupportedError``: keys and values in a latent space are not supported."""
    raise UnsupportedError("KV caches do not support latent keys and values (MLA)")


def attention_kv_cache_debug_get_kv(
    cache: PagedKVCache, seq_id: int, start: int, end: int, keys: NDArray, values: NDArray
) -> None:
    """Writes the stored keys and values of tokens to arrays of shape ``(layers, end - start, kv_heads, head_dim)``."""
    stored = [cache.stored(int(seq_id), layer, int(start), int(end)) for layer in range(cache.config.layers)]
    keys.copyfrom(np.stack([k for k, _ in stored]))
    values.copyfrom(np.stack([v for _, v in stored]))
