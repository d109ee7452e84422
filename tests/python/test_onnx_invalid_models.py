"""Tests the errors for models that break the rules of their operators, and for wrong declarations of users about shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import FLOAT, model_of, node

import pliant
from pliant.error import CompileError, ShapeError, UnsupportedError
from pliant.frontend.onnx import Limits, check


def refused(model: Any, words: str, strict: bool = False) -> None:
    """Checks that the model does not compile, and that the report of ``check`` states the same error. ``strict`` is the option of the
    import."""
    with pytest.raises((CompileError, UnsupportedError)) as told:
        pliant.compile(model, strict=strict)
    report = check(model, strict=strict)
    assert words in str(told.value) and not report.ok and words in str(report), str(told.value)


def test_attributes_and_inputs_must_match_the_opset_version() -> None:
    x = {"x": ["n", 4]}
    refused(model_of([node("Softmax", "x", "y", axiss=1)], x, ["y"]), "no attribute 'axiss' in opset 18")
    assert "did you mean 'axis'" in str(check(model_of([node("Softmax", "x", "y", axiss=1)], x, ["y"])))
    refused(model_of([node("Relu", "x x x", "y")], x, ["y"]), "the node has 3 inputs, but opset 18 allows at most 1")
    refused(model_of([node("Relu", "x", "y z")], x, ["y"]), "the node has 2 outputs, but opset 18 allows at most 1")
    refused(model_of([node("Gelu", "x", "y")], x, ["y"]), "opset 18, but the operator exists since opset 20")
    refused(model_of([node("Upsample", "x x", "y")], x, ["y"]), "removed in opset 10")
    refused(model_of([node("Concat", "x x", "y")], x, ["y"]), "'axis' is missing")
    # A problem after another one is reported, too.
    both = [node("Softmax", "x", "t", axiss=1), node("Relu", "t", "y", alpha=1.0)]
    report = check(model_of(both, x, ["y"]))
    assert [f.operator for f in report.findings] == ["Softmax", "Relu"]


def test_models_must_import_opset_versions() -> None:
    made = model_of([node("Relu", "x", "y")], {"x": ["n"]}, ["y"], opset=99)
    refused(made, "opset 99 is not known; the newest known version is 28")
    del made.opset_import[:]
    refused(made, "uses ONNX's own operators, but does not import an opset of it")
    gelu = model_of([node("Gelu", "x", "y", domain="com.microsoft")], {"x": ["n"]}, ["y"])
    refused(gelu, "uses com.microsoft, but does not import an opset of it", strict=True)
    gelu.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert check(gelu).ok
    old = model_of([node("Relu", "x", "y")], {"x": ["n"]}, ["y"], opset=6)
    assert check(old).ok and "warning: opset 6 is older than 7" in str(check(old))
    with pytest.warns(UserWarning, match="opset 6 is older"):
        pliant.compile(old)


def test_function_calls_must_match_their_signature() -> None:
    def function(name: str, attribute: str = "") -> onnx.FunctionProto:
        relu = node("LeakyRelu", "a", "c")
        if attribute:
            relu.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name=attribute, type=onnx.AttributeProto.FLOAT))
        opsets = [helper.make_opsetid("", 18)]
        return helper.make_function("mine", name, ["a"], ["c"], [relu], opsets, attributes=["slope"])

    def calling(call: onnx.NodeProto, *functions: onnx.FunctionProto) -> onnx.ModelProto:
        made = model_of([call], {"x": ["n"]}, ["y"])
        made.opset_import.append(helper.make_opsetid("mine", 1))
        made.functions.extend(functions)
        return made

    own = {"domain": "mine"}
    assert check(calling(node("f", "x", "y", slope=0.5, **own), function("f", "slope"))).ok
    refused(calling(node("f", "x x", "y", **own), function("f")), "the node has 2 inputs, but the function 'f' of mine accepts at most 1")
    refused(calling(node("f", "x", "y z", **own), function("f")), "the node has 2 outputs, but the function 'f' of mine accepts at most 1")
    wrong = calling(node("f", "x", "y", slop=0.5, **own), function("f", "slope"))
    refused(wrong, "'f' of mine has no attribute 'slop'")
    assert "did you mean 'slope'?" in str(check(wrong))
    refused(calling(node("f", "x", "y", **own), function("f"), function("f")), "the model defines two functions named 'f' of mine")
    refused(calling(node("f", "x", "y", **own), function("f", "tilt")), "'alpha' refers to 'tilt', which the function 'f'")
    outside = function("f", "slope").node[0]
    outside.input[0], outside.output[0] = "x", "y"
    refused(model_of([outside], {"x": ["n"]}, ["y"]), "'alpha' refers to attribute 'slope' of a function, but the node is not in a function")
    twice = model_of([node("Relu", "x", "y")], {"x": ["n"]}, ["y"])
    twice.opset_import.append(helper.make_opsetid("ai.onnx", 11))
    refused(twice, "the model imports two opset versions of ONNX's own operators")


def test_declared_types_must_match_computed_types() -> None:
    def declared(name: str, dtype: int, dims: Any, output: bool) -> Any:
        nodes = [node("Relu", "x", "t"), node("Neg", "t", "y")]
        made = model_of(nodes, {"x": ["a", 4]}, ["y"])
        info = helper.make_tensor_value_info(name, dtype, dims)
        if output:
            made.graph.output[0].CopyFrom(info)
        else:
            made.graph.value_info.append(info)
        return made

    for name, output in (("y", True), ("t", False)):
        refused(declared(name, TensorProto.INT64, ["a", 4], output), f"'{name}' is declared as int64, but is float32")
        refused(declared(name, FLOAT, [3, 4, 5], output), f"'{name}' is declared as [3, 4, 5], but is [?, 4]", strict=True)
        refused(declared(name, FLOAT, ["a", 5], output), f"'{name}' is declared as [a, 5], but is [?, 4]", strict=True)
        for dims in (["a", 4], ["whatever", "m"], [3, 4], None):
            assert check(declared(name, FLOAT, dims, output)).ok
    # The user's shapes take precedence over those of the file.
    stale = declared("t", FLOAT, [1, 4], False)
    stale.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    assert pliant.compile(stale, dynamic_shapes={"x": {0: "batch"}}).inputs[0].shape == ("batch", 4)


def test_divisor_errors_name_the_symbol() -> None:
    made = model_of([node("Relu", "x", "y")], {"x": ["s", 4]}, ["y"])
    model = pliant.compile(made, divisible={"s": 2}, dynamic_shapes={"x": {0: ("s", 2, 8)}})
    with pytest.raises(ShapeError) as told:
        model.run(None, {"x": np.ones((3, 4), np.float32)})
    expected = "'x' dim 0 must equal s = 2 (from the next smaller multiple of 2, because s is declared divisible by 2), but is 3"
    assert expected in str(told.value)
    with pytest.raises(pliant.PliantError, match="s must be at most 8") as too_large:
        model.run(None, {"x": np.ones((10, 4), np.float32)})
    for error in (told.value, too_large.value):
        assert "_over_" not in str(error)


FACTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dynamic_shapes": 5}, TypeError, "dynamic_shapes: expected a dict"),
    ({"dynamic_shapes": {3: ["a"]}}, TypeError, "dynamic_shapes: expected a dict"),
    ({"dynamic_shapes": {"x": "abc"}}, TypeError, "dynamic_shapes of 'x': expected a dict by axis or a list"),
    ({"dynamic_shapes": {"x": {0: 3.5}}}, TypeError, "dynamic_shapes of 'x', dim 0: expected a name"),
    ({"dynamic_shapes": {"x": {"0": "s"}}}, TypeError, "dynamic_shapes of 'x', dim 0: the axis must be an int"),
    ({"dynamic_shapes": {"x": {-1: "s"}}}, ValueError, "dynamic_shapes of 'x', dim -1: the axis must be from 0"),
    ({"dynamic_shapes": {"x": {0: -1}}}, ValueError, "dynamic_shapes of 'x', dim 0: '-1' is not a size"),
    ({"dynamic_shapes": {"x": {0: 2**63}}}, ValueError, "dim 0: '9223372036854775808' is not a size"),
    ({"dynamic_shapes": {"x": ["a b"]}}, ValueError, "dim 0: 'a b' is not a size, a name"),
    ({"dynamic_shapes": {"x": {0: ""}}}, ValueError, "dynamic_shapes of 'x', dim 0"),
    (
        {"dynamic_shapes": {"x": {0: ("s", 1, 2**70)}}},
        ValueError,
        f"dynamic_shapes of 'x', dim 0: a minimum or maximum size must be from 0 to 2**63 - 1, got {2**70}",
    ),
    ({"dynamic_shapes": {"x": {0: ("s", 1, "9")}}}, TypeError, "dim 0: a minimum or maximum size must be an int"),
    ({"dynamic_shapes": {"x": ["c+d"]}}, CompileError, "input 'x'"),
    ({"divisible": ["s"]}, TypeError, "divisible: expected a dict"),
    ({"divisible": {"a": 1.5}}, TypeError, "divisible: the divisor of symbol 'a' must be an int"),
    ({"divisible": {"a": 2**63}}, ValueError, "divisible: the divisor of symbol 'a' must be from 1"),
    ({"divisible": {"a": 0}}, ValueError, "divisible: the divisor of symbol 'a' must be from 1"),
]


@pytest.mark.parametrize(("facts", "kind", "words"), FACTS, ids=lambda f: str(f)[:40])
def test_invalid_declarations_name_the_argument(facts: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as told:
        pliant.compile(model_of([node("Relu", "x", "y")], {"x": ["a", "b"]}, ["y"]), **facts)
    assert words in str(told.value)


def test_dim_expressions_define_symbols() -> None:
    made = model_of([node("Relu", "x", "y")], {"x": ["past+seq", "past"]}, ["y"])
    model = pliant.compile(made)
    assert model.run(None, {"x": -np.ones((5, 3), np.float32)})[0].shape == (5, 3)


def test_limit_errors() -> None:
    for wrong, kind in (({"nodes": -1}, ValueError), ({"depth": 2**63}, ValueError), ({"nodes": "many"}, TypeError)):
        with pytest.raises(kind, match=f"Limits: {next(iter(wrong))} must be"):
            Limits(**wrong)  # type: ignore[arg-type]
    assert Limits(seconds=0.5).given() == {"seconds": 0.5}


# ---- operators of ONNX Runtime, compared with formulas ----


def contrib(op: str, inputs: dict[str, np.ndarray], **attrs: Any) -> np.ndarray:
    """Runs an operator of ``com.microsoft`` on inputs with only symbolic dims, and returns the
    result.
    """
    infos = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), [f"{k}{i}" for i in range(v.ndim)])
        for k, v in inputs.items()
    ]
    made = helper.make_node(op, list(inputs), ["out"], domain="com.microsoft", **attrs)
    graph = helper.make_graph([made], "g", infos, [onnx.ValueInfoProto(name="out")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return pliant.compile(helper.make_model(graph, opset_imports=opsets)).run(None, inputs)[0]


def quantized(x: np.ndarray, scale: float, zero: int, dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.clip(np.rint(x.astype(np.float64) / scale) + zero, limits.min, limits.max).astype(dtype)


def real(q: np.ndarray, scale: float, zero: int) -> np.ndarray:
    return (q.astype(np.float64) - zero) * scale


def near(got: np.ndarray, want: np.ndarray) -> None:
    """Checks that integers are equal, except for ties that float32 rounds differently."""
    assert got.shape == want.shape and got.dtype == want.dtype
    assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max() <= 1
    assert (got == want).mean() > 0.95


def test_fused_gemm() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (5, 3), (5,)))
    base = 0.5 * a.T.astype(np.float64) @ b.T + 2.0 * c
    for activation, extra, formula in (
        ("Relu", {}, lambda v: np.maximum(v, 0)),
        ("LeakyRelu", {"activation_alpha": 0.1}, lambda v: np.where(v < 0, 0.1 * v, v)),
        ("Tanh", {}, np.tanh),
        ("Sigmoid", {}, lambda v: 1 / (1 + np.exp(-v))),
    ):
        attrs = {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0, "activation": activation, **extra}
        got = contrib("FusedGemm", {"a": a, "b": b, "c": c}, **attrs)
        np.testing.assert_allclose(got, formula(base), rtol=1e-5, atol=1e-5)


def test_qgemm() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (4, 6)).astype(np.uint8), rng.integers(-128, 128, (5, 6)).astype(np.int8)
    c = rng.integers(-500, 500, 5).astype(np.int32)
    scales = np.array([0.01, 0.03, 0.02, 0.05, 0.04], np.float32)
    zeros = np.array([1, -2, 0, 3, 4], np.int8)
    alpha = 0.5
    whole = (a.astype(np.int64) - 7) @ (b.astype(np.int64) - zeros[:, None]).T + c
    want = whole * (alpha * 0.02 * scales.astype(np.float64))
    inputs = {
        "a": a,
        "as": np.array(0.02, np.float32),
        "az": np.array(7, np.uint8),
        "b": b,
        "bs": scales,
        "bz": zeros,
        "c": c,
    }
    np.testing.assert_allclose(contrib("QGemm", inputs, transB=1, alpha=alpha), want, rtol=1e-5, atol=1e-5)
    inputs |= {"ys": np.array(0.11, np.float32), "yz": np.array(100, np.uint8)}
    near(contrib("QGemm", inputs, transB=1, alpha=alpha), quantized(want, float(np.float32(0.11)), 100, np.uint8))


def test_qlinear_sigmoid() -> None:
    x = np.arange(256, dtype=np.uint8).reshape(8, 32)
    inputs = {
        "x": x,
        "xs": np.array(0.05, np.float32),
        "xz": np.array(120, np.uint8),
        "ys": np.array(1 / 256, np.float32),
        "yz": np.array(3, np.uint8),
    }
    want = quantized(1 / (1 + np.exp(-real(x, float(np.float32(0.05)), 120))), 1 / 256, 3, np.uint8)
    near(contrib("QLinearSigmoid", inputs), want)


def test_qlinear_concat() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-128, 128, (2, 3)).astype(np.int8), rng.integers(-128, 128, (2, 5)).astype(np.int8)
    inputs = {
        "ys": np.array(0.2, np.float32),
        "yz": np.array(-5, np.int8),
        "a": a,
        "as": np.array(0.1, np.float32),
        "az": np.array(4, np.int8),
        "b": b,
        "bs": np.array(0.31, np.float32),
        "bz": np.array(-9, np.int8),
    }
    f = {k: float(inputs[k]) for k in ("ys", "as", "bs")}
    want = quantized(np.concatenate([real(a, f["as"], 4), real(b, f["bs"], -9)], axis=1), f["ys"], -5, np.int8)
    near(contrib("QLinearConcat", inputs, axis=1), want)


def test_qlinear_concat_keeps_integers_of_the_same_scale() -> None:
    a, b = np.arange(256, dtype=np.uint8).reshape(2, 128), np.full((2, 3), 7, np.uint8)
    constants = {"s": np.array(0.3, np.float32), "z": np.array(5, np.uint8), "t": np.array(0.6, np.float32)}
    joined = node("QLinearConcat", "s z a s z b t z", "y", axis=1, domain="com.microsoft")
    inputs = {"a": (TensorProto.UINT8, ["n", 128]), "b": (TensorProto.UINT8, ["n", 3])}
    graph = model_of([joined], inputs, ["y"], constants)
    graph.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model = pliant.compile(graph)
    np.testing.assert_array_equal(model(a, b).numpy(), np.concatenate([a, np.full((2, 3), 9, np.uint8)], axis=1))


def test_impossible_results_name_their_node() -> None:
    x, huge = {"x": ["n"]}, np.array([2**62, 4])
    for op in ("Expand", "Reshape"):
        refused(model_of([node(op, "x to", "y")], x, ["y"], {"to": huge}), f"{op} 'y'")
    expanded = model_of([node("Expand", "x to", "y")], x, ["y"], {"to": huge})
    refused(expanded, "output 'y' has the shape [4611686018427387904, 4], whose size in bytes exceeds 64 bits")
    refused(model_of([node("Expand", "x to", "y")], x, ["y"], {"to": np.array([-1])}), "the size -1 in shape is negative")
    pads = node("Conv", "x w", "y", pads=[2**31] * 4)
    padded = model_of([pads], {"x": ["n", 1, "h", "v"]}, ["y"], {"w": np.ones((1, 1, 1, 1), np.float32)})
    refused(padded, "whose size in bytes exceeds 64 bits")
    many = model_of([node("Unsqueeze", "x axes", "y")], x, ["y"], {"axes": np.arange(64)})
    refused(many, "output 'y' has 65 dims, but the limit is 64")
    with pytest.raises(CompileError, match="input 'x' has 2 dims, but the limit is 1"):
        pliant.frontend.onnx.from_onnx(model_of([node("Relu", "x", "y")], {"x": ["a", "b"]}, ["y"]), limits=Limits(rank=1))


def test_every_problem_has_a_reduced_model(tmp_path: Any) -> None:
    nodes = [node("Frob", "x", "a"), node("Add", "nope x", "b"), node("Relu", "d", "c"), node("Neg", "c", "d")]
    nodes += [node("Abs", "x", "b"), node("Relu", "text", "e"), *(node("Relu", "x", f"o{i}") for i in range(9))]
    inputs = {"x": ["n"], "text": (TensorProto.STRING, ["n"]), "z": ["n"]}
    report = check(model_of(nodes, inputs, ["b", "z", "gone"]), reduce=tmp_path)
    assert len(report.findings) == 6 == len(report.reduced), str(report)
    assert all("register" in str(f.help) for f in report.findings if "operator Frob" in f.message)
    for finding, path in zip(report.findings, report.reduced, strict=True):
        small = onnx.load(path)
        again = check(small)
        assert finding.message in str(again) and len(small.graph.node) <= 2, (str(again), small)


def test_dims_that_divide_by_zero_are_names() -> None:
    model = pliant.compile(model_of([node("Relu", "x", "y")], {"x": ["n//0", "n"]}, ["y"]))
    assert model.run(None, {"x": np.ones((2, 3), np.float32)})[0].shape == (2, 3)


def test_option_type_errors() -> None:
    model = model_of([node("Relu", "x", "y")], {"x": ["n"]}, ["y"])
    wrong: Any = {}
    with pytest.raises(TypeError, match=r"limits: expected Limits\(.*got \{\}"):
        pliant.compile(model, limits=wrong)
    with pytest.raises(TypeError, match="allow_specialization: expected True or False, got 'yes'"):
        pliant.compile(model, allow_specialization="yes")
    with pytest.raises(CompileError, match="the compilation took longer than 0 seconds"):
        pliant.compile(model, seconds=0)
    with pytest.raises(ValueError, match="option 'seconds' must be a non-negative number of seconds, not -1"):
        pliant.compile(model, seconds=-1)
    least = pliant.compile(model, dynamic_shapes={"x": {0: ("rows", 2)}})
    assert least.inputs[0].shape == ("rows",)
    with pytest.raises(pliant.PliantError, match="rows must be at least 2"):
        least.run(None, {"x": np.ones(1, np.float32)})


def test_invalid_models_are_not_reported_as_unsupported() -> None:
    number = model_of([node("Cast", "x", "y", to=77)], {"x": ["n"]}, ["y"])
    refused(number, "77 is not the code of an ONNX element type")
    assert check(number).findings[0].kind == "invalid"
    refused(model_of([node("Cast", "x", "y", to=8)], {"x": ["n"]}, ["y"]), "STRING is not supported")
    untyped = model_of([node("Relu", "x", "y")], {"x": ["n"]}, ["y"])
    untyped.graph.input[0].ClearField("type")
    refused(untyped, "input 'x' has no declared type")
    assert check(untyped).findings[0].kind == "invalid"


def test_other_argument_errors_name_the_argument() -> None:
    made = model_of([node("Relu", "x", "y")], {"x": ["n", 2]}, ["y"])
    x = np.ones((3, 2), np.float32)
    for source in (made.SerializeToString(), bytearray(made.SerializeToString()), memoryview(made.SerializeToString())):
        assert pliant.compile(source, limits=Limits(nodes=4)).run(None, {"x": x})[0].shape == (3, 2)
    from_onnx = pliant.frontend.onnx.from_onnx
    assert pliant.compile(from_onnx(made, shape_dict={"x": [None, 2]})).inputs[0].shape == ("x_0", 2)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"shape_dict": {"x": 5}}, "shape_dict of 'x': expected a list"),
        ({"shape_dict": {"x": [1.5, 2]}}, "shape_dict of 'x', dim 0"),
        ({"shape_dict": {"x": [-7, 2]}}, "shape_dict of 'x': the size -7 is negative"),
        ({"dtype_dict": {"x": "float99"}}, "dtype_dict of 'x'"),
    ]
    for given, words in wrong:
        with pytest.raises((TypeError, ValueError), match=words):
            from_onnx(made, **given)
    with pytest.raises(TypeError, match="for ONNX models also allow_specialization, divisible, dynamic_shapes, limits"):
        pliant.compile(made, anything={})
    model = pliant.compile(made)
    for names, feeds, words in ((None, None, "'feeds' must be a dict"), ("y", {"x": x}, "'output_names' must be a list")):
        with pytest.raises(TypeError, match=words):
            model.run(names, feeds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "constants", "declared", "fits"),
    [
        # The last five of the existing ones, times three rows: only three sizes.
        ("slice -5 9223372036854775807 | matmul 3", {}, ("seq", None, None), False),
        ("slice -5 9223372036854775807 | matmul 5", {}, ("seq", None, None), True),
        ("slice -5 1000 | matmul 5", {}, ("seq", None, None), True),
        ("half | matmul 4", {}, ("seq", 9, 100), False),
        ("rows 64", {}, ("seq", 1, 4096), True),
        ("rows 2048", {}, ("seq", 1, 100_000), True),
        ("half | matmul 4", {}, ("seq", 1, 100), False),
        ("pool | concat", {}, ("seq", None, None), False),
    ],
)
def test_symbols_in_sizes_on_both_sides(nodes: str, constants: Any, declared: Any, fits: bool) -> None:
    made, known, last = [], {}, "x"
    for k, word in enumerate(nodes.split(" | ")):
        name, *numbers = word.split()
        out = f"t{k}"
        match name:
            case "slice":
                known |= {"from": np.array([int(numbers[0])]), "to": np.array([int(numbers[1])]), "axes": np.array([2])}
                made.append(node("Slice", f"{last} from to axes", out))
            case "half":
                made.append(node("Split", last, f"first {out}", axis=2, num_outputs=2))
            case "pool":
                made.append(node("MaxPool", last, out, kernel_shape=[2], strides=[2]))
            case "matmul":
                known["w"] = np.ones((int(numbers[0]), 2), "float32")
                made.append(node("MatMul", f"{last} w", out))
            case "rows":
                known["s"] = np.array([-1, int(numbers[0])])
                made.append(node("Transpose", last, "turned", perm=[2, 0, 1]))
                made.append(node("Slice", "turned zero one last", "row"))
                known |= {"zero": np.array([0, 0]), "one": np.array([1, 1]), "last": np.array([1, 2])}
                made.append(node("Reshape", "row s", out))
            case "concat":
                made.append(node("Concat", f"{last} x", out, axis=1))
        last = out
    model = model_of(made, {"x": ["n", 1, "seq"]}, [last], known)
    facts = {"x": {2: declared}}
    if fits:
        pliant.compile(model, dynamic_shapes=facts)
        return
    with pytest.raises(CompileError, match="seq would be fixed"):
        pliant.compile(model, dynamic_shapes=facts)


def test_non_constant_splits_and_steps() -> None:
    nodes = [
        node("Shape", "x", "n"),
        node("Sub", "n four", "less"),
        node("Concat", "less four", "parts", axis=0),
        node("Split", "x parts", "a b"),
    ]
    compiled = pliant.compile(model_of(nodes, {"x": ["n"]}, ["a", "b"], {"four": np.array([4])}))
    assert [len(part) for part in compiled.run(None, {"x": np.zeros(6, "float32")})] == [2, 4]
    with pytest.raises(pliant.AssertionFailed, match="the lengths in 'split' must be at least 0, but one is"):
        compiled.run(None, {"x": np.zeros(3, "float32")})
    nodes = [node("Shape", "x", "n"), node("Squeeze", "n", "step"), node("Range", "zero ten step", "y")]
    constants = {"zero": np.array(0), "ten": np.array(10)}
    compiled = pliant.compile(model_of(nodes, {"x": ["n"]}, ["y"], constants))
    for n in (1, 3, 10, 40):
        assert compiled.run(None, {"x": np.zeros(n, "float32")})[0].tolist() == list(range(0, 10, n))
    with pytest.raises(pliant.VMError, match="the step 'delta' .input 2. must not be 0"):
        compiled.run(None, {"x": np.zeros(0, "float32")})


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("exponent", [0.5, 2.5, -1.0, 2.0])
def test_integers_to_the_power_of_floats(exponent: float, fed: bool) -> None:
    x, e = np.array([1, 4, 8, 27]), np.array(exponent, "float32")
    inputs = {"x": (TensorProto.INT64, ["n"])} | ({"e": []} if fed else {})
    model = model_of([node("Pow", "x e", "y")], inputs, ["y"], {} if fed else {"e": e})
    got = pliant.compile(model).run(None, {"x": x} | ({"e": e} if fed else {}))[0]
    assert got.dtype == np.int64 and got.tolist() == np.power(x, np.float64(exponent)).astype("int64").tolist()


def test_wrap_padding_repeats_as_often_as_needed() -> None:
    model = model_of([node("Pad", "x p", "y", mode="wrap")], {"x": ["n"]}, ["y"], {"p": np.array([3, 7])}, opset=19)
    compiled = pliant.compile(model)
    for n in (1, 2, 3, 8):
        x = np.arange(n, dtype="float32")
        np.testing.assert_array_equal(compiled.run(None, {"x": x})[0], np.pad(x, (3, 7), mode="wrap"))
