"""Tests sizes that importers and operators compute: exact quotients, and expressions that loop functions take as arguments."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_models import model_of, node

import pliant
from pliant import relax, tir

ROWS = {"r": np.array([-1, 8]), "w": np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)}


def mask_model() -> onnx.ModelProto:
    """Builds a padding mask as torch exports it: expanded over heads, reshaped to [batch * heads,
    1, seq] and back.
    """
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "batch"),
        node("Gather", "shape one", "seq"),
        node("Unsqueeze", "batch axis", "b"),
        node("Unsqueeze", "seq axis", "s"),
        node("Concat", "b single single s", "split", axis=0),
        node("Reshape", "x split", "x4"),
        node("Concat", "b four single s", "expanded", axis=0),
        node("Expand", "x4 expanded", "e"),
        node("Mul", "b four", "rows"),
        node("Concat", "rows single s", "flat", axis=0),
        node("Reshape", "e flat", "m"),
        node("Concat", "b four open s", "back", axis=0),
        node("Reshape", "m back", "y"),
    ]
    constants = {"zero": 0, "one": 1, "axis": [0], "four": [4], "single": [1], "open": [-1]}
    return model_of(nodes, {"x": ["batch", "seq"]}, ["y"], constants)


def rows_model() -> onnx.ModelProto:
    """Builds a matmul whose number of rows is the broadcast of `p * q` and `m`."""
    nodes = [node("Reshape", "a r", "a2"), node("Add", "a2 b", "c"), node("MatMul", "c w", "d"), node("Relu", "d", "y")]
    return model_of(nodes, {"a": ["p", "q", 8], "b": ["m", 8]}, ["y"], ROWS)


def area_model() -> onnx.ModelProto:
    """Builds a model whose Reshape merges height and width, and infers the number of channels as `h * w * 6 // (h * w)`, which
    is 6. A matmul follows."""
    nodes = [
        node("Shape", "x", "hw", start=2),
        node("ReduceProd", "hw", "area", keepdims=1),
        node("Concat", "keep open area", "t", axis=0),
        node("Reshape", "x t", "flat"),
        node("Transpose", "flat", "last", perm=[0, 2, 1]),
        node("MatMul", "last w", "y"),
    ]
    weights = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    return model_of(nodes, {"x": ["n", 6, "h", "w"]}, ["y"], {"keep": [0], "open": [-1], "w": weights})


@pytest.mark.parametrize(("make", "dims"), [(mask_model, "[batch, 4, 1, seq]"), (area_model, "[n, h * w, 4]")])
def test_inferred_reshape_dim_is_an_exact_quotient(make: object, dims: str) -> None:
    module = pliant.frontend.onnx.from_onnx(make())  # type: ignore[operator]
    info = module["main"].ret_struct_info
    assert str(list(info.shape.values)) == dims


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (1, 7), (2, 0)])
def test_masks_of_all_sizes(shape: tuple[int, int]) -> None:
    model, x = mask_model(), np.random.default_rng(2).normal(size=shape).astype(np.float32)
    [result] = pliant.compile(model).run(None, {"x": x})
    np.testing.assert_array_equal(result, np.broadcast_to(x[:, None, None], (shape[0], 4, 1, shape[1])))


@pytest.mark.parametrize(("p", "q", "m"), [(2, 3, 6), (1, 1, 5), (2, 3, 1), (1, 1, 1), (0, 3, 0), (1, 1, 0)])
def test_broadcast_rows(p: int, q: int, m: int) -> None:
    rng = np.random.default_rng(3)
    feeds = {"a": rng.normal(size=(p, q, 8)).astype(np.float32), "b": rng.normal(size=(m, 8)).astype(np.float32)}
    [result] = pliant.compile(rows_model()).run(None, feeds)
    expected = np.maximum((feeds["a"].reshape(-1, 8) + feeds["b"]) @ ROWS["w"], 0)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)


def test_rows_that_do_not_broadcast_are_an_error() -> None:
    feeds = {"a": np.ones((2, 3, 8), np.float32), "b": np.ones((5, 8), np.float32)}
    with pytest.raises(pliant.ShapeError, match="cannot be broadcast together"):
        pliant.compile(rows_model()).run(None, feeds)


def test_loop_functions_take_conditional_sizes_as_arguments() -> None:
    module = relax.get_pipeline("zero")(pliant.frontend.onnx.from_onnx(rows_model()))
    functions = [f for _, f in module.functions_items() if isinstance(f, tir.PrimFunc)]
    assert functions
    for function in functions:
        for buffer in function.buffer_map.values():
            assert all(isinstance(dim, (tir.Var, tir.IntImm, tir.Mul)) for dim in buffer.shape), function.script()


def test_area_model_agrees_with_the_reference() -> None:
    model, x = area_model(), np.random.default_rng(4).normal(size=(2, 6, 3, 5)).astype(np.float32)
    [expected] = ReferenceEvaluator(model).run(None, {"x": x})
    [result] = pliant.compile(model).run(None, {"x": x})
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)
