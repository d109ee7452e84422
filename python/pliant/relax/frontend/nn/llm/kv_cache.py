"""Paged KV caches in exported methods. The cache itself is :class:`pliant.runtime.kv_cache.PagedKVCache`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.error import UnsupportedError
from pliant.relax import op as _op
from pliant.relax.frontend.nn.core import Object, Tensor, current_builder
from pliant.runtime.kv_cache.rotary import attention_factor, inverse_frequencies, is_interleaved

if TYPE_CHECKING:
    from pliant._core import PrimExpr

_relax = _core.relax


class AttnKind(IntEnum):
    """The kinds of attention of a layer. ``MLA`` and ``LINEAR_ATTN`` are not supported."""

    MHA = 0
    MLA = 1
    LINEAR_ATTN = 2
    MHA_SLIDING = 3


class RopeMode(IntEnum):
    """When the cache applies rotary position embeddings: never, or to queries and keys as they are stored. ``INLINE`` has the same
    results as ``NORMAL``."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


class PagedKVCache(Object):
    """A KV cache for several sequences in an exported method. Its argument has the spec ``nn.spec.Object(PagedKVCache)``.

    Before a method runs, the caller begins a forward pass (``vm.builtin.kv_state_begin_forward``), and ends it afterwards.
    Tensors have the shape ``(batch, length, heads, head_dim)``; their first two dims together are all new tokens, sequence
    after sequence.
    """

    def _call(self, function: str, layer_id: int, sm_scale: float, operands: list[Tensor], results: list[Any]) -> Any:
        """Emits a call of a function of the cache with the arguments layer, scale and tensors."""
        args = [self._expr, _relax.PrimValue(layer_id), _relax.PrimValue(float(sm_scale)), *(t._expr for t in operands)]
        call = _op.call_dps_packed(f"vm.builtin.attention_kv_cache_{function}", args, results if len(results) > 1 else results[0])
        return current_builder().emit(call)

    def attention_with_fused_qkv(self, layer_id: int, qkv: Tensor, num_qo_heads: int, sm_scale: float) -> Tensor:
        """Stores the keys and values of new tokens in a layer, and computes the attention of the new tokens to all tokens of their
        sequences. ``qkv`` contains ``num_qo_heads`` heads of queries, then the heads of keys and of values. The cache applies
        rotary embeddings. The result has ``num_qo_heads`` heads."""
        batch, length, heads, dim = qkv.shape
        rows = qkv.reshape(batch * length, heads, dim)
        info = _relax.TensorStructInfo([batch * length, num_qo_heads, dim], qkv.dtype)
        result = self._call("attention_with_fused_qkv", layer_id, sm_scale, [rows], [info])
        return Tensor(_expr=result).reshape(batch, length, num_qo_heads, dim)

    def self_attention(self, layer_id: int, q: Tensor, k: Tensor, v: Tensor, sm_scale: float) -> tuple[Tensor, Tensor]:
        """The causal attention among the new tokens of each sequence. Returns the result, and the base-2 logarithms of the sums of
        exponentials, of shape ``(batch, length, heads)``."""
        batch, length, _, _ = q.shape
        rows = [t.reshape(batch * length, t.shape[2], t.shape[3]) for t in (q, k, v)]
        return self._with_logarithms("self_attention", layer_id, sm_scale, rows, (batch, length), int(v.shape[3]))

    def cross_attention(self, layer_id: int, q: Tensor, v_head_dim: int, sm_scale: float) -> tuple[Tensor, Tensor]:
        """The attention of the new tokens to the stored tokens before them. Returns the same as :meth:`self_attention`."""
        batch, length, heads, dim = q.shape
        rows = [q.reshape(batch * length, heads, dim)]
        return self._with_logarithms("cross_attention", layer_id, sm_scale, rows, (batch, length), v_head_dim)

    def _with_logarithms(
        self, function: str, layer_id: int, sm_scale: float, rows: list[Tensor], size: tuple[Any, Any], dim: int
    ) -> tuple[Tensor, Tensor]:
        (batch, length), heads = size, rows[0].shape[1]
        infos = [
            _relax.TensorStructInfo([batch * length, heads, dim], rows[0].dtype),
            _relax.TensorStructInfo([batch * length, heads], "float32"),
        ]
        results = self._call(function, layer_id, sm_scale, rows, infos)
        output, logarithms = (Tensor(_expr=current_builder().emit(_relax.TupleGetItem(results, i))) for i in range(2))
        return output.reshape(batch, length, heads, dim), logarithms.reshape(batch, length, heads)

    def merge_attn_output_inplace(
        self, o_self_attn: Tensor, lse_self_attn: Tensor, o_cross_attn: Tensor, lse_cross_attn: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Combines the attention of the same queries to two sets of keys. The results are new tensors."""
        batch, length, heads, dim = o_self_attn.shape
        outputs = [t.reshape(batch * length, heads, dim) for t in (o_self_attn, o_cross_attn)]
        logarithms = [t.reshape(batch * length, heads) for t in (lse_self_attn, lse_cross_attn)]
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_merge_attn_output_inplace",
            self._expr,
            outputs[0]._expr,
            logarithms[0]._expr,
            outputs[1]._expr,
            logarithms[1]._expr,
            sinfo_args=[_relax.TupleStructInfo([outputs[0]._expr.struct_info, logarithms[0]._expr.struct_info])],
        )
        merged = current_builder().emit(call)
        result, total = (Tensor(_expr=current_builder().emit(_relax.TupleGetItem(merged, i))) for i in range(2))
        return result.reshape(batch, length, heads, dim), total.reshape(batch, length, heads)

    def append_mla_kv(self, layer_id: int, kv: Tensor) -> PagedKVCache:
        """Raises ``UnsupportedError``: keys and values in a latent space (MLA) are not supported."""
        raise UnsupportedError("PagedKVCache.append_mla_kv: latent keys and values (MLA) are not supported")

    def get_query_positions(self, total_length: PrimExpr | int) -> Tensor:
        """The positions of the new tokens in their sequences: an int32 vector of ``total_length`` elements."""
        info = _relax.TensorStructInfo([total_length], "int32")
        function = "vm.builtin.attention_kv_cache_get_query_positions"
        return Tensor(_expr=current_builder().emit(_op.call_pure_packed(function, self._expr, sinfo_args=[info])))


class TIRPagedKVCache(PagedKVCache):
    """Creates a paged KV cache. The first five sizes may be arguments of the method.

    ``attn_kind`` is ``"mha"``, or a list with ``"mha"`` or ``"mha_sliding"`` per layer. ``rope_scaling``, ``rope_theta`` and
    ``rotary_dim`` are those of a model's configuration. ``layer_partition``, the ``mla_...`` sizes and ``target`` are ignored.

    Raises ``UnsupportedError`` for ``"mla"`` and for ``enable_disaggregation``.
    """

    def __init__(
        self,
        attn_kind: str | Sequence[str],
        max_batch_size: PrimExpr | int,
        max_total_seq_len: PrimExpr | int,
        prefill_chunk_size: PrimExpr | int,
        page_size: PrimExpr | int,
        support_sliding_window: PrimExpr | int,
        layer_partition: Any,
        num_hidden_layers: int,
        num_attention_heads: int,
        num_key_value_heads: int,
        qk_head_dim: int,
        v_head_dim: int,
        mla_original_qk_head_dim: int = 0,
        mla_original_v_head_dim: int = 0,
        rope_mode: RopeMode = RopeMode.NORMAL,
        rope_scale: float = 1,
        rope_theta: float = 10000,
        rope_scaling: Mapping[str, Any] | None = None,
        rope_ext_factors: Any = None,
        rotary_dim: int | None = None,
        enable_disaggregation: bool = False,
        dtype: str = "float32",
        target: Any = None,
        name: str = "paged_kv_cache",
    ) -> None:
        if enable_disaggregation:
            raise UnsupportedError("PagedKVCache: a cache cannot be distributed over several processes (enable_disaggregation)")
        kinds = _layer_kinds(attn_kind, num_hidden_layers)
        scaling = rope_scaling or {}
        frequencies = inverse_frequencies(rotary_dim or qk_head_dim, float(rope_theta), scaling)
        divided = scaling.get("rope_type") == "longrope" and rope_ext_factors is not None
        sizes = [max_batch_size, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window]
        builder = current_builder()
        args = [
            _relax.ShapeExpr(sizes),
            layer_partition if isinstance(layer_partition, _relax.Expr) else _relax.ShapeExpr([0, num_hidden_layers]),
            *map(_relax.PrimValue, (num_attention_heads, num_key_value_heads, qk_head_dim, v_head_dim)),
            _relax.ShapeExpr([int(kind) for kind in kinds]),
            *map(_relax.PrimValue, (0, int(rope_mode), float(rope_scale), float(rope_theta))),
            rope_ext_factors if rope_ext_factors is not None else _relax.PrimValue(0),
            builder.emit(_op.zeros((), dtype)),
            _relax.relax_const(frequencies),
            _relax.PrimValue(attention_factor(scaling)),
            *map(_relax.PrimValue, (int(is_interleaved(scaling)), int(divided))),
        ]
        call = _op.call_pure_packed(
            "vm.builtin.paged_attention_kv_cache_create", *args, sinfo_args=[_relax.ObjectStructInfo()]
        )
        super().__init__(_expr=call, _name=name)


class FlashInferPagedKVCache(PagedKVCache):
    """The cache with kernels for CUDA, which does not exist here. Raises ``UnsupportedError``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError("FlashInferPagedKVCache requires CUDA: use TIRPagedKVCache, which has the same arguments")


def _layer_kinds(attn_kind: str | Sequence[str], layers: int) -> list[AttnKind]:
    names = [attn_kind] * layers if isinstance(attn_kind, str) else list(attn_kind)
    if len(names) != layers:
        raise ValueError(f"PagedKVCache: attn_kind has {len(names)} entries for {layers} layers")
    for kind in names:
        if kind not in ("mha", "mha_sliding"):
            raise UnsupportedError(f"PagedKVCache: attn_kind must be 'mha' or 'mha_sliding', got {kind!r}")
    return [AttnKind[kind.upper()] for kind in names]


__all__ = ["AttnKind", "FlashInferPagedKVCache", "PagedKVCache", "RopeMode", "TIRPagedKVCache"]
