"""Tests operators of com.microsoft: results that agree with ONNX Runtime, and errors for unsupported features."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import INT64, model_of, node

import pliant

INT32 = TensorProto.INT32
RNG = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def model(op: str, inputs: dict[str, Any], outputs: list[str], order: list[str] | None = None, **attrs: Any) -> onnx.ModelProto:
    """Builds a model of one node. An empty name in `order` is an absent input."""
    made = helper.make_node(op, list(inputs) if order is None else order, outputs, domain="com.microsoft", **attrs)
    made = model_of([made], inputs, [o for o in outputs if o])
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def compile_and_run(made: onnx.ModelProto, *args: Any) -> Any:
    got = pliant.compile(made)(*args)
    return [np.asarray(g) for g in got] if isinstance(got, tuple | list) else np.asarray(got)


# ---- GroupQueryAttention ----

HEADS, SIZE = 2, 8
GROUPED: dict[str, Any] = {
    "q": ["b", "s", HEADS * SIZE], "k": ["b", "s", SIZE], "v": ["b", "s", SIZE],
    "pk": ["b", 1, "p", SIZE], "pv": ["b", 1, "p", SIZE], "last": (INT32, ["b"]), "total": (INT32, []),
}  # fmt: skip
TURNS = np.outer(np.arange(32), 0.7 ** np.arange(SIZE // 2))
CACHES = {"cos": np.cos(TURNS).astype(np.float32), "sin": np.sin(TURNS).astype(np.float32)}


def grouped(beside: dict[int, tuple[str, Any]] | None = None, outputs: int = 3, **attrs: Any) -> onnx.ModelProto:
    """Builds a model with grouped-query attention and a cache. `beside` contains further inputs by
    position, with their dims.
    """
    beside = beside or {}
    order = list(GROUPED) + [""] * (max(beside, default=6) - 6)
    for place, (name, _) in beside.items():
        order[place] = name
    attrs = {"num_heads": HEADS, "kv_num_heads": 1} | attrs
    names = ["y", "nk", "nv", "qk"][:outputs]
    return model("GroupQueryAttention", GROUPED | dict(beside.values()), names, order, **attrs)


def cached(b: int, s: int, p: int, last: list[int]) -> list[Any]:
    sizes = [(b, s, HEADS * SIZE), (b, s, SIZE), (b, s, SIZE), (b, 1, p, SIZE), (b, 1, p, SIZE)]
    return [floats(*size) for size in sizes] + [np.array(last, np.int32), np.int32(s + p)]


REFUSED = [
    ({11: ("sink", [HEADS])}, {}, 3, ["head_sink (input 11)"]),
    ({14: ("qn", [SIZE]), 15: ("kn", [SIZE])}, {}, 3, ["q_norm_weight (input 14)", "k_norm_weight (input 15)"]),
    ({12: ("ks", [1])}, {"k_quant_type": "PER_TENSOR"}, 3, ["k_scale (input 12)", "k_quant_type='PER_TENSOR'"]),
    ({}, {"smooth_softmax": 1, "causal": 0}, 3, ["causal=0", "smooth_softmax=1"]),
    ({}, {"sliding_window_cache": 1, "local_window_size": 2}, 3, ["sliding_window_cache=1"]),
    ({}, {"qk_output": 1}, 4, ["output_qk (output 3)", "qk_output=1"]),
]


@pytest.mark.parametrize(("beside", "attrs", "outputs", "words"), REFUSED)
def test_unsupported_grouped_attention_is_rejected(
    beside: dict[int, tuple[str, Any]], attrs: dict[str, Any], outputs: int, words: list[str]
) -> None:
    with pytest.raises(pliant.UnsupportedError) as told:
        pliant.compile(grouped(beside, outputs, **attrs))
    for word in words:
        assert word in str(told.value)


def test_grouped_attention_accepts_default_attributes() -> None:
    attrs = {"causal": 1, "smooth_softmax": -1, "sliding_window_cache": 0, "qk_output": 0, "k_quant_type": "NONE"}
    args = cached(2, 1, 3, [3, 3])
    np.testing.assert_array_equal(compile_and_run(grouped(**attrs), *args)[0], compile_and_run(grouped(), *args)[0])


def test_grouped_attention_caches_end_with_new_keys() -> None:
    compiled = pliant.compile(grouped())
    compiled(*cached(2, 1, 4, [4, 4]))
    compiled(*cached(2, 3, 0, [2, 1]))  # Prompts may differ in length.
    compiled(*cached(0, 1, 4, []))
    for args in (cached(2, 1, 4, [4, 2]), cached(1, 1, 10, [4]), cached(1, 3, 0, [3])):
        with pytest.raises(pliant.PliantError, match=r"the sequences end at different positions: seqlens_k \+ 1 must be"):
            compiled(*args)


def turned(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    cos, sin = (CACHES[name][places] for name in ("cos", "sin"))
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@pytest.mark.parametrize(
    ("past", "given", "used"), [(4, [3, 9, 1], [3, 9, 1]), (0, [5, 6, 7], [5, 6, 7]), (0, [3, 9, 1], [3, 4, 5])]
)
def test_grouped_attention_position_ids(past: int, given: list[int], used: list[int]) -> None:
    """Checks that for a prompt only the first position id counts, as in ONNX Runtime."""
    beside = {7: ("cos", [32, 4]), 8: ("sin", [32, 4]), 9: ("places", (INT64, ["b", "s"]))}
    args = cached(1, 3, past, [past + 2])
    keys = compile_and_run(grouped(beside, do_rotary=1), *args, *CACHES.values(), np.array([given]))[1]
    np.testing.assert_array_equal(keys[:, :, :past], args[3])
    np.testing.assert_allclose(keys[0, 0, past:], turned(args[1][0], np.array(used)), rtol=1e-5, atol=1e-6)


def test_empty_attention_window() -> None:
    y = compile_and_run(grouped(local_window_size=0), *cached(1, 3, 0, [2]))[0]
    np.testing.assert_array_equal(y, np.zeros((1, 3, HEADS * SIZE), np.float32))


def test_packed_queries_have_the_right_width() -> None:
    inputs = GROUPED | {"q": ["b", "s", 34]}
    order = ["q", "", "", *list(GROUPED)[3:]]
    del inputs["k"], inputs["v"]
    with pytest.raises(pliant.CompileError, match="have 34 columns, but their heads need 32"):
        pliant.compile(model("GroupQueryAttention", inputs, ["y", "nk", "nv"], order, num_heads=2, kv_num_heads=1))


# ---- Attention, MultiHeadAttention, RotaryEmbedding ----


def test_shared_cache_buffers_are_rejected() -> None:
    inputs: dict[str, Any] = {"x": ["b", "s", 8], "w": [8, 24], "past": [2, "b", 2, "p", 4], "length": (INT32, [])}
    order = ["x", "w", "", "", "past", "", "length"]
    made = model("Attention", inputs, ["y", "present"], order, num_heads=2, past_present_share_buffer=1)
    with pytest.raises(pliant.UnsupportedError, match=r"past_sequence_length \(input 6\), past_present_share_buffer=1"):
        pliant.compile(made)


def multi_head(outputs: list[str], *, queries: Any = "s", keys: Any = "t", causal: int = 0, **beside: Any) -> onnx.ModelProto:
    inputs: dict[str, Any] = {"q": ["b", queries, 8], "k": ["b", keys, 8], "v": ["b", keys, 8]}
    order = [*inputs] + [""] * 7
    for name, (place, dims) in beside.items():
        inputs[name] = dims
        order[place] = name
    return model("MultiHeadAttention", inputs, outputs, order, num_heads=2, unidirectional=causal)


def test_multi_head_attention_buffers_and_beams_are_rejected() -> None:
    beside: dict[str, Any] = {"length": (8, (INT32, [1])), "beams": (9, (INT32, ["b", 1, "m"]))}
    with pytest.raises(pliant.UnsupportedError, match=r"past_sequence_length \(input 8\), cache_indirection \(input 9\)"):
        pliant.compile(multi_head(["y"], **beside))
    with pytest.raises(pliant.UnsupportedError, match=r"qk \(output 3\)"):
        pliant.compile(multi_head(["y", "", "", "qk"]))


def test_queries_without_key_positions_are_rejected() -> None:
    """Checks that queries without key positions are rejected: by the compiler if the sizes are
    known, otherwise at run time.
    """
    words = "unidirectional=1 with a number of keys that may differ from that of the queries"
    q, k, v = floats(1, 3, 8), floats(1, 3, 8), floats(1, 3, 8)
    with pytest.raises(pliant.UnsupportedError, match=words):
        pliant.compile(multi_head(["y"], queries=3, keys=5, causal=1))
    open_sizes = pliant.compile(multi_head(["y"], causal=1))
    with pytest.raises(pliant.VMError, match=words):
        open_sizes(q, floats(1, 5, 8), floats(1, 5, 8))
    for run in (open_sizes, pliant.compile(multi_head(["y"], keys="s", causal=1))):
        np.testing.assert_allclose(np.asarray(run(q, k, v))[:, 0], v[:, 0], rtol=1e-6)
    past: dict[str, Any] = {"pk": (6, ["b", 2, "p", 4]), "pv": (7, ["b", 2, "p", 4])}
    old = floats(1, 2, 5, 4)
    y = compile_and_run(multi_head(["y"], causal=1, **past), q, k, v, old, 0 * old)
    assert y.shape == (1, 3, 8)


def test_attention_weights_and_biases_have_the_right_width() -> None:
    made = model("Attention", {"x": ["b", "s", 8], "w": [8, 26]}, ["y"], num_heads=2)
    with pytest.raises(pliant.CompileError, match="the weights .input 1. have 26 columns, but queries, keys and values together need 24"):
        pliant.compile(made)
    with pytest.raises(pliant.CompileError, match="the bias .input 3. has 40 elements, but queries, keys and values together need 24"):
        pliant.compile(multi_head(["y"], bias=(3, [40])))


@pytest.mark.parametrize(("attrs", "word"), [({"scale": 0.5}, "scale=0.5"), ({"is_packed_batching": 1}, "is_packed_batching=1")])
def test_packed_or_scaled_rotary_positions_are_rejected(attrs: dict[str, Any], word: str) -> None:
    inputs: dict[str, Any] = {"x": ["b", "s", 16], "p": (INT64, ["b", "s"]), "c": [32, 4], "z": [32, 4]}
    with pytest.raises(pliant.UnsupportedError, match=word):
        pliant.compile(model("RotaryEmbedding", inputs, ["y"], **attrs))
    pliant.compile(model("RotaryEmbedding", inputs, ["y"], scale=1.0, is_packed_batching=0))


# ---- others ----


def test_embedding_mask_counts_ones() -> None:
    dims: dict[str, Any] = {"i": (INT32, ["b", "s"]), "w": [9, 8], "p": [5, 8], "g": [8], "o": [8], "m": (INT32, ["b", "s"])}
    order = ["i", "", "w", "p", "", "g", "o", "m"]
    args = [np.zeros((2, 3), np.int32), floats(9, 8), floats(5, 8), floats(8), floats(8), np.array([[2, 1, 0], [0, 1, 1]], np.int32)]
    counts = compile_and_run(model("EmbedLayerNormalization", dims, ["y", "counts"], order), *args)[1]
    np.testing.assert_array_equal(counts, [1, 2])


def test_second_activation_parameter_without_the_first() -> None:
    made = model("FusedGemm", {"a": ["m", 3], "b": [3, 4]}, ["y"], activation="HardSigmoid", activation_beta=0.25)
    a, b = floats(2, 3), floats(3, 4)
    np.testing.assert_allclose(compile_and_run(made, a, b), np.clip(0.2 * (a @ b) + 0.25, 0, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("opset", "outputs"), [(9, 5), (15, 3)])
def test_batch_normalization_without_running_statistics_is_rejected(opset: int, outputs: int) -> None:
    names = ["y", "m1", "v1", "m2", "v2"][:outputs]
    inputs = {"x": ["n", 3, 4]} | {name: [3] for name in ("s", "b", "m", "v")}
    made = model_of([node("BatchNormalization", "x s b m v", " ".join(names))], inputs, names, opset=opset)
    with pytest.raises(pliant.UnsupportedError, match=r"running_mean \(output 1\), running_var \(output 2\)"):
        pliant.compile(made)


def test_scales_of_higher_rank_do_not_broadcast_the_data() -> None:
    inputs: dict[str, Any] = {"x": ["a", 1], "s": ["c", "d"]}
    made = pliant.compile(model_of([node("QuantizeLinear", "x s", "y")], inputs, ["y"], opset=21))
    x = floats(2, 1)
    want = np.clip(np.rint(x), 0, 255).astype(np.uint8)
    np.testing.assert_array_equal(made(x, np.ones((2, 1), np.float32)), want)
    np.testing.assert_array_equal(made(x, np.ones((1, 1), np.float32)), want)
    with pytest.raises(pliant.PliantError, match="the scale or zero point has a dim of size 4, which does not broadcast to the tensor's dim of size 1"):
        made(x, np.ones((2, 4), np.float32))


def test_past_keys_without_values_are_invalid() -> None:
    with pytest.raises(pliant.CompileError, match="past keys and values .inputs 6 and 7. must both be present or both be absent"):
        pliant.compile(multi_head(["y"], pk=(6, ["b", 2, "p", 4])))
