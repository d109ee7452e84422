"""Tests effects: printing in order, and KV caches that grow in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.relax.frontend import nn
from pliant.relax.frontend.nn import spec
from pliant.runtime.kv_cache import ContiguousKVCache


class Printing(nn.Module):
    def forward(self, x: nn.Tensor) -> Any:
        nn.print_(x)
        y = x + 1
        nn.print_(y)
        nn.debug_func("test_nn.record", y, 3, 2.5, "text")
        nn.print_(x)
        return y


def test_effects_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    pliant.register_func("test_nn.record", lambda *args: seen.append(args), override=True)
    compiled = Printing().jit({"forward": {"x": spec.Tensor(["n"], "float32")}}, out_format="numpy", debug=True)
    np.testing.assert_array_equal(compiled["forward"](np.ones(2, "float32")), [2, 2])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[") and not line.startswith("[/")]
    assert lines == ["[1. 1.]", "[2. 2.]", "[1. 1.]"]
    ((position, array, integer, number, text),) = seen
    assert position.startswith(__file__)
    np.testing.assert_array_equal(array.numpy(), [2, 2])
    assert (integer, number, text) == (3, 2.5, "text")


def test_print_of_an_io_effect(capsys: pytest.CaptureFixture[str]) -> None:
    class Direct(nn.Module):
        def forward(self, x: nn.Tensor) -> Any:
            io = nn.Exporter.current().io_effect
            assert io is not None
            for value in (x, x + 1, x):
                io.print_(value)
            return x

    compiled = Direct().jit({"forward": {"x": spec.Tensor(["n"], "float32")}}, out_format="numpy", debug=True)
    compiled["forward"](np.ones(2, "float32"))
    line = "effect.print: shape = (2,), dtype = float32, data ="
    assert capsys.readouterr().out.splitlines() == [line, "[1. 1.]", line, "[2. 2.]", line, "[1. 1.]"]


class CachedAttention(nn.Module):
    """Attention of new tokens to all tokens so far."""

    def __init__(self) -> None:
        self.keys = nn.KVCache(2, [2, 4])
        self.values = nn.KVCache(2, [2, 4])

    def forward(self, x: nn.Tensor, total: Any) -> nn.Tensor:
        self.keys.append(x)
        self.values.append(x * 2)
        k, v = (cache.view(total).reshape(1, total, 2, 4) for cache in (self.keys, self.values))
        return nn.scaled_dot_product_attention(x.reshape(1, x.shape[0], 2, 4), k, v)


def test_kv_cache_grows() -> None:
    raw = {"forward": {"x": spec.Tensor(["s", 2, 4], "float32"), "total": int}}
    compiled = CachedAttention().jit(raw, out_format="numpy")
    rng = np.random.default_rng(0)
    tokens = np.zeros((0, 2, 4), "float32")
    for length in (3, 1, 0, 1, 5, 1, 1):
        x = rng.standard_normal((length, 2, 4)).astype("float32")
        tokens = np.concatenate([tokens, x])
        got = compiled["forward"](x, len(tokens))
        scores = np.einsum("qhd,khd->hqk", x, tokens) / 2
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(got[0], np.einsum("hqk,khd->qhd", weights, tokens * 2), rtol=1e-4, atol=1e-5)
    keys, values = compiled.effects
    assert keys is not values
    assert keys.length == len(tokens) == 12
    with pytest.raises(ValueError, match=r"a view of shape \(20, 2, 4\)"):
        compiled["forward"](np.zeros((1, 2, 4), "float32"), 20)
    compiled.reset()
    compiled["forward"](np.zeros((1, 2, 4), "float32"), 1)
    assert compiled.effects[0].length == 1


def test_views_are_not_changed_in_place() -> None:
    """The result of a view may be dead after its use, but operators must not overwrite the cache."""

    class Overwriting(nn.Module):
        def __init__(self) -> None:
            self.cache = nn.KVCache(4, [3])

        def forward(self, x: nn.Tensor) -> Any:
            self.cache.append(x)
            y = nn.exp(self.cache.view(x.shape[0]))
            return nn.sum(y * y + 1)

    compiled = Overwriting().jit({"forward": {"x": spec.Tensor(["n", 3], "float32")}}, out_format="numpy")
    x = np.ones((2, 3), "float32")
    compiled["forward"](x)
    np.testing.assert_array_equal(compiled.effects[0].view(), x)


def test_appended_rows_are_written_in_place() -> None:
    cache = ContiguousKVCache(np.zeros((0, 4), "float32"), 4, 0)
    row, buffers, copies = np.ones((1, 4), "float32"), set(), 0
    for i in range(1000):
        before = cache.view()
        cache.append(row)
        copies += before.shape[0] if not np.shares_memory(before, cache.view()) and i else 0
        buffers.add(cache.view().ctypes.data)
    assert cache.length == 1000
    assert cache.capacity <= 2048
    assert len(buffers) <= math.ceil(math.log2(1000))
    assert copies <= 1024


def test_errors_of_kv_caches() -> None:
    class Wrong(nn.Module):
        def __init__(self) -> None:
            self.cache = nn.KVCache(4, [3], dtype="float16")

        def forward(self, x: nn.Tensor) -> Any:
            self.cache.append(x)
            return x

    with pytest.raises(TypeError, match="data type float16, but the appended tensor has float32"):
        Wrong().export_tvm({"forward": {"x": spec.Tensor(["n", 3], "float32")}})
    cache = ContiguousKVCache(np.zeros((2, 3), "float32"), 4, 2)
    with pytest.raises(ValueError, match=r"rows of shape \(3,\)"):
        cache.append(np.zeros((1, 4), "float32"))
    with pytest.raises(ValueError, match="cannot remove 3 rows"):
        cache.pop(3)
    with pytest.raises(ValueError, match="cannot start with 3 of 2 rows"):
        ContiguousKVCache(np.zeros((2, 3), "float32"), 4, 3)


def _function(name: str) -> Any:
    return pliant.get_global_func(f"vm.builtin.attention_kv_cache_{name}")


def test_packed_functions_of_kv_caches() -> None:
    rows = pliant.nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    cache = _function("create")(rows, pliant.runtime.ShapeTuple([4, 3]), 1)
    np.testing.assert_array_equal(_function("view")(cache).numpy(), rows.numpy()[:1])
    cache = _function("append")(cache, rows)
    np.testing.assert_array_equal(_function("view")(cache, pliant.runtime.ShapeTuple([2, 3])).numpy(), rows.numpy()[[0, 0]])
    cache = _function("update")(cache, rows)
    np.testing.assert_array_equal(_function("view")(cache).numpy(), rows.numpy())
    several = _function("create_multiple")(rows, pliant.runtime.ShapeTuple([2, 3]), 2, 3)
    _function("array_popn")(several, 1)
    assert [_function("view")(c).shape for c in several] == [(1, 3)] * 3
    _function("array_clear")(several)
    assert [_function("view")(c).shape for c in several] == [(0, 3)] * 3


@pytest.mark.parametrize("sinks", [0, 1])
def test_sliding_windows_overwrite_the_oldest_rows(sinks: int) -> None:
    cache = _function("create")(pliant.nd.array(np.zeros((0, 1), "float32")), pliant.runtime.ShapeTuple([4, 1]), 0)
    for i in range(7):
        row = pliant.nd.array(np.array([[i]], "float32"))
        if sinks:
            cache = _function("window_override_with_sinks")(cache, row, 4, sinks)
        else:
            cache = _function("window_override")(cache, row, 4)
    kept = sorted(_function("view")(cache).numpy()[:, 0])
    assert kept == ([0, 4, 5, 6] if sinks else [3, 4, 5, 6])
