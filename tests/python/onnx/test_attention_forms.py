"""Tests that each form of attention that ONNX and its exporters write becomes one kernel call, whose results agree with
ONNX's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pliant
from pliant import relax

F, B = TensorProto.FLOAT, TensorProto.BOOL
BY_HEAD = {n: (F, ["b", 4, length, 8]) for n, length in (("q", "s"), ("k", "t"), ("v", "t"))}
SQUARE = {n: (F, ["b", 4, "s", 8]) for n in "qkv"}
GROUPED = {"q": (F, ["b", 4, "s", 8]), "k": (F, ["b", 2, "t", 8]), "v": (F, ["b", 2, "t", 8])}
PAST = {n: (F, ["b", 4, "p", 8]) for n in ("pk", "pv")}
GROUPED_PAST = {n: (F, ["b", 2, "p", 8]) for n in ("pk", "pv")}
FLAT = {"q": (F, ["b", "s", 32]), "k": (F, ["b", "t", 16]), "v": (F, ["b", "t", 16])}
FIXED = {n: (F, [2, 4, 9, 8]) for n in "qkv"}
BOOL_4D, BOOL_2D = {"m": (B, ["b", 1, "s", "t"])}, {"m": (B, ["s", "t"])}
PADDING, FLOATS = {"m": (B, ["b", 1, 1, "t"])}, {"m": (F, ["b", 1, "s", "t"])}
HEADS = {"q_num_heads": 4, "kv_num_heads": 2}

# The inputs, in the order of the operator, and the attributes.
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": (BY_HEAD, {}),
    "scale": (BY_HEAD, {"scale": 0.3}),
    "causal": (BY_HEAD, {"is_causal": 1}),
    "causal, fixed sizes": (FIXED, {"is_causal": 1}),
    "causal, one query": ({n: (F, ["b", 4, 1 if n == "q" else "t", 8]) for n in "qkv"}, {"is_causal": 1}),
    "causal, grouped": (GROUPED, {"is_causal": 1}),
    "grouped": (GROUPED, {}),
    "flat": (FLAT, HEADS),
    "causal, flat": (FLAT, {"is_causal": 1, **HEADS}),
    "softcap": (BY_HEAD, {"softcap": 0.7}),
    "softcap, causal, grouped": (GROUPED, {"softcap": 0.7, "is_causal": 1}),
    "mask of all": (BY_HEAD | BOOL_4D, {}),
    "mask of places": (BY_HEAD | BOOL_2D, {}),
    "padding": (BY_HEAD | PADDING, {}),
    "padding, causal": (BY_HEAD | PADDING, {"is_causal": 1}),
    "mask, causal, softcap, grouped": (GROUPED | BOOL_4D, {"is_causal": 1, "softcap": 0.7}),
    "floats": (BY_HEAD | FLOATS, {}),
    "floats, causal": (BY_HEAD | FLOATS, {"is_causal": 1}),
    "past": (SQUARE | {"": None} | PAST, {}),
    "past, causal": (SQUARE | {"": None} | PAST, {"is_causal": 1}),
    "past, causal, grouped": (GROUPED | {"": None} | GROUPED_PAST, {"is_causal": 1}),
}
SIZES = [(1, 1, 1, 0), (2, 5, 5, 3), (0, 3, 3, 2), (1, 7, 3, 1), (1, 3, 11, 0), (1, 37, 65, 4), (2, 70, 70, 33)]


def model(inputs: dict[str, Any], attrs: dict[str, Any]) -> onnx.ModelProto:
    outputs = ["y", "present_k", "present_v"] if "pk" in inputs else ["y"]
    node = helper.make_node("Attention", list(inputs), outputs, **attrs)
    return graph([node], inputs, outputs)


def graph(nodes: list[Any], inputs: dict[str, Any], outputs: list[str], constants: Any = ()) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info(n, *of) for n, of in inputs.items() if n]
    made = [onnx.ValueInfoProto(name=n) for n in outputs]
    tensors = [numpy_helper.from_array(a, n) for n, a in constants]
    whole = helper.make_graph(nodes, "attention", given, made, tensors)
    found = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 23)])
    found.ir_version = 11
    return found


def feed(inputs: dict[str, Any], sizes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(sum(sizes))
    of = dict(zip("bstp", sizes, strict=True))
    fed = {}
    for name, given in inputs.items():
        if not name:
            continue
        dtype, dims = given
        shape = [of.get(d, d) for d in dims]
        if dtype == B:
            fed[name] = rng.random(shape) < 0.6
            if fed[name].size > 2:
                # One row sees no key.
                fed[name].reshape(-1, shape[-1])[-1] = False
        else:
            fed[name] = rng.standard_normal(shape).astype("float32")
            if name == "m":
                fed[name][rng.random(shape) < 0.3] = -np.inf
                fed[name].reshape(-1, shape[-1])[-1:] = -np.inf
    return fed


def stages(built: onnx.ModelProto) -> str:
    """Returns the script of the program after the graph passes."""
    return relax.get_pipeline("zero")(relax.frontend.onnx.from_onnx(built)).script()


def reaches(built: onnx.ModelProto) -> None:
    text = stages(built)
    assert 'T.call_kernel("attention"' in text
    assert "softmax" not in text and "R.matmul" not in text and "tanh" not in text


@pytest.mark.parametrize("form", FORMS)
def test_the_operator_is_one_kernel_call(form: str) -> None:
    inputs, attrs = FORMS[form]
    built = model(inputs, attrs)
    reaches(built)
    reference = ReferenceEvaluator(built)
    on, off = pliant.compile(built), pliant.compile(built, kernels="off")
    for sizes in SIZES:
        if "pk" not in inputs and sizes[3]:
            sizes = (*sizes[:3], 0)
        fed = feed(inputs, sizes)
        # The reference derives the causal mask from the shape of the mask, even if that has
        # one row.
        whole = dict(fed)
        if "m" in fed:
            whole["m"] = np.array(np.broadcast_to(fed["m"], (*fed["m"].shape[:-2], sizes[1], fed["m"].shape[-1])))
        with np.errstate(all="ignore"):
            want = reference.run(None, whole) if all(a.size for a in fed.values()) else off.run(None, fed)
        for compiled in (on, off):
            for got, expected in zip(compiled.run(None, fed), want, strict=True):
                np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("form", ["causal", "causal, grouped", "past, causal", "softcap, causal, grouped"])
def test_causal_masks_are_not_materialized(form: str) -> None:
    text = stages(model(*FORMS[form]))
    assert "bool" not in text and "arange" not in text


def test_keys_and_values_are_not_repeated() -> None:
    assert "repeat" not in stages(model(*FORMS["grouped"]))


@pytest.mark.parametrize("form", ["causal", "padding", "mask of all"])
def test_masked_values_have_no_influence(form: str) -> None:
    inputs, attrs = FORMS[form]
    compiled = pliant.compile(model(inputs, attrs))
    fed = feed(inputs, (1, 6, 9, 0))
    if "m" in fed:
        fed["m"][..., 7:] = False
        fed["m"][..., 0] = True
    else:
        fed = feed(inputs, (1, 7, 9, 0))
    want = np.asarray(compiled.run(None, fed)[0])
    # The scores of hidden keys become NaN and infinity.
    fed["k"][0, 0, 7], fed["k"][0, 1, 8] = np.nan, np.inf
    if form == "causal":
        # A value that no query sees.
        fed["v"][0, 0, 7] = np.nan
    np.testing.assert_array_equal(np.asarray(compiled.run(None, fed)[0]), want)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_products_that_are_results_are_kept(mode: int) -> None:
    inputs, attrs = FORMS["mask, causal, softcap, grouped"]
    node = helper.make_node("Attention", list(inputs), ["y", "", "", "qk"], qk_matmul_output_mode=mode, **attrs)
    built = graph([node], inputs, ["y", "qk"])
    off, on = pliant.compile(built, kernels="off"), pliant.compile(built)
    for sizes in [(1, 1, 1, 0), (2, 5, 7, 0)]:
        fed = feed(inputs, sizes)
        for got, want in zip(on.run(None, fed), off.run(None, fed), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=2e-5)


def exported(mask: str) -> onnx.ModelProto:
    """Builds `scaled_dot_product_attention` as PyTorch's exporter writes it."""
    node = helper.make_node
    nodes = [
        node("Mul", ["q", "c"], ["q1"]),
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("Mul", ["kt", "c"], ["k1"]),
        node("MatMul", ["q1", "k1"], ["s"]),
    ]
    constants: list[tuple[str, Any]] = [("c", np.float32(0.6)), ("none", np.float32(-np.inf)), ("zero", np.float32(0))]
    inputs = dict(SQUARE)
    if mask == "given":
        inputs["m"] = (B, ["b", 1, "s", "s"])
    else:
        constants += [("two", np.int64(2)), ("first", np.array([0])), ("one", np.float32(1)), ("far", np.int64(1))]
        nodes += [
            node("Shape", ["q"], ["shape"]),
            node("Gather", ["shape", "two"], ["length"], axis=0),
            node("Unsqueeze", ["length", "first"], ["size"]),
            node("Concat", ["size", "size"], ["sizes"], axis=0),
        ]
    if mask == "triangle":
        nodes += [
            node("Expand", ["one", "sizes"], ["ones"]),
            node("Trilu", ["ones"], ["lower"], upper=0),
            node("Cast", ["lower"], ["m"], to=B),
        ]
    if mask == "filled":
        nodes += [node("Expand", ["none", "sizes"], ["nones"]), node("Trilu", ["nones", "far"], ["added"], upper=1)]
    if mask == "places":
        constants += [("start", np.int64(0)), ("last", np.array([-1]))]
        nodes += [
            node("Range", ["start", "length", "far"], ["keys"]),
            node("Unsqueeze", ["keys", "last"], ["queries"]),
            node("LessOrEqual", ["keys", "queries"], ["m"]),
        ]
    if mask != "filled":
        nodes.append(node("Where", ["m", "zero", "none"], ["added"]))
    nodes += [
        node("Add", ["s", "added"], ["masked"]),
        node("Softmax", ["masked"], ["p"], axis=-1),
        node("IsNaN", ["p"], ["blind"]),
        node("Where", ["blind", "zero", "p"], ["weights"]),
        node("MatMul", ["weights", "v"], ["y"]),
    ]
    return graph(nodes, inputs, ["y"], constants)


