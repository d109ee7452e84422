"""What users declare of an ONNX model's shapes, and what is told when the model does not keep to it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import onnx
import pytest

import pliant
from pliant.frontend.onnx import declared_dims

from onnx_models import model_of, node


def traced() -> onnx.ModelProto:
    """A model whose export fixed the length: a table of 8 places is added, by way of a Slice."""
    nodes = [node("Slice", "table zero eight", "places"), node("Identity", "places", "p"), node("Add", "x p", "y")]
    constants = {"table": np.ones((16, 4), np.float32), "zero": np.array([0]), "eight": np.array([8])}
    return model_of(nodes, {"x": ["n", 8, 4]}, ["y"], constants)


def test_dims_of_the_file_become_symbols_with_ranges() -> None:
    nodes = [node("Relu", "x", "y")]
    model = pliant.compile(model_of(nodes, {"x": [1, 8]}, ["y"]), dynamic_shapes={"x": {0: "batch", 1: ("seq", 1, 64)}})
    assert model.inputs[0].shape == ("batch", "seq")
    for shape in [(1, 8), (3, 5), (2, 64)]:
        x = np.ones(shape, np.float32)
        np.testing.assert_array_equal(model(x), x)
    with pytest.raises(pliant.PliantError, match="seq must be at most 64, as dynamic_shapes says"):
        model(np.ones((1, 65), np.float32))


def test_a_symbol_that_the_model_fixes_is_told_with_the_way_of_the_size() -> None:
    with pytest.raises(pliant.CompileError) as e:
        pliant.compile(traced(), dynamic_shapes={"x": {1: "seq"}})
    text = str(e.value)
    assert "Add 'y': the declared symbol seq would be fixed: it needs seq to be 8" in text
    assert "the size comes from Identity 'p' of Slice 'places' of 'table'" in text
    assert "allow_specialization" in text


def test_specialising_may_be_allowed() -> None:
    with pytest.warns(UserWarning, match="seq would be fixed"):
        model = pliant.compile(traced(), dynamic_shapes={"x": {1: "seq"}}, allow_specialization=True)
    x = np.zeros((2, 8, 4), np.float32)
    np.testing.assert_array_equal(model(x), x + 1)


def test_a_reshape_to_numbers_fixes_a_symbol() -> None:
    model = model_of([node("Reshape", "x to", "y")], {"x": [2, 6]}, ["y"], {"to": np.array([2, 2, 3])})
    told = r"Reshape 'y': .* it needs seq \* 2 to be 12; the size comes from 'to'"
    with pytest.raises(pliant.CompileError, match=told):
        pliant.compile(model, dynamic_shapes={"x": {1: "seq"}})


def test_a_divisor_is_a_fact_that_the_run_checks() -> None:
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
    assert "  Add 'y': it needs seq to be 8" in text
    plain = pliant.compile(model_of([node("Relu", "x", "y")], {"x": ["n", 3]}, ["y"]))
    plain.explain_shapes()
    assert "n: 0 .. any size" in capsys.readouterr().out


def test_dims_as_torch_declares_them() -> None:
    seq = SimpleNamespace(__name__="seq", min=2, max=2**63 - 1)
    hint = SimpleNamespace(type=SimpleNamespace(name="AUTO"), min=None, max=None)
    static = SimpleNamespace(type=SimpleNamespace(name="STATIC"))
    want = [(0, "seq", 2, None), (1, None, None, None), (4, "3", None, None)]
    assert declared_dims("x", (seq, hint, static, None, 3)) == want
    with pytest.raises(TypeError, match="dynamic_shapes of 'x', dim 0: expected a name"):
        declared_dims("x", {0: 1.5})


@pytest.mark.parametrize(
    ("declared", "part"),
    [({"z": {0: "n"}}, "which is no input"), ({"x": {5: "n"}}, "has rank 3, but dim 5 is declared")],
)
def test_declarations_that_do_not_fit_are_told(declared: dict[str, dict[int, str]], part: str) -> None:
    with pytest.raises(pliant.CompileError, match=part):
        pliant.compile(traced(), dynamic_shapes=declared)
