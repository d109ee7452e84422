"""Tests operators at the limits of their definitions: a sum or power that exceeds its type, windows beyond the input,
counts of ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import INT64, model_of, node

import pliant
from pliant.error import AssertionFailed, CompileError, PliantError

F16, F32, F64, I16, I32 = np.float16, np.float32, np.float64, np.int16, np.int32


def given(*arrays: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(a) for name, a in zip("abcdefgh", arrays, strict=False)}


def results(made: Any, feeds: dict[str, np.ndarray], opset: int = 23, symbolic: bool = True) -> list[np.ndarray]:
    """Returns the results of a node for inputs with symbolic or constant sizes."""

    def spec(name: str, array: np.ndarray) -> Any:
        dims = [f"{name}{k}" for k in range(array.ndim)] if symbolic else list(array.shape)
        return helper.np_dtype_to_tensor_dtype(array.dtype), dims

    inputs = {name: spec(name, array) for name, array in feeds.items()}
    model = pliant.compile(model_of([made], inputs, list(made.output), opset=opset), allow_specialization=True)
    return [np.asarray(y) for y in model.run(None, feeds)]


def first(made: Any, *arrays: Any, opset: int = 23) -> np.ndarray:
    return results(made, given(*arrays), opset)[0]


pytestmark = pytest.mark.filterwarnings("ignore:.* would be fixed")


def test_odd_exponents() -> None:
    made = node("Pow", "a b", "y")
    assert first(made, F16([-1, -1, 2]), I32([2049, 4097, 3])).tolist() == [-1, -1, 8]
    assert first(made, F32([-1]), np.int64([2**24 + 1])).tolist() == [-1]


@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("symbolic", [True, False])
def test_max_pool_indices_refer_to_the_input(side: str, symbolic: bool) -> None:
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(F32)
    made = node("MaxPool", "a", "y places", kernel_shape=[3, 3], strides=[2, 2], auto_pad=side)
    y, places = results(made, given(x), symbolic=symbolic)
    np.testing.assert_array_equal(x.reshape(-1)[places], y)


def test_deviation_of_nearly_equal_numbers() -> None:
    y = first(node("MeanVarianceNormalization", "a", "y"), F32([[[[1e-5, 3e-5]]]]))
    np.testing.assert_allclose(y, [[[[-1, 1]]]], atol=1e-3)


def test_quantized_values_beyond_float16() -> None:
    made = node("DequantizeLinear", "a b", "y")
    assert first(made, np.uint16([65535]), F16(0.001))[0] == F16(F32(65535) * F32(F16(0.001)))
    made = node("QuantizeLinear", "a b c", "y")
    assert first(made, F16([100, 1, -100]), F16(1), np.uint16(30000)).tolist() == [30100, 30001, 29900]


def test_division_has_the_declared_precision() -> None:
    x, scale = F16([1.0, 3.0, 1000.0]), F16(0.1)
    made = node("QuantizeLinear", "a b", "y", precision=1)
    want = np.clip(np.rint(x.astype(F32) / F32(scale)), 0, 255)
    assert first(made, x, scale).tolist() == want.tolist()


def test_blocks_of_scales_cover_their_axis() -> None:
    x, scale = np.ones((1, 4), F32), np.ones((1, 2), F32)
    assert first(node("QuantizeLinear", "a b", "y", axis=1, block_size=2), x, scale).tolist() == [[1] * 4]
    with pytest.raises(CompileError, match="must not be negative"):
        first(node("QuantizeLinear", "a b", "y", axis=1, block_size=-2), x, scale)
    with pytest.raises(AssertionFailed, match="a dim of the scale or zero point is 2, but must be 1"):
        first(node("QuantizeLinear", "a b", "y", axis=1, block_size=4), x, scale)


@pytest.mark.parametrize(("axis", "shape"), [(1, (4,)), (-1, (1,)), (-1, ()), (1, (3, 1)), (1, (3, 4))])
def test_rms_normalization_scales_broadcast(axis: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, scale = rng.standard_normal((2, 3, 4)).astype(F32), np.asarray(rng.standard_normal(shape), F32)
    over = (1, 2) if axis == 1 else (2,)
    want = x / np.sqrt(np.mean(x**2, axis=over, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(first(node("RMSNormalization", "a b", "y", axis=axis), x, scale), want, rtol=1e-5)


def test_integer_results_are_truncated() -> None:
    made = node("Shrink", "a", "y", lambd=1.5, bias=1.5)
    assert first(made, np.int8([0, 1, 2, -3])).tolist() == [0, 0, 0, -1]
    made = node("Gemm", "a b c", "y", alpha=0.5, beta=0.5)
    assert first(made, I32([[3]]), I32([[5]]), I32([[7]])).tolist() == [[11]]
    made = node("ReduceL2", "a", "y")
    assert first(made, I32([[50000, 50000]]), opset=17).tolist() == [[70710]]


def test_shifted_reads_of_one_row_are_a_convolution() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 1, 1, 3)).astype(F32), rng.standard_normal((1, 1, 3, 3)).astype(F32)
    offset = np.zeros((1, 18, 1, 3), F32)
    y = first(node("DeformConv", "a b c", "y", pads=[1, 1, 1, 1]), x, w, offset)
    want = first(node("Conv", "a b", "y", pads=[1, 1, 1, 1]), x, w)
    np.testing.assert_allclose(y, want, rtol=1e-6)


def test_shifted_reads_of_a_long_axis_in_float16() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 1, 5, 500)).astype(F16), rng.standard_normal((1, 1, 3, 3)).astype(F16)
    offset = rng.standard_normal((1, 18, 5, 500)).astype(F16)
    made = node("DeformConv", "a b c", "y", pads=[1, 1, 1, 1])
    want = first(made, x.astype(F32), w.astype(F32), offset.astype(F32))
    np.testing.assert_allclose(first(made, x, w, offset), want, atol=0.03)


def test_stft_frame_length_equals_the_window() -> None:
    made = node("STFT", "a b c d", "y")
    signal, window = np.ones((1, 16, 1), F32), np.ones(6, F32)
    inputs = {"a": [1, 16, 1], "b": (INT64, []), "c": ["n"], "d": (INT64, [])}
    with pytest.raises(AssertionFailed, match="the window .input 2. has 6 elements, but the frame length .input 3. is 8"):
        pliant.compile(model_of([made], inputs, ["y"])).run(None, given(signal, np.int64(4), window, np.int64(8)))


def test_complex_component_axis_is_not_a_dft_axis() -> None:
    model = model_of([node("DFT", "x  k", "y")], {"x": [2, 6, 2], "k": (INT64, [])}, ["y"], opset=20)
    model.graph.node[0].input[:] = ["x", "", "k"]
    compiled = pliant.compile(model)
    x = np.ones((2, 6, 2), F32)
    assert compiled(x, np.array(1)).shape == (2, 6, 2)
    with pytest.raises(AssertionFailed, match="the axis .input 2. must be below 2, but is 2"):
        compiled(x, np.array(2))


def test_ngram_presence() -> None:
    attrs = {
        "mode": "IDF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
        "ngram_counts": [0], "ngram_indexes": [0, 1], "pool_int64s": [2, 3],
    }  # fmt: skip
    assert first(node("TfIdfVectorizer", "a", "y", **attrs), np.int64([2, 2, 5])).tolist() == [1, 0]


@pytest.mark.parametrize("parts", [[1, 1], [3, 3]])
def test_split_to_sequence_lengths_must_cover_the_axis(parts: list[int]) -> None:
    nodes = [node("SplitToSequence", "x c", "s"), node("SequenceLength", "s", "y")]
    with pytest.raises(CompileError, match=f"the lengths in 'split' sum to {sum(parts)}, but the axis that is split has 4 elements"):
        pliant.compile(model_of(nodes, {"x": [4]}, ["y"], {"c": np.array(parts)}))


def test_split_before_opset_18_needs_equal_parts() -> None:
    made = node("Split", "a", "y z")
    assert [p.shape for p in results(made, given(np.ones(6, F32)), opset=13)] == [(3,), (3,)]
    with pytest.raises(AssertionFailed, match="the last part would have 2 elements, but the others 3"):
        results(made, given(np.ones(5, F32)), opset=13)


def test_group_normalization_of_opset_18_scales_by_group() -> None:
    rng = np.random.default_rng(0)
    x, scale, bias = rng.standard_normal((1, 4, 3)).astype(F32), F32([2, 3]), F32([1, -1])
    apart = x.reshape(1, 2, 2, 3)
    mean, var = apart.mean((2, 3), keepdims=True), apart.var((2, 3), keepdims=True)
    want = (apart - mean) / np.sqrt(var + 1e-5) * scale.reshape(1, 2, 1, 1) + bias.reshape(1, 2, 1, 1)
    made = node("GroupNormalization", "a b c", "y", num_groups=2)
    np.testing.assert_allclose(first(made, x, scale, bias, opset=18), want.reshape(1, 4, 3), rtol=1e-4, atol=1e-5)


def test_pooling_windows_beyond_the_padding() -> None:
    x = np.arange(18, dtype=F32).reshape(1, 2, 3, 3)
    y = first(node("LpPool", "a", "y", kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1, p=1), x)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 2), (0, 3)))
    want = [padded[..., i : i + 2, j : j + 3].sum((2, 3)) for i in (0, 2) for j in (0,)]
    np.testing.assert_allclose(y.reshape(2, -1), np.stack(want, -1).reshape(2, -1))
    with pytest.raises(CompileError, match="'p' must be positive"):
        first(node("LpPool", "a", "y", kernel_shape=[2, 3], p=-3), x)


def test_cache_updates_must_fit() -> None:
    made = node("TensorScatter", "a b c", "y", mode="circular", axis=1)
    cache, update = np.zeros((1, 3, 1), F32), np.ones((1, 2, 1), F32)
    assert first(made, cache, update, np.int64([2]), opset=24).reshape(-1).tolist() == [1, 0, 1]
    with pytest.raises(AssertionFailed, match="has 4 positions along the axis, but the cache .input 0. has 3"):
        first(made, cache, np.ones((1, 4, 1), F32), np.int64([0]), opset=24)
    with pytest.raises(AssertionFailed, match="must not be negative"):
        first(made, cache, update, np.int64([-1]), opset=24)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("count", [1, 3, 64, 5001])
def test_integer_division_truncates(dtype: str, count: int) -> None:
    limits = np.iinfo(dtype)
    special = [limits.min, limits.min + 1, 0, 1, 7, limits.max - 1, limits.max]
    rng = np.random.default_rng(count)
    a, b = (np.where(rng.random(count) < 0.5, rng.choice(special, count), rng.integers(-99, 99, count)).astype(dtype) for _ in "ab")
    b[b == 0] = 1
    exact = [(int(x), int(y), abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)) for x, y in zip(a, b, strict=True)]
    want = np.array([(q + 2**63) % 2**64 - 2**63 for _, _, q in exact]).astype(dtype)
    np.testing.assert_array_equal(first(node("Div", "a b", "y"), a, b), want)
    rest = np.array([x - q * y for x, y, q in exact]).astype(dtype)
    np.testing.assert_array_equal(first(node("Mod", "a b", "y", fmod=1), a, b), rest)
    b[count // 2] = 0
    with pytest.raises(PliantError, match="division by zero"):
        first(node("Div", "a b", "y"), a, b)


def test_range_lengths_are_computed_in_wide_integers() -> None:
    made = node("Range", "a b c", "y")
    np.testing.assert_allclose(first(made, F32(0), F32(0.3), F32(0.1)), [0, 0.1, 0.2, 0.3], rtol=1e-6)
    assert first(made, I16(-30000), I16(30000), I16(20000)).tolist() == [-30000, -10000, 10000]
    assert first(made, I32(-(2**31)), I32(2**31 - 1), I32(2**30)).tolist() == [-(2**31), -(2**30), 0, 2**30]
    with pytest.raises(AssertionFailed, match="has no finite number of elements"):
        first(made, F32(0), F32("nan"), F32(1))


@pytest.mark.parametrize("shape", [[0, -1], [-1, 0]])
def test_reshape_of_empty_tensors(shape: list[int]) -> None:
    x = np.ones((0, 5) if shape[0] == 0 else (5, 0), F32)
    made = node("Reshape", "a b", "y")
    shapes = {results(made, given(x, np.array(shape)), symbolic=symbolic)[0].shape for symbolic in (True, False)}
    known = model_of([node("Reshape", "x s", "y")], {"x": list(x.shape)}, ["y"], {"s": np.array(shape)})
    assert shapes | {pliant.compile(known)(x).shape} == {x.shape}


@pytest.mark.parametrize(
    ("made", "arrays"),
    [
        (node("Unsqueeze", "a b", "y"), [F32(1), np.array([5])]),
        (node("Unsqueeze", "a b", "y"), [F32(1), np.array([0, 0])]),
        (node("ReduceSum", "a b", "y"), [np.ones((2, 3), F32), np.array([1, -1])]),
        (node("Slice", "a b b c", "y"), [np.ones((2, 3), F32), np.array([0, 0]), np.array([1, 1])]),
    ],
)
def test_non_constant_axes_must_be_valid_and_unique(made: Any, arrays: list[Any]) -> None:
    with pytest.raises(AssertionFailed, match="contain an axis more than once|is out of range"):
        first(made, *arrays)


def test_concat_axis_must_exist() -> None:
    with pytest.raises(CompileError, match="axis 7 is out of range for rank 3"):
        first(node("Concat", "a", "y", axis=7), np.ones((1, 2, 3), F32))


def test_nan_is_the_maximum() -> None:
    x = F32([[1, "nan", 3, "inf"]])
    y, places = results(node("TopK", "a b", "y z"), given(x, np.array([3])))
    assert places.tolist() == [[1, 3, 2]] and np.isnan(y[0, 0]) and y[0, 1:].tolist() == [np.inf, 3]
    places = results(node("TopK", "a b", "y z", largest=0), given(x, np.array([4])))[1]
    assert places.tolist() == [[0, 2, 3, 1]]


def test_dynamic_quantization_of_zeros() -> None:
    y, scale, zero = results(node("DynamicQuantizeLinear", "a", "y s z"), given(np.zeros(3, F32)))
    assert y.tolist() == [0, 0, 0] and scale > 0 and zero == 0


def test_intermediate_sums_may_exceed_float16() -> None:
    assert first(node("Gemm", "a b", "y", alpha=0.001), F16([[300, 300]]), F16([[300], [300]])).tolist() == [[180]]
    norm = np.hypot(F32(200), F32(300)).astype(F16)
    x = F16([[[200, 300]]])
    assert first(node("LpPool", "a", "y", kernel_shape=[2]), x).reshape(()) == norm
    assert first(node("GlobalLpPool", "a", "y"), x).reshape(()) == norm
    assert first(node("Mean", "a a", "y"), F16([60000])).tolist() == [60000]
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((1, 2, 6, 6)) * 1200).astype(F16)
    made = node("BatchNormalization", "a b c c b", "y mean var", training_mode=1)
    wide = x.astype(F32)
    want = (wide - wide.mean((2, 3), keepdims=True)) / wide.std((2, 3), keepdims=True)
    np.testing.assert_allclose(first(made, x, F16([1, 1]), F16([0, 0])), want, atol=2e-3)


def test_huge_windows_terminate() -> None:
    x = np.ones((1, 3, 4, 4), F32)
    endless = node("LRN", "a", "y", size=10**9, alpha=1e9)
    want = first(node("LRN", "a", "y", size=5, alpha=5.0), x)
    for symbolic in (True, False):
        np.testing.assert_allclose(results(endless, given(x), symbolic=symbolic)[0], want)
        with pytest.raises(pliant.PliantError, match="windows of more than 1024 elements|a window of 1048576 elements"):
            results(node("MaxPool", "a", "y z", kernel_shape=[2**20, 2**20]), given(x), symbolic=symbolic)


def test_sequence_end_and_start_masks() -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((2, 4, 4)).astype(F32), rng.standard_normal((4, 12)).astype(F32)
    made = helper.make_node("Attention", ["a", "b", "", "c"], ["y"], num_heads=2, domain="com.microsoft")

    def attended(mask: np.ndarray) -> np.ndarray:
        inputs = {"a": ["n", "s", 4], "b": [4, 12], "c": (6, ["n" if mask.ndim == 2 else "2*n", *["s"][: mask.ndim - 1]])}
        model = model_of([made], inputs, ["y"])
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return np.asarray(pliant.compile(model).run(None, given(x, weights, mask))[0])

    ends = attended(I32([3, 4, 0, 2]))
    np.testing.assert_allclose(ends, attended(I32([[1, 1, 1, 0], [0, 0, 1, 1]])), rtol=1e-5)


@pytest.mark.parametrize(("rule", "extra"), [("linear", "d"), ("gated", ""), ("delta", "d")])
def test_linear_attention_rules_require_their_operands(rule: str, extra: str) -> None:
    made = helper.make_node(
        "LinearAttention", ["a", "a", "a", "", extra], ["y", "s"], update_rule=rule, q_num_heads=1, kv_num_heads=1
    )
    inputs = {"a": [1, "t", 2], **({"d": [1, "t", 2]} if extra else {})}
    with pytest.raises(CompileError, match=f"update_rule '{rule}'"):
        pliant.compile(model_of([made], inputs, ["y"], opset=27))


@pytest.mark.parametrize(
    ("made", "arrays", "words"),
    [
        (node("TopK", "a b", "y z"), [np.ones((2, 3), F32), np.array([1, 1])], "has 2 numbers, but must have 1"),
        (node("Slice", "a b c", "y"), [np.ones((2, 3), F32), np.array([0, 0]), np.array([1])], "have 1 and 2"),
        (node("Pad", "a b c d", "y"), [np.ones((2, 3), F32), np.ones(4, np.int64), F32(0), np.array([0, 0])], "contain an axis more than once"),
    ],
)
def test_non_constant_lists_must_have_matching_lengths(made: Any, arrays: list[Any], words: str) -> None:
    with pytest.raises((AssertionFailed, CompileError), match=words):
        first(made, *arrays)