@pytest.mark.parametrize("mask", ["given", "triangle", "filled", "places"])
def test_pytorch_attention_is_one_kernel_call(mask: str) -> None:
    built = exported(mask)
    reaches(built)
    assert mask == "given" or "bool" not in stages(built)
    on, off = pliant.compile(built), pliant.compile(built, kernels="off")
    for sizes in SIZES:
        fed = feed({n: (t, d) for n, (t, d) in SQUARE.items()}, sizes)
        b, s = sizes[:2]
        seen = np.tril(np.ones((b, 1, s, s), dtype=bool))
        if mask == "given":
            seen = np.random.default_rng(s).random((b, 1, s, s)) < 0.5
            seen[:, :, 0] = False
            fed["m"] = seen
        if s > 2:
            # Scores that are NaN get the weight 0.
            fed["q"][:, 1, 2, 0] = np.nan
        scores = np.float32(0.36) * fed["q"] @ fed["k"].swapaxes(2, 3) + np.where(seen, 0, -np.inf)
        with np.errstate(all="ignore"):
            weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
            weights /= weights.sum(-1, keepdims=True)
        want = np.where(np.isnan(weights), 0, weights) @ fed["v"]
        for compiled in (on, off):
            np.testing.assert_allclose(np.asarray(compiled.run(None, fed)[0]), want, rtol=2e-4, atol=2e-5)


def test_float16_attention_is_one_kernel_call() -> None:
    inputs = {n: (TensorProto.FLOAT16, dims) for n, (_, dims) in BY_HEAD.items()} | PADDING
    built = model(inputs, {"is_causal": 1, "softcap": 0.75})
    reaches(built)
    fed = feed(inputs, (2, 9, 13, 0))
    fed = {n: a.astype("float16") if a.dtype == np.float32 else a for n, a in fed.items()}
    got, want = (np.asarray(pliant.compile(built, kernels=k).run(None, fed)[0]) for k in ("on", "off"))
    assert got.dtype == want.dtype == np.float16
    np.testing.assert_allclose(got.astype("float32"), want.astype("float32"), rtol=1e-2, atol=1e-2)
