"""Tests declarations of users about an ONNX model's shapes, and the errors if the model violates them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import helper

import pliant
from pliant.frontend.onnx import declared_dims

from onnx_models import model_of, node


def traced() -> onnx.ModelProto:
    """Builds a model whose export fixed the length: a table of 8 positions is added through a
    Slice.
    """
    nodes = [node("Slice", "table zero eight", "places"), node("Identity", "places", "p"), node("Add", "x p", "y")]
    constants = {"table": np.ones((16, 4), np.float32), "zero": np.array([0]), "eight": np.array([8])}
    return model_of(nodes, {"x": ["n", 8, 4]}, ["y"], constants)


def test_file_dims_become_symbols_with_ranges() -> None:
    nodes = [node("Relu", "x", "y")]
    model = pliant.compile(model_of(nodes, {"x": [1, 8]}, ["y"]), dynamic_shapes={"x": {0: "batch", 1: ("seq", 1, 64)}})
    assert model.inputs[0].shape == ("batch", "seq")
    for shape in [(1, 8), (3, 5), (2, 64)]:
        x = np.ones(shape, np.float32)
        np.testing.assert_array_equal(model(x), x)
    with pytest.raises(pliant.PliantError, match="seq must be at most 64, as declared"):
        model(np.ones((1, 65), np.float32))


def test_specialized_symbols_are_reported_with_their_derivation() -> None:
    with pytest.raises(pliant.CompileError) as e:
        pliant.compile(traced(), dynamic_shapes={"x": {1: "seq"}})
    text = str(e.value)
    assert "Add 'y': the declared symbol seq would be fixed: the node needs seq to be 1 or 8" in text
    assert "the size comes from Identity 'p' of Slice 'places' of 'table'" in text
    assert "allow_specialization" in text


def test_allow_specialization() -> None:
    with pytest.warns(UserWarning, match="seq would be fixed"):
        model = pliant.compile(traced(), dynamic_shapes={"x": {1: "seq"}}, allow_specialization=True)
    x = np.zeros((2, 8, 4), np.float32)
    np.testing.assert_array_equal(model(x), x + 1)


def test_reshape_to_constants_specializes_a_symbol() -> None:
    model = model_of([node("Reshape", "x to", "y")], {"x": [2, 6]}, ["y"], {"to": np.array([2, 2, 3])})
    told = r"Reshape 'y': .* the node needs seq to be 6; the size comes from 'to'"
    with pytest.raises(pliant.CompileError, match=told):
        pliant.compile(model, dynamic_shapes={"x": {1: "seq"}})


def test_divisibility_is_checked_at_run_time() -> None:
    nodes = [node("Reshape", "x to", "y")]
    model = pliant.compile(
        model_of(nodes, {"x": ["n", "seq"]}, ["y"], {"to": np.array([0, -1, 8])}), divisible={"seq": 8}
    )
    x = np.arange(32, dtype=np.float32).reshape(2, 16)
    np.testing.assert_array_equal(model(x), x.reshape(2, 2, 8))
    with pytest.raises(pliant.ShapeError):
        model(np.zeros((2, 12), np.float32))


def test_shapes_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning):
        model = pliant.compile(
            traced(), dynamic_shapes={"x": [None, ("seq", 2, 100), None]}, allow_specialization=True
        )
    model.explain_shapes()
    text = capsys.readouterr().out
    assert "n: 0 .. any size  (of the file; x[0])" in text
    assert "seq: 2 .. 100  (declared; x[1])" in text
    assert "  Add 'y': the node needs seq to be 1 or 8" in text
    plain = pliant.compile(model_of([node("Relu", "x", "y")], {"x": ["n", 3]}, ["y"]))
    plain.explain_shapes()
    assert "n: 0 .. any size" in capsys.readouterr().out


def test_torch_style_dim_declarations() -> None:
    seq = SimpleNamespace(__name__="seq", min=2, max=2**63 - 1)
    hint = SimpleNamespace(type=SimpleNamespace(name="AUTO"), min=None, max=None)
    static = SimpleNamespace(type=SimpleNamespace(name="STATIC"))
    want = [(0, "seq", 2, None), (1, None, None, None), (4, "3", None, None)]
    assert declared_dims("x", (seq, hint, static, None, 3)) == want
    with pytest.raises(TypeError, match="dynamic_shapes of 'x', dim 0: expected a name"):
        declared_dims("x", {0: 1.5})


@pytest.mark.parametrize(
    ("declared", "part"),
    [({"z": {0: "n"}}, "names the input 'z', but the model has no input 'z'"), ({"x": {5: "n"}}, "dynamic_shapes declares dim 5 of input 'x', but the input has only 3 dims")],
)
def test_invalid_declarations_are_reported(declared: dict[str, dict[int, str]], part: str) -> None:
    with pytest.raises(pliant.CompileError, match=part):
        pliant.compile(traced(), dynamic_shapes=declared)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


PLACES = np.array([[0], [1]])
FIXED: list[tuple[str, list[str], dict[str, np.ndarray], str]] = [
    ("Concat axis=1", ["s", "q"], {"r": ones(4, 3)}, "s to be 4; the size comes from 'r'; s comes from 'x'"),
    ("Conv", ["n", "c", "h", "w"], {"r": ones(3, 2, 1, 1)}, "c to be 2; the size comes from 'r'"),
    ("Conv", ["n", "c", "l"], {"r": ones(3, 2, 1)}, "c to be 2"),
    ("Conv group=2", ["n", "c", "h", "w"], {"r": ones(4, 2, 1, 1)}, "c to be 4"),
    ("ConvTranspose", ["n", "c", "h", "w"], {"r": ones(3, 2, 1, 1)}, "c to be 3"),
    ("Einsum equation=ij,jk->ik", ["s", "q"], {"r": ones(7, 3)}, "q to be 1 or 7"),
    ("Squeeze", ["s", "q"], {"axes": np.array([0])}, "s to be 1"),
    ("LSTM hidden_size=2", ["l", "b", "i"], {"w": ones(1, 8, 3), "r": ones(1, 8, 2)}, "i to be 3; the size comes from 'w'"),
    ("GRU hidden_size=2", ["l", "b", "i"], {"w": ones(1, 6, 3), "r": ones(1, 6, 2)}, "i to be 3"),
    ("RNN hidden_size=2", ["l", "b", "i"], {"w": ones(1, 2, 3), "r": ones(1, 2, 2)}, "i to be 3"),
    ("Expand", ["s", "q"], {"to": np.array([4, 7])}, "q to be 1 or 7"),
    ("Mod fmod=1", ["s", "q"], {"r": ones(4, 7)}, "q to be 1 or 7"),
    ("RMSNormalization", ["s", "q"], {"r": ones(3)}, "q to be 3"),
    ("ReverseSequence", ["s", "q"], {"r": np.array([1, 1, 1])}, "q to be 3"),
    ("BatchNormalization", ["n", "c"], dict.fromkeys("abde", ones(3)), "c to be 3"),
    ("Split axis=0", ["s", "q"], {"parts": np.array([2, 3])}, "s to be 5"),
]


@pytest.mark.parametrize(("op", "dims", "constants", "words"), FIXED, ids=lambda v: str(v)[:24])
def test_size_checks_specialize_symbols(
    op: str, dims: list[str], constants: dict[str, np.ndarray], words: str
) -> None:
    name, *attrs = op.split(" ")
    given = {k: v if "," in v else int(v) for k, v in (a.split("=", 1) for a in attrs)}
    made = node(name, " ".join(["x", *constants]), "y z" if name == "Split" else "y", **given)
    model = model_of([made], {"x": [f"d{i}" for i in range(len(dims))]}, ["y"], constants, opset=23)
    with pytest.raises(pliant.CompileError) as told:
        pliant.compile(model, dynamic_shapes={"x": dims})
    assert "would be fixed" in str(told.value) and words in str(told.value), str(told.value)


def test_updates_and_states_specialize_symbols() -> None:
    nodes = [node("ScatterND", "a i x", "y")]
    constants = {"a": ones(4, 7), "i": PLACES}
    with pytest.raises(pliant.CompileError, match="s to be 2"):
        pliant.compile(model_of(nodes, {"x": ["a0", "b0"]}, ["y"], constants), dynamic_shapes={"x": ["s", "q"]})
    first = helper.make_node("LSTM", ["x", "w", "r", "", "", "h"], ["y"], hidden_size=2)
    constants = {"w": ones(1, 8, 3), "r": ones(1, 8, 2), "h": ones(1, 5, 2)}
    with pytest.raises(pliant.CompileError, match="b to be 5; the size comes from 'h'"):
        pliant.compile(model_of([first], {"x": [4, "n", 3]}, ["y"], constants), dynamic_shapes={"x": {1: "b"}})
    nodes = [node("Shape", "x", "t"), node("Gather", "t zero", "n"), node("Concat", "n four", "to", axis=0)]
    constants = {"zero": np.array([0]), "four": np.array([4])}
    nodes.append(node("Reshape", "x to", "y"))
    with pytest.raises(pliant.CompileError, match="q to be 4"):
        pliant.compile(model_of(nodes, {"x": ["a0", "b0"]}, ["y"], constants), dynamic_shapes={"x": ["s", "q"]})


def test_specialization_is_traced_through_graphs_and_functions() -> None:
    nodes = [node("Concat", "x x", "cc", axis=1), node("Relu", "cc", "re"), node("MatMul", "re r", "y")]
    model = model_of(nodes, {"x": ["a", "b"]}, ["y"], {"r": ones(14, 2)})
    with pytest.raises(pliant.CompileError) as told:
        pliant.compile(model, dynamic_shapes={"x": {1: "q"}})
    way = "the node needs q to be 7; the size comes from 'r'; q comes from 'x' through Concat 'cc', Relu 're'"
    assert way in str(told.value)
    inner = [node("Identity", "go", "on"), node("MatMul", "v r", "w")]
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("i", 7, []), ("go", 9, []), ("v", 1, None))]
    outs = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("on", 9, []), ("w", 1, None))]
    loop = helper.make_node("Loop", ["most", "", "x"], ["y"], body=helper.make_graph(inner, "b", infos, outs))
    model = model_of([loop], {"x": ["a", "b"]}, ["y"], {"r": ones(7, 7), "most": np.array(2)})
    with pytest.raises(pliant.CompileError, match="q to be 7; the size comes from 'r'; q comes from 'x'"):
        pliant.compile(model, dynamic_shapes={"x": {1: "q"}})


def test_symbols_equal_to_a_specialized_symbol_are_specialized() -> None:
    nodes = [node("MatMul", "z r", "t"), node("MatMul", "x z", "y")]
    model = model_of(nodes, {"x": ["a", "b"], "z": ["c", 4]}, ["t", "y"], {"r": ones(4, 2)})
    with pytest.warns(UserWarning, match="the file's symbols b, c would be fixed") as told:
        nodes = [node("Concat", "z k", "t", axis=1), node("MatMul", "x z", "y")]
        fixed = model_of(nodes, {"x": ["a", "b"], "z": ["c", 4]}, ["t", "y"], {"k": ones(6, 1)})
        pliant.compile(fixed, allow_specialization=True)
    assert len(told) == 1
    with pytest.raises(pliant.CompileError, match="c to be 6"):
        pliant.compile(fixed)
    with pytest.raises(pliant.CompileError, match="symbols? .*q.* would be fixed: the node needs .* to be 6.*needs"):
        pliant.compile(fixed, dynamic_shapes={"x": {1: "q"}})
    assert pliant.compile(model, dynamic_shapes={"x": {1: "q"}}) is not None


def test_bounds_and_equalities_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    def explained(made: onnx.NodeProto, constants: dict[str, np.ndarray]) -> str:
        pliant.compile(model_of([made], {"x": ["s", "q"]}, ["y"], constants)).explain_shapes()
        return capsys.readouterr().out

    assert "GatherElements 'y': the node needs 3 <= q" in explained(node("GatherElements", "x i", "y"), {"i": PLACES.repeat(3, 1)})
    assert "Det 'y': the node needs s to be q" in explained(node("Det", "x", "y"), {})
    keeps = {"c": np.array([True, False, True, False])}
    assert "Compress 'y': the node needs 3 <= s" in explained(node("Compress", "x c", "y", axis=0), keeps)


def test_empty_ranges_are_reported() -> None:
    add = model_of([node("Add", "x z", "y")], {"x": ["a"], "z": ["b"]}, ["y"])
    with pytest.raises(pliant.CompileError, match="do not overlap: the largest minimum is 5, and the smallest maximum is 4"):
        pliant.compile(add, dynamic_shapes={"x": {0: ("s", 1, 4)}, "z": {0: ("s", 5, 9)}})
    product = model_of([node("MatMul", "x r", "y")], {"x": [2, 7]}, ["y"], {"r": ones(7, 3)})
    with pytest.raises(pliant.CompileError, match="no size from 8 to 16 of the symbol q satisfies all constraints"):
        pliant.compile(product, dynamic_shapes={"x": {1: ("q", 8, 16)}}, allow_specialization=True)
    with pytest.raises(pliant.CompileError, match="q and 7"):
        pliant.compile(product, dynamic_shapes={"x": {1: "q"}}, divisible={"q": 2})


def test_unnamed_dims_are_not_symbols() -> None:
    model = pliant.compile(model_of([node("Relu", "x", "y")], {"x": ["?", "?"]}, ["y"]))
    assert model(ones(2, 3)).shape == (2, 3)
