"""Tests paged KV caches: attention against a reference over whole sequences, memory, and errors."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.error import UnsupportedError
from pliant.relax.frontend import nn
from pliant.relax.frontend.nn import spec
from pliant.relax.frontend.nn.llm import kv_cache, position_embedding
from pliant.runtime import ShapeTuple
from pliant.runtime.kv_cache import CacheConfig, PagedKVCache
from pliant.runtime.kv_cache.attention import merge
from pliant.runtime.kv_cache.rotary import RotaryEmbedding, attention_factor, inverse_frequencies

HEADS, KV_HEADS, DIM, LAYERS = 4, 2, 8, 2


def make_cache(**changes: Any) -> PagedKVCache:
    settings = {
        "layers": LAYERS,
        "query_heads": HEADS,
        "kv_heads": KV_HEADS,
        "key_dim": DIM,
        "value_dim": DIM,
        "dtype": np.dtype("float32"),
        "max_batch_size": 8,
        "max_total_tokens": 512,
        "max_tokens_per_forward": 256,
        "page_size": 4,
        "support_sliding_window": True,
    }
    rotary = changes.pop("rotary", None)
    return PagedKVCache(CacheConfig(**{**settings, **changes}), rotary)


class Reference:
    """Sequences as lists of fused queries, keys and values per layer."""

    def __init__(self, rotary: RotaryEmbedding | None = None) -> None:
        self.tokens: dict[int, Any] = {}
        self.rotary = rotary

    def attention(
        self, seq: int, layer: int, new: int, scale: float, window: int | None = None, sinks: int = 0
    ) -> Any:
        qkv = self.tokens[seq][layer]
        q, k, v = qkv[:, :HEADS], qkv[:, HEADS : HEADS + KV_HEADS], qkv[:, HEADS + KV_HEADS :]
        if self.rotary is not None:
            angles = self.rotary.angles(np.arange(len(qkv)))
            q, k = self.rotary.rotate(q, angles), self.rotary.rotate(k, angles)
        k, v = k.repeat(HEADS // KV_HEADS, 1), v.repeat(HEADS // KV_HEADS, 1)
        i, j = np.arange(len(qkv))[:, None], np.arange(len(qkv))[None]
        visible = j <= i
        if window is not None:
            visible &= (j > i - window) | (j < sinks)
        scores = np.where(visible, np.einsum("qhd,khd->hqk", q, k) * scale, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", weights, v)[len(qkv) - new :]


def forward(cache: PagedKVCache, reference: Reference, lengths: dict[int, int], rng: Any, **window: Any) -> None:
    """Appends random tokens to sequences, and checks the attention in every layer."""
    cache.begin_forward(list(lengths), list(lengths.values()))
    total = sum(lengths.values())
    for layer in range(LAYERS):
        qkv = rng.standard_normal((total, HEADS + 2 * KV_HEADS, DIM)).astype("float32")
        row = 0
        for seq, count in lengths.items():
            layers = reference.tokens.setdefault(seq, [qkv[:0]] * LAYERS)
            layers = reference.tokens[seq] = list(layers)
            layers[layer] = np.concatenate([layers[layer], qkv[row : row + count]])
            row += count
        got = cache.attention_with_fused_qkv(layer, 0.3, qkv)
        expected = [reference.attention(seq, layer, count, 0.3, **window) for seq, count in lengths.items()]
        np.testing.assert_allclose(got, np.concatenate(expected), rtol=1e-4, atol=1e-5)
    cache.end_forward()


ROTARY = RotaryEmbedding(inverse_frequencies(DIM, 10000.0))


@pytest.mark.parametrize("rotary", [None, ROTARY, RotaryEmbedding(inverse_frequencies(4, 100.0), 2.0, True)])
def test_ragged_batches(rotary: RotaryEmbedding | None) -> None:
    cache, reference, rng = make_cache(rotary=rotary), Reference(rotary), np.random.default_rng(0)
    for seq in range(3):
        cache.add_sequence(seq)
    for lengths in ({0: 5, 1: 1, 2: 9}, {0: 1, 1: 1, 2: 1}, {2: 0, 0: 3}, {1: 17}, {0: 1, 1: 1, 2: 1}):
        forward(cache, reference, lengths, rng)
    assert cache.total_sequence_length == sum(len(layers[0]) for layers in reference.tokens.values())
    np.testing.assert_array_equal(cache.stored(1, 1, 2, 7)[1], reference.tokens[1][1][2:7, HEADS + KV_HEADS :])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_caches_of_16_bit_floats(dtype: str) -> None:
    kind = np.dtype("float16") if dtype == "float16" else np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    cache, reference, rng = make_cache(dtype=kind, rotary=ROTARY), Reference(ROTARY), np.random.default_rng(0)
    cache.add_sequence(0)
    qkv = rng.standard_normal((9, HEADS + 2 * KV_HEADS, DIM)).astype(kind)
    reference.tokens[0] = [qkv.astype("float32")] * LAYERS
    cache.begin_forward([0], [9])
    got = cache.attention_with_fused_qkv(0, 0.3, qkv)
    assert got.dtype == kind
    np.testing.assert_allclose(got.astype("float32"), reference.attention(0, 0, 9, 0.3), rtol=0.05, atol=0.05)
    own, logarithms = cache.self_attention(0, 0.3, *np.split(qkv, [HEADS, HEADS + KV_HEADS], 1))
    assert own.dtype == kind
    assert logarithms.dtype == np.float32


def test_forks_share_pages() -> None:
    cache, reference, rng = make_cache(), Reference(), np.random.default_rng(1)
    cache.add_sequence(0)
    forward(cache, reference, {0: 10}, rng)
    used = cache.pool.live
    cache.fork_sequence(0, 1)
    cache.fork_sequence(0, 2, 6)
    cache.fork_sequence(0, 3, 0)
    assert cache.pool.live == used
    for child, length in ((1, 10), (2, 6), (3, 0)):
        reference.tokens[child] = [layer[:length] for layer in reference.tokens[0]]
    for lengths in ({1: 1, 2: 3, 3: 2}, {0: 1, 1: 1, 2: 1, 3: 1}, {0: 5}):
        forward(cache, reference, lengths, rng)
    cache.remove_sequence(0)
    forward(cache, reference, {1: 2, 2: 2}, rng)
    for child in (1, 2, 3):
        cache.remove_sequence(child)
    assert cache.empty
    assert cache.num_available_pages == cache.pool.max_pages


def test_removed_tokens_can_be_replaced() -> None:
    cache, reference, rng = make_cache(), Reference(), np.random.default_rng(2)
    cache.add_sequence(7)
    forward(cache, reference, {7: 11}, rng)
    for count in (0, 1, 4, 6):
        cache.popn(7, count)
        reference.tokens[7] = [layer[: len(layer) - count] for layer in reference.tokens[7]]
    assert cache.pool.live == 0
    forward(cache, reference, {7: 6}, rng)


@pytest.mark.parametrize(("window", "sinks"), [(1, 0), (3, 1), (6, 0), (9, 5), (100, 2)])
def test_sliding_windows(window: int, sinks: int) -> None:
    cache, reference, rng = make_cache(rotary=ROTARY), Reference(ROTARY), np.random.default_rng(3)
    cache.add_sequence(0)
    cache.enable_sliding_window_for_seq(0, window, sinks)
    for length in (5, 1, 1, 8, 1, 1, 1, 13, 1):
        forward(cache, reference, {0: length}, rng, window=window, sinks=sinks)
    assert cache.pool.live <= -(-window // 4) + -(-sinks // 4) + 2


def test_layers_with_and_without_a_window() -> None:
    cache, reference, rng = make_cache(sliding_layers=frozenset([1])), Reference(), np.random.default_rng(3)
    cache.add_sequence(0)
    cache.enable_sliding_window_for_seq(0, 3)
    tokens = rng.standard_normal((12, HEADS + 2 * KV_HEADS, DIM)).astype("float32")
    reference.tokens[0] = [tokens, tokens]
    for start in range(0, 12, 4):
        cache.begin_forward([0], [4])
        reference.tokens[0] = [tokens[: start + 4]] * 2
        for layer, window in ((0, None), (1, 3)):
            got = cache.attention_with_fused_qkv(layer, 0.3, tokens[start : start + 4])
            np.testing.assert_allclose(got, reference.attention(0, layer, 4, 0.3, window), rtol=1e-4, atol=1e-5)
        cache.end_forward()
    assert cache.pool.live == 3


def test_windows_cannot_be_reopened() -> None:
    cache, reference, rng = make_cache(), Reference(), np.random.default_rng(3)
    cache.add_sequence(0)
    cache.enable_sliding_window_for_seq(0, 4)
    forward(cache, reference, {0: 20}, rng, window=4)
    with pytest.raises(ValueError, match="the sliding window has discarded tokens"):
        cache.popn(0, 10)
    with pytest.raises(ValueError, match="the sliding window has discarded tokens"):
        cache.fork_sequence(0, 1, 5)
    assert not cache.empty and cache.sequence(0).length == 20


def test_token_trees() -> None:
    """Token 0 has the children 1 and 2, and 2 has the child 3. The path to 3 is accepted."""
    cache, reference, rng = make_cache(rotary=ROTARY), Reference(ROTARY), np.random.default_rng(4)
    cache.add_sequence(0)
    forward(cache, reference, {0: 6}, rng)
    tree = [rng.standard_normal((4, HEADS + 2 * KV_HEADS, DIM)).astype("float32") for _ in range(LAYERS)]
    cache.begin_forward([0], [4], [-1, 0, 0, 2])
    np.testing.assert_array_equal(cache.query_positions(), [6, 7, 7, 8])
    before = reference.tokens[0]
    for layer in range(LAYERS):
        got = cache.attention_with_fused_qkv(layer, 0.3, tree[layer])
        for token, path in enumerate([[0], [0, 1], [0, 2], [0, 2, 3]]):
            reference.tokens[0] = [np.concatenate([t, rows[path]]) for t, rows in zip(before, tree, strict=True)]
            np.testing.assert_allclose(got[token], reference.attention(0, layer, 1, 0.3)[0], rtol=1e-4, atol=1e-5)
    cache.end_forward()
    for action in (lambda: cache.popn(0, 1), lambda: cache.begin_forward([0], [1]), lambda: cache.fork_sequence(0, 1)):
        with pytest.raises(ValueError, match="token tree: commit"):
            action()
    cache.commit_accepted_token_tree_nodes([0], [3])
    assert cache.sequence(0).length == 9
    forward(cache, reference, {0: 2}, rng)
    cache.begin_forward([0], [2], [-1, 0])
    cache.end_forward()
    cache.commit_accepted_token_tree_nodes([0], [-1])
    assert cache.sequence(0).length == 11


def test_self_and_cross_attention_merge_to_full_attention() -> None:
    cache, reference, rng = make_cache(), Reference(), np.random.default_rng(5)
    for seq in (0, 1):
        cache.add_sequence(seq)
    forward(cache, reference, {0: 5}, rng)
    lengths = {0: 3, 1: 2}
    qkv = rng.standard_normal((5, HEADS + 2 * KV_HEADS, DIM)).astype("float32")
    q, k, v = np.split(qkv, [HEADS, HEADS + KV_HEADS], 1)
    cache.begin_forward(list(lengths), list(lengths.values()))
    own = cache.self_attention(0, 0.3, q, k, v)
    earlier = cache.cross_attention(0, 0.3, q)
    merged, _ = merge(own, earlier)
    np.testing.assert_allclose(merged, cache.attention_with_fused_qkv(0, 0.3, qkv), rtol=1e-4, atol=1e-5)
    assert np.isneginf(earlier[1][3:]).all()


# --- memory ---------------------------------------------------------------------------------------


def test_cycles_release_all_memory() -> None:
    cache = make_cache(max_total_tokens=1 << 20, page_size=16)
    assert cache.pool.held_bytes == 0
    tracemalloc.start()
    for cycle in range(1000):
        cache.add_sequence(2 * cycle)
        cache.begin_forward([2 * cycle], [20])
        cache.end_forward()
        cache.fork_sequence(2 * cycle, 2 * cycle + 1, 18)
        cache.begin_forward([2 * cycle + 1], [1])
        cache.end_forward()
        cache.remove_sequence(2 * cycle)
        cache.remove_sequence(2 * cycle + 1)
        if cycle == 10:
            gc.collect()
            after_ten, _ = tracemalloc.get_traced_memory()
    gc.collect()
    at_end, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cache.pool.live == cache.pool.held_bytes == 0
    assert at_end - after_ten < 20_000
    assert peak < 4_000_000


def test_memory_is_proportional_to_use() -> None:
    cache = make_cache(max_total_tokens=1 << 30)
    cache.add_sequence(0)
    page = 2 * LAYERS * 4 * KV_HEADS * DIM * 4
    for length in range(1, 30):
        cache.begin_forward([0], [1])
        cache.end_forward()
        assert cache.pool.held_bytes == -(-length // 4) * page


def test_a_full_cache_stays_unchanged() -> None:
    cache, reference, rng = make_cache(max_total_tokens=16), Reference(), np.random.default_rng(6)
    for seq in (0, 1):
        cache.add_sequence(seq)
    forward(cache, reference, {0: 9, 1: 1}, rng)
    with pytest.raises(MemoryError, match="needs 2 pages of the KV cache, but 0 of 4"):
        cache.begin_forward([0, 1], [5, 5])
    forward(cache, reference, {0: 3, 1: 3}, rng)
    cache.fork_sequence(0, 2, 10)
    with pytest.raises(MemoryError, match="needs 1 pages"):
        cache.begin_forward([2], [1])
    cache.remove_sequence(1)
    cache.begin_forward([2], [1])
    cache.end_forward()


def test_a_failed_allocation_leaves_the_cache_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, reference, rng = make_cache(), Reference(), np.random.default_rng(6)
    for seq in (0, 1):
        cache.add_sequence(seq)
    forward(cache, reference, {0: 3, 1: 3}, rng)
    allocate, left = cache.pool.allocate, [3]

    def failing() -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError("no memory")
        return allocate()

    monkeypatch.setattr(cache.pool, "allocate", failing)
    with pytest.raises(MemoryError, match="no memory"):
        cache.begin_forward([0, 1], [9, 9])
    monkeypatch.undo()
    assert cache.pool.live == 2
    forward(cache, reference, {0: 5, 1: 9}, rng)


def test_the_last_writer_of_a_shared_page_does_not_copy_it() -> None:
    cache, reference, rng = make_cache(max_total_tokens=8), Reference(), np.random.default_rng(6)
    cache.add_sequence(0)
    forward(cache, reference, {0: 2}, rng)
    cache.fork_sequence(0, 1)
    reference.tokens[1] = list(reference.tokens[0])
    forward(cache, reference, {0: 1, 1: 1}, rng)
    assert cache.pool.live == 2


# --- errors ---------------------------------------------------------------------------------------


def test_errors_of_sequences() -> None:
    cache = make_cache(max_batch_size=2, max_tokens_per_forward=10)
    cache.add_sequence(3)
    cache.add_sequence(4)
    for action, message in (
        (lambda: cache.add_sequence(3), "already has a sequence 3"),
        (lambda: cache.remove_sequence(9), r"no sequence 9 \(there are: 3, 4\)"),
        (lambda: cache.fork_sequence(3, 4), "already has a sequence 4"),
        (lambda: cache.fork_sequence(3, 5, 1), "of 0 tokens at position 1"),
        (lambda: cache.fork_sequence(3, 5, -2), "at position -2"),
        (lambda: cache.popn(3, 1), "cannot remove 1 tokens of sequence 3, which has 0"),
        (lambda: cache.popn(3, -1), "cannot remove -1 tokens"),
        (lambda: cache.begin_forward([3, 3], [1, 1]), "occurs several times"),
        (lambda: cache.begin_forward([3], [1, 1]), "1 sequences, but 2 numbers"),
        (lambda: cache.begin_forward([3], [-1]), "must not be negative"),
        (lambda: cache.begin_forward([3, 4, 5], [1, 1, 1]), "at most 2 are allowed"),
        (lambda: cache.begin_forward([3], [11]), "at most 10 are allowed"),
        (lambda: cache.begin_forward([5], [1]), "no sequence 5"),
        (lambda: cache.begin_forward([3], [2], [-1]), "1 parents for 2 tokens"),
        (lambda: cache.begin_forward([3], [2], [-1, 1]), "must be an earlier token"),
        (lambda: cache.end_forward(), "there is no forward pass"),
        (lambda: cache.query_positions(), "there is no forward pass"),
        (lambda: cache.commit_accepted_token_tree_nodes([3], [0]), "has no token tree"),
        (lambda: cache.commit_accepted_token_tree_nodes([3], []), "1 sequences, but 0 accepted"),
        (lambda: cache.enable_sliding_window_for_seq(3, 0), "requires window >= 1"),
        (lambda: cache.enable_sliding_window_for_seq(3, 2, 2), "requires window >= 1"),
        (lambda: cache.stored(3, 0, 0, 1), "not all stored"),
    ):
        with pytest.raises(ValueError, match=message):
            action()  # type: ignore[no-untyped-call]
    assert cache.total_sequence_length == cache.pool.live == 0
    with pytest.raises(ValueError, match="without support_sliding_window"):
        make_cache(support_sliding_window=False).enable_sliding_window_for_seq(3, 2)
    with pytest.raises(ValueError, match="3 query heads cannot be divided"):
        make_cache(query_heads=3)
    with pytest.raises(ValueError, match="page_size >= 1"):
        make_cache(page_size=0)


def test_errors_during_a_forward_pass() -> None:
    cache = make_cache()
    cache.add_sequence(0)
    cache.begin_forward([0], [2])
    for action in (lambda: cache.begin_forward([0], [1]), lambda: cache.remove_sequence(0), lambda: cache.popn(0, 1)):
        with pytest.raises(ValueError, match="during a forward pass"):
            action()
    with pytest.raises(ValueError, match=r"'qkv' must have the shape \(2, 8, 8\)"):
        cache.attention_with_fused_qkv(0, 1.0, np.zeros((3, 8, 8), "float32"))
    with pytest.raises(ValueError, match="has 2 layers, but layer 2"):
        cache.attention_with_fused_qkv(2, 1.0, np.zeros((2, 8, 8), "float32"))
    cache.clear()
    assert cache.empty


# --- in programs ----------------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self) -> None:
        self.qkv = nn.Linear(16, (HEADS + 2 * KV_HEADS) * DIM, bias=False)
        self.out = nn.Linear(HEADS * DIM, 16, bias=False)

    def forward(self, x: nn.Tensor, cache: kv_cache.PagedKVCache, layer: int) -> nn.Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(x).reshape(batch, length, HEADS + 2 * KV_HEADS, DIM)
        attention = cache.attention_with_fused_qkv(layer, qkv, HEADS, DIM**-0.5)
        return x + self.out(attention.reshape(batch, length, HEADS * DIM))


class Model(nn.Module):
    def __init__(self) -> None:
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])

    def run(self, x: nn.Tensor, cache: kv_cache.PagedKVCache) -> nn.Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x, cache, i)
        return x

    def positions(self, cache: kv_cache.PagedKVCache, total: Any) -> nn.Tensor:
        return cache.get_query_positions(total)

    def split(self, q: nn.Tensor, k: nn.Tensor, v: nn.Tensor, cache: kv_cache.PagedKVCache) -> Any:
        own, own_log = cache.self_attention(0, q, k, v, 0.3)
        earlier, earlier_log = cache.cross_attention(0, q, DIM, 0.3)
        return cache.merge_attn_output_inplace(own, own_log, earlier, earlier_log)[0]

    def whole(self, x: nn.Tensor, total: Any) -> nn.Tensor:
        """The same model without a cache, for one sequence."""
        for layer in self.layers:
            batch, length, _ = x.shape
            qkv = layer.qkv(x).reshape(batch, length, HEADS + 2 * KV_HEADS, DIM)  # type: ignore[attr-defined]
            q, k, v = position_embedding.llama_rope(qkv, total, 500.0, 1.0, HEADS, KV_HEADS)
            k, v = k.repeat(HEADS // KV_HEADS, 2), v.repeat(HEADS // KV_HEADS, 2)
            attention = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + layer.out(attention.reshape(batch, length, HEADS * DIM))  # type: ignore[attr-defined]
        return x

    def create(self, max_batch: Any, max_total: Any, chunk: Any, page: Any, sliding: Any) -> nn.Object:
        return kv_cache.TIRPagedKVCache(
            "mha", max_batch, max_total, chunk, page, sliding, None, LAYERS, HEADS, KV_HEADS, DIM, DIM, rope_theta=500.0
        )


def builtin(name: str) -> Any:
    return pliant.get_global_func(f"vm.builtin.{name}")


def test_models_with_a_paged_cache() -> None:
    model = Model()
    cache_spec = spec.Object(kv_cache.PagedKVCache)
    sizes = dict.fromkeys(["max_batch", "max_total", "chunk", "page", "sliding"], int)
    heads = [spec.Tensor(["b", "s", h, DIM], "float32") for h in (HEADS, KV_HEADS, KV_HEADS)]
    mod, params = model.export_tvm(  # type: ignore[misc]
        {
            "create": {**sizes, "$": {"param_mode": "none"}},
            "run": {"x": spec.Tensor(["b", "s", 16], "float32"), "cache": cache_spec},
            "whole": {"x": spec.Tensor([1, "s", 16], "float32"), "total": int},
            "positions": {"cache": cache_spec, "total": int, "$": {"param_mode": "none"}},
            "split": {**dict(zip("qkv", heads, strict=True)), "cache": cache_spec, "$": {"param_mode": "none"}},
        }
    )
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(param.shape).astype("float32") / 6 for _, param in params]
    vm = relax.VirtualMachine(relax.build(mod), pliant.cpu())
    cache = vm["create"]([4], [64], [32], [4], [0])
    assert builtin("attention_kv_cache_empty")(cache)
    tokens = {seq: rng.standard_normal((0, 16)).astype("float32") for seq in (5, 6)}
    for seq in tokens:
        builtin("kv_state_add_sequence")(cache, seq)

    def step(lengths: dict[int, int], decode: bool) -> None:
        new = {seq: rng.standard_normal((n, 16)).astype("float32") for seq, n in lengths.items()}
        for seq, rows in new.items():
            tokens[seq] = np.concatenate([tokens[seq], rows])
        builtin("kv_state_begin_forward")(cache, ShapeTuple(list(lengths)), ShapeTuple(list(lengths.values())))
        x = np.concatenate(list(new.values()))
        got = vm["run"](x[:, None] if decode else x[None], cache, *weights).numpy().reshape(x.shape)
        positions = vm["positions"](cache, [len(x)]).numpy()
        builtin("kv_state_end_forward")(cache)
        row = 0
        for seq, n in lengths.items():
            length = len(tokens[seq])
            expected = vm["whole"](tokens[seq][None], [length], *weights).numpy()[0, length - n :]
            np.testing.assert_allclose(got[row : row + n], expected, rtol=1e-3, atol=1e-4)
            np.testing.assert_array_equal(positions[row : row + n], range(length - n, length))
            row += n

    step({5: 7, 6: 2}, decode=False)
    step({5: 1, 6: 1}, decode=True)
    step({6: 9}, decode=False)
    builtin("kv_state_fork_sequence")(cache, 5, 9, -1)
    tokens[9] = tokens[5]
    step({9: 3, 5: 1}, decode=False)
    builtin("kv_state_popn")(cache, 9, 2)
    tokens[9] = tokens[9][:-2]
    step({5: 1, 6: 1, 9: 1}, decode=True)
    assert builtin("attention_kv_cache_get_total_sequence_length")(cache) == sum(map(len, tokens.values()))

    keys, values = (pliant.nd.array(np.zeros((LAYERS, 3, KV_HEADS, DIM), "float32")) for _ in range(2))
    builtin("attention_kv_cache_debug_get_kv")(cache, 6, 1, 4, keys, values)
    np.testing.assert_array_equal(keys.numpy()[1], cache.stored(6, 1, 1, 4)[0])

    q, k, v = (rng.standard_normal((1, 2, h, DIM)).astype("float32") for h in (HEADS, KV_HEADS, KV_HEADS))
    builtin("kv_state_begin_forward")(cache, ShapeTuple([5]), ShapeTuple([2]))
    got = vm["split"](q, k, v, cache).numpy()[0]
    stored_k, stored_v = cache.stored(5, 0, 0, len(tokens[5]))
    all_k, all_v = np.concatenate([stored_k, k[0]]).repeat(2, 1), np.concatenate([stored_v, v[0]]).repeat(2, 1)
    scores = np.einsum("qhd,khd->hqk", q[0], all_k) * 0.3
    scores[:, 0, -1] = -np.inf
    weights_of = np.exp(scores - scores.max(-1, keepdims=True))
    expected = np.einsum("hqk,khd->qhd", weights_of / weights_of.sum(-1, keepdims=True), all_v)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    builtin("kv_state_end_forward")(cache)
    for seq in tokens:
        builtin("kv_state_remove_sequence")(cache, seq)
    assert builtin("attention_kv_cache_get_num_available_pages")(cache) == 16
    with pytest.raises(ValueError, match="no sequence 5"):
        builtin("kv_state_begin_forward")(cache, ShapeTuple([5]), ShapeTuple([1]))


def test_unsupported_caches() -> None:
    class Bad(nn.Module):
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def create(self) -> Any:
            return kv_cache.TIRPagedKVCache(self.kind, 1, 8, 8, 4, 0, None, 1, 1, 1, 8, 8)

        def flash(self) -> Any:
            return kv_cache.FlashInferPagedKVCache()

    with pytest.raises(UnsupportedError, match="'mla'"):
        Bad("mla").export_tvm({"create": {}})
    with pytest.raises(UnsupportedError, match="requires CUDA"):
        Bad("mha").export_tvm({"flash": {}})
    with pytest.raises(UnsupportedError, match="rope_type 'su'"):
        inverse_frequencies(8, 10000.0, {"rope_type": "su"})


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "linear", "factor": 4.0},
        {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
        {"rope_type": "llama4", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0, "original_max_position_embeddings": 64},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    ],
)
def test_scaled_frequencies_lie_between_the_plain_and_the_divided_ones(scaling: dict[str, Any]) -> None:
    plain = inverse_frequencies(64, 10000.0)
    scaled = inverse_frequencies(64, 10000.0, scaling)
    assert (scaled <= plain * 1.0001).all()
    assert (scaled >= plain / scaling["factor"] * 0.9999).all()
    assert scaled[-1] == pytest.approx(plain[-1] / scaling["factor"], rel=1e-4)


def test_factor_of_longrope() -> None:
    scaling = {"rope_type": "longrope", "max_position_embeddings": 4096, "original_max_position_embeddings": 64}
    assert attention_factor(scaling) == pytest.approx(np.sqrt(2))
    assert attention_factor({"rope_type": "longrope"}) == attention_factor(None) == 1.0

    class Extended(nn.Module):
        def create(self, factors: nn.Tensor) -> Any:
            return kv_cache.TIRPagedKVCache(
                "mha", 1, 64, 64, 4, 0, None, 1, 1, 1, 8, 8, rope_scaling=scaling, rope_ext_factors=factors._expr
            )

    mod, _ = Extended().export_tvm({"create": {"factors": spec.Tensor([4], "float32")}})  # type: ignore[misc]
    cache = relax.VirtualMachine(relax.build(mod), pliant.cpu())["create"](np.array([1, 2, 4, 8], "float32"))
    assert cache.rotary.factor == pytest.approx(np.sqrt(2))
    np.testing.assert_allclose(cache.rotary.inverse, inverse_frequencies(8, 10000.0) / [1, 2, 4, 8], rtol=1e-6)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_rotary_embeddings_of_tensors(interleaved: bool, rotary_dim: int | None) -> None:
    from nn_programs import evaluate

    scaling = {"rope_type": "gptj"} if interleaved else None
    for length in (0, 1, 5):
        x = np.random.default_rng(0).standard_normal((2, length, 3, 8)).astype("float32")
        positions = np.arange(length) * 3
        got = evaluate(
            lambda x, p: position_embedding.rotary_embedding(x, p, 100.0, 2.0, scaling, rotary_dim),
            [x, positions],
            [("b", "s", 3, 8), ("s",)],
        )
        rotary = RotaryEmbedding(inverse_frequencies(rotary_dim or 8, 100.0), 2.0, interleaved)
        expected = np.stack([rotary.rotate(rows, rotary.angles(positions)) for rows in x])
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
