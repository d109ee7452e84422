"""Tests ONNX sequences and optionals whose length or presence is known only at run time, and the values that loops collect."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import pliant

from onnx_models import BOOL, FLOAT, INT64, model_of, node

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def with_inputs(model: onnx.ModelProto, **types: onnx.TypeProto) -> onnx.ModelProto:
    """Returns the model with additional inputs that are not tensors, before its own inputs."""
    own = list(model.graph.input)
    del model.graph.input[:]
    model.graph.input.extend(helper.make_value_info(name, ty) for name, ty in types.items())
    model.graph.input.extend(own)
    return model


def tensors(*dims: Any) -> onnx.TypeProto:
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, dims))


def graph(nodes: list[Any], inputs: list[Any], outputs: list[str]) -> onnx.GraphProto:
    return helper.make_graph(nodes, "inner", inputs, [onnx.ValueInfoProto(name=o) for o in outputs])


def value(name: str, dtype: int = FLOAT, dims: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, dims)


def test_sequences_of_any_length_with_one_program() -> None:
    nodes = [
        node("SequenceLength", "s", "count"),
        node("ConcatFromSequence", "s", "whole", axis=0),
        node("SequenceAt", "s place", "one"),
        node("SequenceErase", "s place", "rest"),
        helper.make_node("SequenceInsert", ["rest", "one"], ["turned"]),
    ]
    model = pliant.compile(
        with_inputs(model_of(nodes, {"place": (INT64, [])}, ["count", "whole", "one", "turned"]), s=tensors("n", 2))
    )
    for lengths in [[3], [1, 0, 4], [2] * 7]:
        parts = [floats(n, 2) for n in lengths]
        count, whole, one, turned = model.run(None, {"s": parts, "place": np.array(-1)})
        assert count == len(parts)
        np.testing.assert_array_equal(whole, np.concatenate(parts))
        np.testing.assert_array_equal(one, parts[-1])
        assert [np.asarray(t).shape for t in turned] == [p.shape for p in parts]
    assert model.stats().compilations == 1
    with pytest.raises(pliant.PliantError, match="out of range for a sequence of 1"):
        model.run(None, {"s": [floats(1, 2)], "place": np.array(4)})
    with pytest.raises(pliant.PliantError):
        model.run(None, {"s": [np.zeros((1, 3), np.float32)], "place": np.array(0)})


def test_split_by_non_constant_lengths() -> None:
    nodes = [
        node("SplitToSequence", "x lengths", "s", axis=1),
        node("SequenceLength", "s", "count"),
        node("ConcatFromSequence", "s", "y", axis=1),
        node("SequenceAt", "s last", "one"),
    ]
    last = {"last": np.int64(-1)}
    model = pliant.compile(model_of(nodes, {"x": ["a", "b"], "lengths": (INT64, ["k"])}, ["count", "y", "one"], last))
    x = floats(3, 6)
    for lengths in ([6], [1, 2, 3], [0, 5, 1]):
        count, y, one = model(x, np.array(lengths))
        assert int(np.asarray(count)) == len(lengths)
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(one, x[:, 6 - lengths[-1] :])
    with pytest.raises(pliant.ShapeError, match="do not add up to the axis size 6"):
        model(x, np.array([1, 2]))


def test_tensor_rows_as_a_sequence() -> None:
    """Tests splitting a tensor into a sequence of its rows, whose number is known only at run
    time.
    """
    nodes = [node("SplitToSequence", "x", "s", keepdims=0), node("ConcatFromSequence", "s", "y", axis=1, new_axis=1)]
    model = pliant.compile(model_of(nodes, {"x": ["a", "b"]}, ["y"]))
    for rows in (1, 5):
        x = floats(rows, 3)
        np.testing.assert_array_equal(model(x), x.T)


def counted(body: list[Any], state: list[onnx.ValueInfoProto], outputs: list[str]) -> onnx.GraphProto:
    """Builds the body of a Loop that always continues."""
    inputs = [value("i", INT64, []), value("c", BOOL, []), *state]
    return graph([node("Identity", "c", "c_out"), *body], inputs, ["c_out", *outputs])


def test_loop_carried_sequence() -> None:
    info = helper.make_value_info("s", tensors(None))
    body = counted(
        [node("Unsqueeze", "i zero", "one"), node("Range", "start i step", "row"), helper.make_node("SequenceInsert", ["s", "row"], ["more"])],
        [info],
        ["more"],
    )
    nodes = [
        node("SequenceEmpty", "", "empty", dtype=INT64),
        helper.make_node("Loop", ["n", "", "empty"], ["s_last"], body=body),
        node("SequenceLength", "s_last", "count"),
        node("ConcatFromSequence", "s_last", "y", axis=0),
    ]
    constants = {"zero": np.array([0]), "start": np.int64(0), "step": np.int64(1)}
    model = pliant.compile(model_of(nodes, {"n": (INT64, [])}, ["count", "y"], constants))
    for n in (1, 4, 9):
        count, y = model(np.array(n))
        assert int(np.asarray(count)) == n
        np.testing.assert_array_equal(y, np.concatenate([np.arange(i) for i in range(n)]))


@pytest.mark.parametrize("turns", [0, 1, 3000])
def test_scan_outputs_are_stacked_once(turns: int) -> None:
    body = counted(
        [node("Cast", "i", "f", to=FLOAT), node("Add", "f w", "part"), node("Add", "a f", "b")], [value("a")], ["b", "part"]
    )
    nodes = [helper.make_node("Loop", ["n", "", "zero"], ["last", "all"], body=body)]
    w = np.array([0.0, 0.5], np.float32)
    model = pliant.compile(model_of(nodes, {"n": (INT64, [])}, ["last", "all"], {"w": w, "zero": np.float32(0)}))
    last, every = model(np.array(turns))
    np.testing.assert_allclose(every, np.arange(turns, dtype=np.float32)[:, None] + w)
    assert float(np.asarray(last)) == sum(range(turns))


def test_unequal_scan_output_errors_name_the_shapes() -> None:
    body = counted([node("Range", "zero i one", "part")], [], ["part"])
    nodes = [helper.make_node("Loop", ["n", ""], ["all"], body=body)]
    model = pliant.compile(
        model_of(nodes, {"n": (INT64, [])}, ["all"], {"zero": np.int64(0), "one": np.int64(1)})
    )
    assert np.asarray(model(np.array(1))).shape == (1, 0)
    with pytest.raises(pliant.ShapeError, match=r"one is int64 \[0\] and the next int64 \[1\]"):
        model(np.array(3))


@pytest.mark.parametrize("known", [True, False])
def test_sequence_map(known: bool) -> None:
    body = graph([node("Add", "a b", "sum"), node("Shape", "a", "size")], [value("a"), value("b")], ["sum", "size"])
    nodes = [
        *([node("SequenceConstruct", "x y", "s")] if known else []),
        node("SequenceMap", "s x", "sums sizes", body=body),
        node("ConcatFromSequence", "sums", "whole", axis=0),
        node("SequenceLength", "sizes", "count"),
    ]
    model = model_of(nodes, {"x": [2, 3], **({"y": [2, 3]} if known else {})}, ["whole", "count"])
    x, y = floats(2, 3), floats(2, 3)
    if known:
        feeds: dict[str, Any] = {"x": x, "y": y}
        want = [x + x, y + x]
    else:
        model = with_inputs(model, s=tensors(2, 3))
        feeds = {"s": [x, y, x], "x": x}
        want = [x + x, y + x, x + x]
    whole, count = pliant.compile(model).run(None, feeds)
    np.testing.assert_allclose(whole, np.concatenate(want))
    assert count == len(want)


def test_optional_is_present_or_absent() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["n"]))
    then = graph([node("OptionalGetElement", "o", "held")], [], ["held"])
    other = graph([node("Identity", "x", "own")], [], ["own"])
    nodes = [
        node("OptionalHasElement", "o", "has"),
        node("If", "has", "y", then_branch=then, else_branch=other),
    ]
    model = pliant.compile(with_inputs(model_of(nodes, {"x": ["m"]}, ["has", "y"]), o=optional))
    x, o = floats(3), floats(5)
    for given, want in [(o, o), (None, x)]:
        has, y = model.run(None, {"o": given, "x": x})
        assert bool(has) is (given is not None)
        np.testing.assert_array_equal(y, want)


def test_get_of_an_empty_optional_is_an_error() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["n"]))
    model = pliant.compile(with_inputs(model_of([node("OptionalGetElement", "o", "y")], {}, ["y"]), o=optional))
    with pytest.raises(pliant.PliantError, match="is empty, so it has no value"):
        model.run(None, {"o": None})


@pytest.mark.parametrize(
    ("then", "other", "cond", "part"),
    [
        ("Identity", "Identity", FLOAT, "input 0 is of float32, but opset 18 accepts bool"),
        ("Identity", "SequenceConstruct", BOOL, "output 0: the type of the value .* is a tensor in one case and a sequence in another"),
        ("Identity", "Cast", BOOL, "the element type .* is float32 in one case and int64 in another"),
    ],
)
def test_incompatible_branches_are_rejected(then: str, other: str, cond: int, part: str) -> None:
    def branch(op: str) -> onnx.GraphProto:
        attrs = {"to": TensorProto.INT64} if op == "Cast" else {}
        return graph([node(op, "x", f"r_{op}", **attrs)], [], [f"r_{op}"])

    own = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branch(then), else_branch=branch(other))
    with pytest.raises(pliant.CompileError, match=part) as told:
        pliant.compile(model_of([own], {"c": (cond, []), "x": ["n"]}, ["y"]))
    assert "If 'choice'" in str(told.value)


def test_branches_with_different_numbers_of_outputs_are_rejected() -> None:
    two = graph([node("Identity", "x", "a")], [], ["a", "a"])
    one = graph([node("Identity", "x", "b")], [], ["b"])
    own = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=two, else_branch=one)
    with pytest.raises(pliant.CompileError, match="If 'choice': the then-branch has 2 outputs, but the node has 1"):
        pliant.compile(model_of([own], {"c": (BOOL, []), "x": ["n"]}, ["y"]))


@pytest.mark.parametrize(
    ("ty", "part"),
    [
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.STRING, None)), "STRING is not supported"),
        (helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, None)), "is a map"),
        (onnx.TypeProto(sequence_type=onnx.TypeProto.Sequence()), "does not declare the type of its contents"),
    ],
)
def test_inputs_of_wrong_types_are_rejected_by_name(ty: onnx.TypeProto, part: str) -> None:
    model = with_inputs(model_of([node("Identity", "s", "y")], {}, ["y"]), s=ty)
    with pytest.raises((pliant.CompileError, pliant.UnsupportedError), match=part) as told:
        pliant.compile(model)
    assert "input 's'" in str(told.value)


def test_sequence_inputs_are_checked_against_their_type() -> None:
    items = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2, "n"]))
    model = pliant.compile(with_inputs(model_of([node("SequenceLength", "s", "y")], {}, ["y"]), s=items))
    assert model.run(None, {"s": [floats(2, 3), floats(2, 5)]})[0] == 2
    for fed, kind, words in (
        ([floats(2, 3), np.ones((2, 3))], pliant.DTypeError, "item 1 of input 's' must be of dtype float32, but is of float64"),
        ([floats(3, 3)], pliant.ShapeError, r"item 0 of input 's' must be of shape \[2, \?\], but is of \[3, 3\]"),
        (floats(2), pliant.CallError, "input 's' must be a sequence, but is a tensor"),
        ([1.5], pliant.CallError, "item 0 of input 's' must be a tensor, but is a float"),
    ):
        with pytest.raises(kind, match=words):
            model.run(None, {"s": fed})


def test_scan_over_a_batch() -> None:
    body = graph([node("Add", "a x", "b"), node("Identity", "b", "y")], [value("a"), value("x")], ["b", "y"])
    scan = helper.make_node("Scan", ["", "first", "x"], ["last", "all"], num_scan_inputs=1, body=body)
    model = pliant.compile(model_of([scan], {"first": ["n", 2], "x": ["n", "t", 2]}, ["last", "all"], opset=8))
    for n, t in [(1, 3), (4, 5), (2, 1)]:
        first, x = floats(n, 2), floats(n, t, 2)
        last, every = model(first, x)
        want = first[:, None] + np.cumsum(x, 1)
        np.testing.assert_allclose(every, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(last, want[:, -1], rtol=1e-5, atol=1e-5)


def test_bits_and_determinants() -> None:
    nodes = [node("Det", "x", "d"), node("BitCast", "x", "bits", to=TensorProto.INT32)]
    model = pliant.compile(model_of(nodes, {"x": ["n", "k", "k"]}, ["d", "bits"], opset=26))
    for n, k in [(3, 4), (1, 1), (0, 2), (2, 7), (3, 8), (2, 9), (5, 17), (2, 33)]:
        x = floats(n, k, k)
        d, bits = model(x)
        np.testing.assert_allclose(d, np.linalg.det(x.astype(np.float64)), rtol=1e-5)
        np.testing.assert_array_equal(bits, x.view(np.int32))
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for to in (TensorProto.INT16, TensorProto.UINT16, TensorProto.BFLOAT16):
        nodes = [node("BitCast", "x", "b", to=to), node("BitCast", "b", "y", to=TensorProto.UINT16)]
        model = pliant.compile(model_of(nodes, {"x": (TensorProto.FLOAT16, ["n"])}, ["y"], opset=26))
        np.testing.assert_array_equal(model(halves), halves.view(np.uint16))
    wide = model_of([node("BitCast", "x", "y", to=TensorProto.INT64)], {"x": ["n"]}, ["y"], opset=26)
    with pytest.raises(pliant.CompileError, match="the node casts float32 to int64, whose elements have another number of bits"):
        pliant.compile(wide)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_ngrams_are_counted(mode: str) -> None:
    # 1-grams 2 and 3, 2-grams (2, 3) and (3, 3), in columns 3, 0, 1 and 4; nothing has column 2.
    own = node("TfIdfVectorizer", "x", "y", mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=1,
               ngram_counts=[0, 2], ngram_indexes=[3, 0, 1, 4], pool_int64s=[2, 3, 2, 3, 3, 3],
               weights=[2.0, 3.0, 5.0, 7.0, 11.0])  # fmt: skip
    model = pliant.compile(model_of([own], {"x": (INT64, ["n", "c"])}, ["y"]))
    weights = np.array([2, 3, 5, 7, 11], np.float32)
    for rows in ([[2, 3, 3, 2]], [[2, 2, 3], [9, 9, 9]], [[3]]):
        x = np.array(rows)
        want = np.zeros((len(rows), 5), np.float32)
        for y, row in zip(want, rows, strict=True):
            y[3], y[0] = row.count(2), row.count(3)
            for step in (1, 2):
                pairs = list(zip(row, row[step:], strict=False))
                y[1] += pairs.count((2, 3))
                y[4] += pairs.count((3, 3))
        want = {"TF": want, "IDF": (want > 0) * weights, "TFIDF": want * weights}[mode]
        np.testing.assert_array_equal(model(x), want)


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_tree_ensembles(aggregate: int) -> None:
    """Tests tree ensembles: two trees, one with a missing-tracks-true node and one with a set
    membership node.
    """
    own = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=2, aggregate_function=aggregate, tree_roots=[0, 2],
        nodes_featureids=[0, 1, 1], nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [3], [0, 1, 6]),
        nodes_splits=helper.make_tensor("s", FLOAT, [3], [0.5, 0.0, np.nan]),
        membership_values=helper.make_tensor("v", FLOAT, [3], [1.0, 2.0, np.nan]),
        nodes_missing_value_tracks_true=[1, 0, 0],
        nodes_trueleafs=[0, 1, 1], nodes_truenodeids=[1, 1, 3], nodes_falseleafs=[1, 1, 1], nodes_falsenodeids=[0, 2, 0],
        leaf_targetids=[0, 1, 0, 1], leaf_weights=helper.make_tensor("w", FLOAT, [4], [1.0, 2.0, 4.0, 8.0]),
    )  # fmt: skip
    model = model_of([own], {"x": ["n", 2]}, ["y"])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5))
    compiled = pliant.compile(model)

    def leaves(a: float, b: float) -> list[int]:
        first = (1 if b < 0 else 2) if a <= 0.5 or np.isnan(a) else 0
        return [first, 3 if b in (1.0, 2.0) else 0]

    x = np.array([[0, -1], [0, 1], [1, 2], [np.nan, -3], [0.5, 7]], np.float32)
    want = np.zeros((len(x), 2), np.float32)
    targets, weights = [0, 1, 0, 1], [1.0, 2.0, 4.0, 8.0]
    for y, row in zip(want, x, strict=True):
        for target in (0, 1):
            own_weights = [weights[k] for k in leaves(*row) if targets[k] == target]
            total = {0: sum(own_weights) / 2, 1: sum(own_weights), 2: min(own_weights, default=0), 3: max(own_weights, default=0)}
            y[target] = total[aggregate]
    np.testing.assert_allclose(compiled(x), want)


def quantized(x: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return np.clip(np.rint(x / np.float32(scale)) + zero, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_microsoft_quantized_operators(op: str) -> None:
    own = helper.make_node(
        f"QLinear{op}", ["a", "sa", "za", "b", "sb", "zb", "sc", "zc"], ["y"], domain="com.microsoft"
    )
    scales = {"sa": 0.1, "sb": 0.05, "sc": 0.2}
    zeros = {"za": 128, "zb": 100, "zc": 10}
    constants = {k: np.float32(v) for k, v in scales.items()} | {k: np.uint8(v) for k, v in zeros.items()}
    u8 = (TensorProto.UINT8, ["n", 3])
    model = model_of([own], {"a": u8, "b": (TensorProto.UINT8, [3])}, ["y"], constants)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    compiled = pliant.compile(model)
    for n in (1, 5):
        a, b = RNG.integers(0, 256, (n, 3), np.uint8), RNG.integers(0, 256, 3, np.uint8)
        x = (a.astype(np.int32) - 128) * np.float32(0.1)
        y = (b.astype(np.int32) - 100) * np.float32(0.05)
        want = quantized(x + y if op == "Add" else x * y, 0.2, 10)
        assert np.abs(np.asarray(compiled(a, b)).astype(int) - want).max() <= 1


def test_a_fused_convolution_adds_and_activates() -> None:
    own = helper.make_node(
        "FusedConv", ["x", "w", "b", "z"], ["y"], domain="com.microsoft", activation="LeakyRelu", activation_params=[0.5]
    )
    plain = [node("Conv", "x w b", "c"), node("Add", "c z", "s"), node("LeakyRelu", "s", "y", alpha=0.5)]
    inputs: dict[str, Any] = {"x": ["n", 2, "h", "h"], "z": ["n", 3, "k", "k"]}
    constants = {"w": floats(3, 2, 3, 3), "b": floats(3)}
    fused = model_of([own], inputs, ["y"], constants)
    fused.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x, z = floats(2, 2, 6, 6), floats(2, 3, 4, 4)
    want = pliant.compile(model_of(plain, inputs, ["y"], constants))(x, z)
    np.testing.assert_allclose(pliant.compile(fused)(x, z), want, rtol=1e-5, atol=1e-5)


def test_quantized_matmul_to_float() -> None:
    own = helper.make_node("MatMulIntegerToFloat", ["a", "b", "sa", "sb", "za", "zb", "c"], ["y"], domain="com.microsoft")
    dynamic = helper.make_node("DynamicQuantizeMatMul", ["x", "b", "sb", "zb", "c"], ["y"], domain="com.microsoft")
    b, c = RNG.integers(0, 256, (4, 3), np.uint8), floats(3)
    constants = {"b": b, "sa": np.float32(0.1), "sb": np.float32(0.02), "za": np.uint8(7), "zb": np.uint8(120), "c": c}
    right = (b.astype(np.float32) - 120) * np.float32(0.02)
    models = [model_of([own], {"a": (TensorProto.UINT8, ["n", 4])}, ["y"], constants), model_of([dynamic], {"x": ["n", 4]}, ["y"], constants)]
    for model in models:
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    a = RNG.integers(0, 256, (5, 4), np.uint8)
    want = (a.astype(np.float32) - 7) * np.float32(0.1) @ right + c
    np.testing.assert_allclose(pliant.compile(models[0])(a), want, rtol=1e-4, atol=1e-4)
    x = floats(5, 4)
    # Eight bits keep about two digits.
    np.testing.assert_allclose(pliant.compile(models[1])(x), x @ right + c, atol=0.15)


@pytest.mark.parametrize("per_gate", [False, True])
def test_an_lstm_with_quantized_weights_dequantizes_them(per_gate: bool) -> None:
    directions, size, hidden = 2, 3, 4
    gates = 4 * hidden
    parameters = (directions, gates) if per_gate else (directions,)
    w, r = (RNG.integers(-128, 128, (directions, rows, gates), np.int8) for rows in (size, hidden))
    scales = [RNG.uniform(0.001, 0.01, parameters).astype(np.float32) for _ in range(2)]
    zeros = [RNG.integers(-5, 5, parameters).astype(np.int8) for _ in range(2)]
    names = ["x", "w", "r", "b", "", "h", "", "", "ws", "wz", "rs", "rz"]
    own = helper.make_node("DynamicQuantizeLSTM", names, ["y", "yh"], domain="com.microsoft", direction="bidirectional", hidden_size=hidden)
    inputs: dict[str, Any] = {"x": ["n", "b", size], "h": [directions, "b", hidden]}
    b = floats(directions, 2 * gates)
    quantized = {"w": w, "r": r, "b": b, "ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
    model = model_of([own], inputs, ["y", "yh"], quantized)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))

    def dequantized(weights: np.ndarray, i: int) -> np.ndarray:
        scale, zero = (p[i].astype(np.float32).reshape(directions, 1, -1) for p in (scales, zeros))
        return np.ascontiguousarray(((weights - zero) * scale).transpose(0, 2, 1))

    plain = helper.make_node("LSTM", names[:6], ["y", "yh"], direction="bidirectional", hidden_size=hidden)
    constants = {"w": dequantized(w, 0), "r": dequantized(r, 1), "b": b}
    expected = pliant.compile(model_of([plain], inputs, ["y", "yh"], constants))
    compiled = pliant.compile(model)
    for steps, batch in ((0, 2), (1, 1), (5, 3)):
        x, h = floats(steps, batch, size), floats(directions, batch, hidden)
        for actual, want in zip(compiled(x, h), expected(x, h), strict=True):
            np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-6)
