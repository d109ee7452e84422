"""Tests ONNX operators at shapes and axes known only at run time, loops, small element types, and com.microsoft."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import pliant

from onnx_models import BOOL, FLOAT, INT64, model_of, node

RNG = np.random.default_rng(7)


def run(model: onnx.ModelProto, *args: Any) -> Any:
    got = pliant.compile(model)(*args)
    return [np.asarray(g) for g in got] if isinstance(got, tuple | list) else np.asarray(got)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def microsoft(op: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), domain="com.microsoft", **attrs)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[0], [1, 2], [-1, 0]])
def test_reduction_axes_as_input(axes: list[int], keep: int) -> None:
    model = model_of(
        [node("ReduceSum", "x axes", "y", keepdims=keep)],
        {"x": ["a", "b", "c"], "axes": (INT64, [len(axes)])},
        ["y"],
    )
    x = floats(2, 3, 4)
    np.testing.assert_allclose(run(model, x, np.array(axes)), x.sum(tuple(axes), keepdims=bool(keep)), rtol=1e-5)


def test_slice_bounds_axes_and_steps_as_inputs() -> None:
    names = {name: (INT64, [2]) for name in ("starts", "ends", "axes", "steps")}
    model = model_of([node("Slice", "x starts ends axes steps", "y")], {"x": ["a", 5, "c"]} | names, ["y"])
    compiled = pliant.compile(model)
    x = floats(3, 5, 7)
    bounds = [np.array(v) for v in ([0, -1], [2, -100], [0, 2], [1, -2])]
    np.testing.assert_array_equal(compiled(x, *bounds), x[0:2, :, -1:-100:-2])
    bounds = [np.array(v) for v in ([1, 0], [2**60, 9], [1, -1], [3, 1])]
    np.testing.assert_array_equal(compiled(x, *bounds), x[:, 1::3, :])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_padding_amounts_as_input(mode: str) -> None:
    model = model_of([node("Pad", "x pads", "y", mode=mode)], {"x": ["a", "b"], "pads": (INT64, [4])}, ["y"], opset=19)
    x = floats(3, 5)
    want = np.pad(x, [(1, 0), (2, 3)], mode=mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(run(model, x, np.array([1, 2, 0, 3])), want)
    if mode == "constant":
        np.testing.assert_array_equal(run(model, x, np.array([-1, 0, 2, -2])), np.pad(x[1:, :-2], [(0, 2), (0, 0)]))


def test_topk_count_as_input() -> None:
    model = model_of([node("TopK", "x k", "v i")], {"x": ["a", "b"], "k": (INT64, [1])}, ["v", "i"])
    x = floats(3, 6)
    for k in (1, 4, 6):
        values, places = run(model, x, np.array([k]))
        np.testing.assert_array_equal(places, np.argsort(-x, axis=1, kind="stable")[:, :k])
        np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))


def test_loop_with_growing_state_and_scan_outputs() -> None:
    """Tests a loop whose iterations append to the state, and each add a part to a scan output."""
    body = helper.make_graph(
        [
            node("Concat", "s s0", "longer", axis=0),
            node("ReduceSum", "longer", "total", keepdims=0),
            node("Identity", "go", "go_on"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, []),
            helper.make_tensor_value_info("go", BOOL, []),
            helper.make_tensor_value_info("s", FLOAT, ["n"]),
        ],
        [onnx.ValueInfoProto(name=o) for o in ("go_on", "longer", "total")],
    )
    model = model_of(
        [node("Identity", "x", "s0"), helper.make_node("Loop", ["turns", "", "s0"], ["last", "sums"], body=body)],
        {"turns": (INT64, []), "x": ["m"]},
        ["last", "sums"],
    )
    compiled = pliant.compile(model)
    x = np.array([1, 2], np.float32)
    for turns in (0, 1, 3):
        last, sums = compiled(np.int64(turns), x)
        np.testing.assert_array_equal(last, np.tile(x, turns + 1))
        np.testing.assert_array_equal(sums, [3.0 * (t + 2) for t in range(turns)])


def test_scan_reverse_direction_and_output_axis() -> None:
    body = helper.make_graph(
        [node("Add", "sum e", "next"), node("Identity", "next", "out")],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, ["d"]) for name in ("sum", "e")],
        [onnx.ValueInfoProto(name=o) for o in ("next", "out")],
    )
    attrs = {"num_scan_inputs": 1, "scan_input_directions": [1], "scan_output_axes": [1]}
    scan = helper.make_node("Scan", ["first", "x"], ["last", "all"], body=body, **attrs)
    model = model_of([scan], {"first": ["d"], "x": ["steps", "d"]}, ["last", "all"])
    first, x = floats(3), floats(4, 3)
    last, everything = run(model, first, x)
    sums = first + np.cumsum(x[::-1], axis=0)
    np.testing.assert_allclose(last, sums[-1], rtol=1e-5)
    np.testing.assert_allclose(everything, sums.T, rtol=1e-5)


def test_random_numbers_are_the_same_each_run_and_differ_by_seed() -> None:
    def draw(seed: float, count: int) -> np.ndarray:
        model = model_of([node("RandomUniformLike", "x", "y", seed=seed, low=-1.0, high=3.0)], {"x": ["n"]}, ["y"])
        return run(model, np.zeros(count, np.float32))

    a = draw(1.0, 4000)
    np.testing.assert_array_equal(a, draw(1.0, 4000))
    assert not np.array_equal(a, draw(2.0, 4000))
    assert a.min() >= -1 and a.max() < 3
    assert abs(a.mean() - 1) < 0.1 and abs(a.std() - 4 / 12**0.5) < 0.1


def test_dropout_drops_in_training_only() -> None:
    model = model_of(
        [node("Dropout", "x ratio training", "y mask")],
        {"x": ["n"], "ratio": (FLOAT, []), "training": (BOOL, [])},
        ["y", "mask"],
    )
    x = np.ones(2000, np.float32)
    y, mask = run(model, x, np.float32(0.25), np.bool_(False))
    assert mask.all() and (y == x).all()
    y, mask = run(model, x, np.float32(0.25), np.bool_(True))
    assert 0.7 < mask.mean() < 0.8
    np.testing.assert_allclose(y, mask / 0.75, rtol=1e-6)


@pytest.mark.parametrize("saturate", [0, 1])
def test_8_bit_floats_are_moved_and_converted(saturate: int) -> None:
    nodes = [
        node("Cast", "x", "c", to=TensorProto.FLOAT8E4M3FN, saturate=saturate),
        node("Transpose", "c", "t"),
        node("Cast", "t", "y", to=FLOAT),
    ]
    model = model_of(nodes, {"x": ["a", "b"]}, ["y"], opset=21)
    x = np.array([[0.3, -1.06, 1e9], [np.nan, 2**-9, 464.0]], np.float32)
    beyond = 448.0 if saturate else np.nan
    np.testing.assert_array_equal(run(model, x), np.array([[0.3125, -1.0, beyond], [np.nan, 2**-9, 448.0]]).T)


NARROW_FLOATS = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("to", NARROW_FLOATS)
def test_casts_to_narrow_floats_round_to_nearest_even(to: int, saturate: int) -> None:
    """Compares all float16 numbers, all midpoints between adjacent numbers of the type, and their neighbours."""
    narrow = NARROW_FLOATS[to]
    largest = float(ml_dtypes.finfo(narrow).max)
    # float4e2m1 has neither infinity nor NaN.
    saturates = saturate or to == TensorProto.FLOAT4E2M1
    codes = np.arange(256 if to != TensorProto.FLOAT4E2M1 else 16, dtype=np.uint8).view(narrow).astype(np.float32)
    numbers = np.unique(codes[np.isfinite(codes)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    edges = np.array([3e38, 1e-45, largest * 1.03125, largest * 1.0625, np.inf, np.nan], np.float32)
    x = np.concatenate([numbers, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf), halves, edges, -edges])
    nodes = [node("Cast", "x", "c", to=to, saturate=saturate), node("Cast", "c", "y", to=FLOAT)]
    with np.errstate(invalid="ignore"):
        want = (np.clip(x, -largest, largest) if saturates else x).astype(narrow).astype(np.float32)
    if to == TensorProto.FLOAT4E2M1:
        x, want = x[~np.isnan(x)], want[~np.isnan(x)]
    got = run(model_of(nodes, {"x": ["n"]}, ["y"], opset=23), x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.parametrize("mode", ["up", "nearest", "down"])
def test_casts_to_exponents_without_saturation_overflow_to_nan(mode: str) -> None:
    to = TensorProto.FLOAT8E8M0
    x = np.array([1.0, 1.5, 2.0**127, 1.25 * 2.0**127, 1.75 * 2.0**127], np.float32)
    for saturate in (0, 1):
        nodes = [node("Cast", "x", "c", to=to, saturate=saturate, round_mode=mode), node("Cast", "c", "y", to=FLOAT)]
        exponents = {"up": [0, 1, 127, 128, 128], "nearest": [0, 1, 127, 127, 128], "down": [0, 0, 127, 127, 127]}[mode]
        want = [2.0 ** min(e, 127) if e < 128 or saturate else np.nan for e in exponents]
        np.testing.assert_array_equal(run(model_of(nodes, {"x": ["n"]}, ["y"], opset=24), x), np.array(want, np.float32))


def test_arithmetic_on_8_bit_floats_is_rejected() -> None:
    nodes = [node("Cast", "x", "c", to=TensorProto.FLOAT8E5M2), node("IsNaN", "c", "y")]
    with pytest.raises(pliant.UnsupportedError, match="convert input 0 to a float type with a Cast or DequantizeLinear node"):
        pliant.compile(model_of(nodes, {"x": ["n"]}, ["y"], opset=21))


def test_4_bit_integers_saturate_when_they_are_quantized() -> None:
    zero = helper.make_tensor("zero", TensorProto.INT4, [], [1])
    nodes = [node("QuantizeLinear", "x s zero", "q"), node("DequantizeLinear", "q s zero", "y")]
    model = model_of(nodes, {"x": ["n"]}, ["y"], {"s": np.float32(0.5)}, opset=21)
    model.graph.initializer.append(zero)
    x = np.array([-100, -1.1, 0, 0.8, 100], np.float32)
    q = np.clip(np.round(x / 0.5) + 1, -8, 7)
    np.testing.assert_allclose(run(model, x), (q - 1) * 0.5)


def test_grouped_attention_with_a_growing_cache() -> None:
    """Checks that a prompt and one more token give the same result as the whole sequence."""
    attrs = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    inputs = "q k v pk pv lens total cos sin"
    turns = np.outer(np.arange(16), 0.7 ** np.arange(4))
    model = model_of(
        [microsoft("GroupQueryAttention", inputs, "y nk nv", **attrs)],
        {
            "q": ["b", "s", 32], "k": ["b", "s", 16], "v": ["b", "s", 16],
            "pk": ["b", 2, "p", 8], "pv": ["b", 2, "p", 8],
            "lens": (TensorProto.INT32, ["b"]), "total": (TensorProto.INT32, []),
        },
        ["y", "nk", "nv"],
        {"cos": np.cos(turns).astype(np.float32), "sin": np.sin(turns).astype(np.float32)},
    )  # fmt: skip
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    compiled = pliant.compile(model)
    q, k, v = floats(2, 5, 32), floats(2, 5, 16), floats(2, 5, 16)
    none = np.zeros((2, 2, 0, 8), np.float32)

    def step(a: int, b: int, pk: Any, pv: Any) -> Any:
        lens = np.full(2, b - 1, np.int32)
        return [np.asarray(t) for t in compiled(q[:, a:b], k[:, a:b], v[:, a:b], pk, pv, lens, np.int32(b))]

    whole, _, _ = step(0, 5, none, none)
    first, pk, pv = step(0, 4, none, none)
    last, pk, _ = step(4, 5, pk, pv)
    assert pk.shape == (2, 2, 5, 8)
    np.testing.assert_allclose(np.concatenate([first, last], 1), whole, rtol=1e-4, atol=1e-5)


def test_matmul_with_4_bit_weights() -> None:
    w = RNG.integers(0, 16, (3, 2, 16)).astype(np.uint8)
    packed = (w[..., 0::2] | (w[..., 1::2] << 4)).astype(np.uint8)
    scales = np.abs(floats(3, 2)) + 0.1
    model = model_of(
        [microsoft("MatMulNBits", "x b s", "y", K=32, N=3, bits=4, block_size=16)],
        {"x": ["n", 32]},
        ["y"],
        {"b": packed, "s": scales.reshape(-1)},
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x = floats(4, 32)
    weights = ((w.astype(np.float32) - 8) * scales[..., None]).reshape(3, 32)
    np.testing.assert_allclose(run(model, x), x @ weights.T, rtol=1e-4, atol=1e-4)


def test_skip_layer_normalization_returns_the_sum() -> None:
    skip = microsoft("SkipLayerNormalization", "x s g b", "", epsilon=1e-5)
    skip.output.extend(["y", "", "", "sum"])
    model = model_of([skip], {"x": ["n", "t", 6], "s": ["n", "t", 6], "g": [6], "b": [6]}, ["y", "sum"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x, s, g, b = floats(2, 3, 6), floats(2, 3, 6), floats(6), floats(6)
    y, total = run(model, x, s, g, b)
    both = x + s
    np.testing.assert_allclose(total, both, rtol=1e-6)
    normal = (both - both.mean(-1, keepdims=True)) / np.sqrt(both.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, normal * g + b, rtol=1e-4, atol=1e-5)


def test_attention_of_microsoft_masks_keys() -> None:
    inputs = {"x": ["n", "s", 6], "w": [6, 12], "b": [12], "m": (TensorProto.INT32, ["n", "s"])}
    model = model_of([microsoft("Attention", "x w b m", "y", num_heads=2)], inputs, ["y"])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x, w, b = floats(2, 4, 6), floats(6, 12), floats(12)
    mask = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
    q, k, v = (p.reshape(2, 4, 2, 2).transpose(0, 2, 1, 3) for p in np.split(x @ w + b, 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / 2**0.5 + np.where(mask, 0, -np.inf)[:, None, None]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    want = (weights @ v).transpose(0, 2, 1, 3).reshape(2, 4, 4)
    np.testing.assert_allclose(run(model, x, w, b, mask), want, rtol=1e-4, atol=1e-5)


def test_sequences_of_known_length_are_expanded_at_import() -> None:
    nodes = [
        node("SplitToSequence", "x lengths", "parts", axis=1),
        node("SequenceAt", "parts last", "b"),
        node("SequenceErase", "parts first", "rest"),
        node("SequenceInsert", "rest x first", "more"),
        node("ConcatFromSequence", "more", "y", axis=1),
    ]
    constants = {"lengths": np.array([2, 3]), "last": np.int64(-1), "first": np.int64(0)}
    model = model_of(nodes, {"x": ["n", 5]}, ["b", "y"], constants)
    x = floats(2, 5)
    b, y = run(model, x)
    np.testing.assert_array_equal(b, x[:, 2:])
    np.testing.assert_array_equal(y, np.concatenate([x, x[:, 2:]], 1))


@pytest.mark.parametrize("training", [0, 1])
def test_batch_norm_of_float16_with_float32_statistics(training: int) -> None:
    outputs = "y m v" if training else "y"
    nodes = [node("BatchNormalization", "x s b mean var", outputs, training_mode=training)]
    rng = np.random.default_rng(1)
    parts = {k: rng.random(3, np.float32) + 0.5 for k in ("s", "b", "mean", "var")}
    model = pliant.compile(model_of(nodes, {"x": (TensorProto.FLOAT16, ["n", 3])}, outputs.split(), parts))
    x = rng.standard_normal((5, 3)).astype(np.float16)
    got = model.run(None, {"x": x})
    wide = x.astype(np.float32)
    mean, var = (wide.mean(0), wide.var(0)) if training else (parts["mean"], parts["var"])
    expected = (wide - mean) / np.sqrt(var + 1e-5) * parts["s"] + parts["b"]
    assert got[0].dtype == np.float16
    np.testing.assert_allclose(got[0], expected, rtol=2e-3, atol=2e-3)
    if training:
        assert got[1].dtype == np.float32
        np.testing.assert_allclose(got[1], 0.9 * parts["mean"] + 0.1 * mean, rtol=1e-3, atol=1e-3)


def test_rms_norm_result_has_the_type_of_its_scale() -> None:
    scale = {"s": np.array([1, 2, 3], np.float16)}
    model = pliant.compile(model_of([node("RMSNormalization", "x s", "y")], {"x": ["n", 3]}, ["y"], scale, opset=23))
    x = np.array([[1, 2, 2], [0, 3, 4]], np.float32)
    got = model.run(None, {"x": x})[0]
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * scale["s"], rtol=2e-3)


def test_means_of_integers_are_integers() -> None:
    x = np.array([[1, 2, -7], [4, 4, 5]], np.int64)
    mean = pliant.compile(model_of([node("ReduceMean", "x a", "y", keepdims=0)], {"x": (INT64, ["n", 3])}, ["y"], {"a": np.array([1])}))
    np.testing.assert_array_equal(mean.run(None, {"x": x})[0], [-1, 4])
    lse = pliant.compile(model_of([node("ReduceLogSumExp", "x", "y", keepdims=0)], {"x": (INT64, ["n", 3])}, ["y"]))
    assert lse.run(None, {"x": x})[0] == int(np.log(np.exp(x.astype(float)).sum()))


def test_attention_over_values_of_another_type() -> None:
    q, k, v = (np.random.default_rng(i).normal(size=(1, 2, 3, 4)).astype(np.float32) for i in range(3))
    inputs: Any = {name: (dtype, ["b", "h", f"{name}l", 4]) for name, dtype in (("q", 1), ("k", 1), ("v", 10))}
    model = model_of([node("Attention", "q k v", "y")], inputs, ["y"], opset=23)
    y = pliant.compile(model).run(None, {"q": q, "k": k, "v": v.astype(np.float16)})[0]
    weights = np.exp(q @ k.swapaxes(-1, -2) / 2)
    want = weights / weights.sum(-1, keepdims=True) @ v
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, want, rtol=1e-2, atol=1e-2)


def test_hardmax_before_opset_13_flattens_rows() -> None:
    x = np.array([[[1, 4], [5, 2]], [[7, 7], [0, 3]]], np.float32)
    old = pliant.compile(model_of([node("Hardmax", "x", "y", axis=1)], {"x": ["a", "b", "c"]}, ["y"], opset=11))
    new = pliant.compile(model_of([node("Hardmax", "x", "y", axis=1)], {"x": ["a", "b", "c"]}, ["y"], opset=13))
    (before,), (since,) = old.run(None, {"x": x}), new.run(None, {"x": x})
    np.testing.assert_array_equal(before, [[[0, 0], [1, 0]], [[1, 0], [0, 0]]])
    np.testing.assert_array_equal(since, [[[0, 1], [1, 0]], [[1, 1], [0, 0]]])
    empty = np.zeros((2, 0, 3), np.float32)
    assert [np.asarray(m.run(None, {"x": empty})[0]).shape for m in (old, new)] == [(2, 0, 3)] * 2


def test_backward_slices_starting_before_the_first_element() -> None:
    constants = {"start": np.array([-9]), "end": np.array([-(2**63)]), "axis": np.array([0]), "step": np.array([-2])}
    x = np.arange(4, dtype=np.float32)
    known = model_of([node("Slice", "x start end axis step", "y")], {"x": ["n"]}, ["y"], constants)
    np.testing.assert_array_equal(pliant.compile(known).run(None, {"x": x})[0], [0])
    fed = {name: (INT64, [1]) for name in constants}
    given = pliant.compile(model_of([node("Slice", "x start end axis step", "y")], {"x": ["n"]} | fed, ["y"]))
    for start, expected in ((-9, [0]), (-1, [3, 1]), (9, [3, 1]), (-3, [1])):
        feeds = {"x": x} | constants | {"start": np.array([start])}
        np.testing.assert_array_equal(given.run(None, feeds)[0], expected)
    sizes = [node("Shape", "x", "s"), node("Slice", "s start end axis step", "y")]
    np.testing.assert_array_equal(pliant.compile(model_of(sizes, {"x": ["n"]}, ["y"], constants)).run(None, {"x": x})[0], [4])
