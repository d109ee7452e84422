"""Tests ONNX nodes with values at the limits of types, at unusual ranks and beside padding. The results are compared with
formulas and ONNX's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pliant

Array = np.ndarray[Any, Any]


def model(node: Any, inputs: dict[str, Array], outputs: int = 1, opset: int = 23, known: bool = False, **constants: Array) -> Any:
    """Builds a model of one node. Its inputs have symbolic sizes unless ``known`` is set."""
    of = helper.np_dtype_to_tensor_dtype
    infos = [
        helper.make_tensor_value_info(k, of(v.dtype), list(v.shape) if known else [f"{k}{i}" for i in range(v.ndim)])
        for k, v in inputs.items()
    ]
    outs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    given = [numpy_helper.from_array(v, k) for k, v in constants.items()]
    graph = helper.make_graph(node if isinstance(node, list) else [node], "g", infos, outs, given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def run(made: Any, inputs: dict[str, Array]) -> list[Array]:
    return [np.asarray(v) for v in pliant.compile(made).run(None, inputs)]


def both(node: Any, inputs: dict[str, Array], **options: Any) -> list[list[Array]]:
    """Returns the results with symbolic sizes and with known sizes."""
    return [run(model(node, inputs, known=known, **options), inputs) for known in (False, True)]


def equals_reference(node: Any, inputs: dict[str, Array], rtol: float = 1e-5, **options: Any) -> None:
    wanted = ReferenceEvaluator(model(node, inputs, **options)).run(None, inputs)
    for found in both(node, inputs, **options):
        for a, b in zip(found, wanted, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def node(op: str, inputs: list[str], outputs: int = 1, **attrs: Any) -> Any:
    return helper.make_node(op, inputs, [f"y{i}" for i in range(outputs)], **attrs)


def test_float_modulo_is_exact() -> None:
    a = np.array([-1, -1e-20, -0.1, 5.5, -5.5, 1, np.nan], "float64")
    b = np.array([np.inf, 1, 3, -2, 2, -np.inf, 1], "float64")
    for (found,) in both(node("Mod", ["a", "b"], fmod=1), {"a": a, "b": b}):
        np.testing.assert_array_equal(found, np.fmod(a, b))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_max_pool_padding_is_the_integer_minimum(dtype: str) -> None:
    x = np.array([[[[-5, -6, -7], [-8, -9, -5], [-1, -2, -3]]]]).astype(dtype)
    wanted = np.array([[[[x[0, 0, :2, :2].max(), x[0, 0, :2, 2].max()], [x[0, 0, 2, :2].max(), x[0, 0, 2, 2]]]]])
    pool = node("MaxPool", ["x"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    for (found,) in both(pool, {"x": x}):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("x", [np.zeros((1, 2, 2, 2), "uint8"), np.full((1, 2, 2, 2), -np.inf, "float32")], ids=["zeros", "-inf"])
def test_max_pool_indices_refer_to_the_input(x: Array) -> None:
    pool = node("MaxPool", ["x"], 2, kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    for _, places in both(pool, {"x": x}, outputs=2):
        np.testing.assert_array_equal(places.reshape(2, -1), [[0] * 4, [4] * 4])


def test_max_pool_index_of_nan() -> None:
    x = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    x[0, 0, 1, 1] = np.nan
    for found, places in both(node("MaxPool", ["x"], 2, kernel_shape=[2, 2]), {"x": x}, outputs=2):
        assert np.isnan(found).all()
        np.testing.assert_array_equal(places, np.full((1, 1, 2, 2), 4))


WIDE = [
    ("InstanceNormalization", ["x", "s", "b"], {}),
    ("GroupNormalization", ["x", "s", "b"], {"num_groups": 2}),
    ("MeanVarianceNormalization", ["x"], {}),
    ("LpNormalization", ["x"], {"axis": 1}),
    ("LRN", ["x"], {"size": 3}),
    ("ReduceL2", ["x"], {}),
]


@pytest.mark.parametrize(("op", "names", "attrs"), WIDE, ids=[w[0] for w in WIDE])
def test_squares_of_16_bit_floats_stay_in_range(op: str, names: list[str], attrs: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.standard_normal((2, 4, 5, 6)) * 400, "s": np.ones(4), "b": np.zeros(4)}
    narrow = {k: inputs[k].astype("float16") for k in names}
    wide = {k: v.astype("float32") for k, v in narrow.items()}
    for found, wanted in zip(both(node(op, names, **attrs), narrow), both(node(op, names, **attrs), wide), strict=True):
        assert found[0].dtype == np.float16
        np.testing.assert_allclose(found[0].astype("float32"), wanted[0], rtol=2e-3, atol=2e-3)


def test_float64_normalization() -> None:
    rng = np.random.default_rng(0)
    x = 1e5 + 1e-5 * rng.standard_normal((2, 3))
    centred = x - x.mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    for (found,) in both(node("LayerNormalization", ["x", "s"]), {"x": x, "s": np.ones(3)}):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("exponent", [2.0, 0.5, 3.0])
def test_exponent_of_higher_rank_broadcasts_the_result(exponent: float) -> None:
    equals_reference(node("Pow", ["x", "e"]), {"x": np.array([1, 2, 3], "float32")}, e=np.array([[exponent]], "float32"))


def test_hardmax_before_opset_13_flattens_from_axis_1() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("float32")
    wanted = np.zeros((2, 12), "float32")
    wanted[np.arange(2), x.reshape(2, 12).argmax(1)] = 1
    for (found,) in both(node("Hardmax", ["x"], axis=1), {"x": x}, opset=11):
        np.testing.assert_array_equal(found, wanted.reshape(2, 3, 4))
    assert run(model(node("Hardmax", ["x"]), {"x": x[:, :0, 0]}, known=True), {"x": x[:, :0, 0]})[0].shape == (2, 0)


@pytest.mark.parametrize("axes", [None, np.array([], "int64")], ids=["none", "empty"])
def test_reductions_of_shapes_over_no_axis(axes: Array | None) -> None:
    names = ["s"] if axes is None else ["s", "a"]
    nodes = [helper.make_node("Shape", ["x"], ["s"]), node("ReduceSum", names, noop_with_empty_axes=1)]
    given = {} if axes is None else {"a": axes}
    for (found,) in both(nodes, {"x": np.zeros((2, 3), "float32")}, **given):
        np.testing.assert_array_equal(found, [2, 3])


@pytest.mark.parametrize("length", [3, 4, 5, 8, 9])
def test_real_signals_of_any_length(length: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 2)).astype("float32")
    wanted = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis=1)[..., None]
    dft = node("DFT", ["x", "n", "a"], inverse=1, onesided=1)
    made = model(dft, {"x": x}, known=True, n=np.array(length, "int64"), a=np.array(1, "int64"))
    np.testing.assert_allclose(run(made, {"x": x})[0], wanted, atol=1e-5)


def test_mask_of_one_key_applies_to_the_first_key() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, n, 4)).astype("float32") for n in (2, 3, 3))
    inputs = {"q": q, "k": k, "v": v, "m": np.zeros((2, 1), "float32")}
    for (found,) in both(node("Attention", ["q", "k", "v", "m"]), inputs):
        np.testing.assert_allclose(found, np.broadcast_to(v[:, :, :1], found.shape), rtol=1e-5)


def test_integer_padding_values_are_exact() -> None:
    value = 2**53 + 1
    pad = node("Pad", ["x", "p", "v"])
    given = {"p": np.array([1, 0]), "v": np.array(value)}
    for (found,) in both(pad, {"x": np.array([7])}, **given):
        np.testing.assert_array_equal(found, [value, 7])


def test_logsumexp_of_infinities() -> None:
    x = np.array([[np.inf, 1], [-np.inf, -np.inf], [-np.inf, 2], [np.nan, 1]], "float32")
    for keep in (0, 1):
        for (found,) in both(node("ReduceLogSumExp", ["x", "a"], keepdims=keep), {"x": x}, a=np.array([1])):
            np.testing.assert_array_equal(found.reshape(-1), [np.inf, -np.inf, 2, np.nan])


@pytest.mark.parametrize("step", [2**63 - 1, -(2**63), 2**62])
def test_slice_steps_at_integer_limits(step: int) -> None:
    nodes = [helper.make_node("Shape", ["x"], ["s"]), node("Slice", ["s", "b", "e", "a", "t"])]
    bounds = {"b": [0], "e": [2**62], "a": [0], "t": [step]} if step > 0 else {"b": [-1], "e": [-(2**62)], "a": [0], "t": [step]}
    given = {k: np.array(v) for k, v in bounds.items()}
    found = run(model(nodes, {"x": np.zeros((2, 3), "float32")}, **given), {"x": np.zeros((2, 3), "float32")})[0]
    np.testing.assert_array_equal(found, [2] if step > 0 else [3])


def test_element_counts_beyond_int64() -> None:
    made = model(node("ConstantOfShape", ["s"], value=numpy_helper.from_array(np.array([1]))), {}, s=np.array([2**32, 2**32]))
    with pytest.raises(pliant.PliantError) as error:
        run(made, {})
    assert "internal" not in str(error.value).lower()


def test_dequantize_output_type() -> None:
    x = np.array([1, 2, 255], "uint8")
    dequantize = node("DequantizeLinear", ["x", "s"], output_dtype=TensorProto.FLOAT16)
    for (found,) in both(dequantize, {"x": x}, s=np.array(0.5, "float32")):
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found, [0.5, 1, 127.5])


def test_softplus_of_small_numbers_is_accurate() -> None:
    x = np.array([-30, -20, -1, 0, 1, 30, 60], "float64")
    for (found,) in both(node("Softplus", ["x"]), {"x": x}):
        np.testing.assert_allclose(found, np.logaddexp(0, x), rtol=1e-12)


def test_expand_keeps_known_dims() -> None:
    x = np.arange(3, dtype="float32")
    made = pliant.compile(model(node("Expand", ["x", "s"]), {"x": x, "s": np.array([3])}, known=True))
    for size in (1, 3):
        np.testing.assert_array_equal(np.asarray(made.run(None, {"x": x, "s": np.array([size])})[0]), x)
    with pytest.raises(pliant.PliantError, match="the new shape has a dim of size 5, which does not broadcast with the input's dim of size 3"):
        made.run(None, {"x": x, "s": np.array([5])})


def test_attention_weights_of_rows_without_keys() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 4)).astype("float32"), rng.standard_normal((4, 12)).astype("float32")
    mask = np.array([[0, 0, 0], [1, 1, 0]], "int32")
    attention = helper.make_node("Attention", ["x", "w", "", "m"], ["y0"], domain="com.microsoft", num_heads=2)
    made = model(attention, {"x": x, "m": mask}, known=True, w=w)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    (found,) = run(made, {"x": x, "m": mask})
    q, k, v = (a.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3) for a in np.split(x @ w, 3, axis=2))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(2) + np.where(mask, 0, -10000)[:, None, None, :]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    # After adding -10000, float32 keeps three decimals of the scores.
    np.testing.assert_allclose(found, (weights @ v).transpose(0, 2, 1, 3).reshape(2, 3, 4), rtol=1e-2, atol=1e-2)
