"""Tests sizes that ONNX models compute with floats and powers, and sizes that are 0, -1 or too large."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import pliant
from pliant.frontend.onnx import check, from_onnx

from onnx_models import FLOAT, INT64, model_of, node

CONSTANTS = {f"c{i}": np.array([i]) for i in (0, 1, 2, 4)} | {"minus": np.array([-1]), "two": np.array([2])}
IMAGE = {"x": ["n", 3, "h", "w"]}


def shape_of(model: onnx.ModelProto) -> str:
    """Returns the type of the model's result as the compiler infers it."""
    return str(from_onnx(model)["main"].ret_struct_info)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def result(model: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(model.run(None, {"x": x})[0])


def scaled(factor: Any, operator: str, rounding: str | None) -> onnx.ModelProto:
    """Builds a model that resizes an image as exporters write it: its sizes are converted to
    floats, multiplied, and converted back.
    """
    nodes = [
        node("Shape", "x", "s"),
        node("Slice", "s c2 c4", "hw"),
        node("Cast", "hw", "f", to=FLOAT),
        node(operator, "f factor", "g"),
        node(rounding or "Identity", "g", "r"),
        node("Cast", "r", "i", to=INT64),
        node("Slice", "s c0 c2", "nc"),
        node("Concat", "nc i", "sizes", axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest"),
    ]
    return model_of(nodes, IMAGE, ["y"], CONSTANTS | {"factor": np.array(factor, np.float32)})


@pytest.mark.parametrize(
    ("factor", "operator", "rounding", "shown", "of"),
    [
        (0.5, "Mul", "Floor", "h // 2, w // 2", (2, 3)),
        (2.0, "Mul", None, "h * 2, w * 2", (10, 14)),
        (32.0, "Div", "Ceil", "(h + 31) // 32, (w + 31) // 32", (1, 1)),
        ([2.0, 1.5], "Mul", "Floor", "h * 2, w + w // 2", (10, 10)),
        (1.0, "Sub", None, "h - 1, w - 1", (4, 6)),
    ],
)
def test_sizes_stay_symbols_through_floats(
    factor: Any, operator: str, rounding: str | None, shown: str, of: tuple[int, int]
) -> None:
    model = scaled(factor, operator, rounding)
    assert f"(n, 3, {shown})" in shape_of(model)
    assert result(pliant.compile(model), ones(2, 3, 5, 7)).shape == (2, 3, *of)


def test_sizes_that_floats_round() -> None:
    # 0.3f is slightly more than 0.3, but its product with 10 is rounded to 3.
    model = scaled(0.3, "Mul", "Ceil")
    assert "h" not in shape_of(model)
    assert result(pliant.compile(model), ones(1, 3, 10, 20)).shape == (1, 3, 3, 6)


def test_scales_that_are_quotients_of_sizes_are_those_sizes() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Shape", "like", "t"),
        node("Slice", "t c2 c4", "hw"),
        node("Slice", "s c0 c2", "nc"),
        node("Concat", "nc hw", "to", axis=0),
        node("Cast", "to", "above", to=FLOAT),
        node("Cast", "s", "below", to=FLOAT),
        node("Div", "above below", "scales"),
        helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest"),
    ]
    model = model_of(nodes, IMAGE | {"like": ["n", 8, "hh", "ww"]}, ["y"], CONSTANTS)
    assert "(n, 3, hh, ww)" in shape_of(model)
    # In floats 41 * (55 / 41) is less than 55.
    y = pliant.compile(model).run(None, {"x": ones(1, 3, 41, 2), "like": ones(1, 8, 55, 6)})[0]
    assert np.asarray(y).shape == (1, 3, 55, 6)


def test_scales_multiply_in_their_type() -> None:
    fixed = [helper.make_node("Resize", ["x", "", "scale"], ["y"], mode="nearest")]
    model = pliant.compile(model_of(fixed, {"x": ["n"]}, ["y"], {"scale": np.array([0.7], np.float32)}))
    given = pliant.compile(model_of(fixed, {"x": ["n"], "scale": (FLOAT, [1])}, ["y"]))
    for size, scale, of in ((10, 0.7, 7), (41, 55 / 41, 55), (3, 1 / 3, 1)):
        y = given.run(None, {"x": ones(size), "scale": np.array([scale], np.float32)})[0]
        assert np.asarray(y).shape == (of,)
    assert result(model, ones(10)).shape == (7,)


def test_powers_ranges_and_bounds_of_sizes_stay_symbols() -> None:
    def expanded(*nodes: Any) -> str:
        made = [node("Shape", "x", "s"), node("Gather", "s c1", "k"), *nodes, node("ConstantOfShape", "to", "y")]
        return shape_of(model_of(made, {"x": ["n", "k"]}, ["y"], CONSTANTS))

    assert "(k * k,)" in expanded(node("Pow", "k two", "to"))
    assert "T.max(k, 2)" in expanded(helper.make_node("Clip", ["k", "c2"], ["to"])) or "T.max(2, k)" in expanded(
        helper.make_node("Clip", ["k", "c2"], ["to"])
    )
    assert "(k * 2 + 1,)" in expanded(node("Add", "k k", "kk"), node("Add", "kk c1", "to"))
    axes = [
        node("Shape", "x", "s"),
        node("Size", "s", "rank"),
        node("Range", "one rank step", "axes"),
        node("ReduceSum", "x axes", "y", keepdims=0),
    ]
    scalars = {"one": np.array(1), "step": np.array(1)}
    assert shape_of(model_of(axes, {"x": ["n", "k", "m"]}, ["y"], scalars)).startswith("R.Tensor((n,)")


def test_branches_of_several_ranks_have_the_declared_rank() -> None:
    def branch(name: str, made: Any) -> onnx.GraphProto:
        return helper.make_graph([made], name, [], [onnx.ValueInfoProto(name=made.output[0])])

    then, other = branch("t", node("Squeeze", "x c1", "t")), branch("e", node("Identity", "x", "e"))
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s c1", "k"),
        node("Equal", "k c1", "c"),
        node("If", "c", "r", then_branch=then, else_branch=other),
        node("Relu", "r", "y"),
    ]
    model = model_of(nodes, {"x": ["n", "k"]}, ["y"], CONSTANTS)
    either = pliant.compile(model)
    assert result(either, ones(2, 1)).shape == (2,) and result(either, ones(2, 3)).shape == (2, 3)
    model.graph.value_info.append(helper.make_tensor_value_info("r", FLOAT, ["n", "k"]))
    assert "(n, k)" in shape_of(model)
    ranked = pliant.compile(model)
    assert result(ranked, ones(2, 3)).shape == (2, 3)
    with pytest.raises(pliant.PliantError, match="must be a float32 tensor of 2 dims"):
        result(ranked, ones(2, 1))


# ---- sizes that are 0, -1 or too large ----


def test_computed_size_0_next_to_minus_1() -> None:
    def reshaped(**attributes: int) -> Any:
        nodes = [
            node("Shape", "x", "s"),
            node("Gather", "s c2", "c"),
            node("Concat", "c minus", "to", axis=0),
            node("Reshape", "x to", "y", **attributes),
        ]
        return pliant.compile(model_of(nodes, {"x": ["a", "b", "c"]}, ["y"], CONSTANTS))

    model = reshaped()
    assert result(model, ones(2, 3, 4)).shape == (4, 6)
    assert result(model, ones(2, 0, 4)).shape == (4, 0)
    assert result(model, ones(0, 3, 0)).shape == (0, 0)
    with pytest.raises(pliant.PliantError, match="a dim of the new shape is 0 at run time, which means the input's dim 2") as told:
        result(model, ones(2, 3, 0))
    assert "Reshape 'y'" in str(told.value)
    assert result(reshaped(allowzero=1), ones(2, 3, 0)).shape == (0, 6)


def test_input_shapes_with_cancelling_dims() -> None:
    def given(**attributes: int) -> Any:
        nodes = [node("Reshape", "x to", "y", **attributes)]
        return pliant.compile(model_of(nodes, {"x": ["a", "b"], "to": (INT64, [2])}, ["y"]))

    def shape(model: Any, x: np.ndarray, *to: int) -> tuple[int, ...]:
        return np.asarray(model.run(None, {"x": x, "to": np.array(to)})[0]).shape

    model, exact = given(), given(allowzero=1)
    assert shape(model, ones(2, 3), 0, -1) == (2, 3) and shape(model, ones(0, 3), 0, -1) == (0, 3)
    assert shape(model, ones(0, 3), 5, -1) == (5, 0) and shape(model, ones(0, 3), -1, 0) == (0, 3)
    assert shape(exact, ones(2, 0), 0, 2) == (0, 2) and shape(exact, ones(2, 0), 3, -1) == (3, 0)
    with pytest.raises(pliant.PliantError, match="both 0 and -1"):
        shape(exact, ones(2, 0), 0, -1)
    both = model_of([node("Reshape", "x to", "y", allowzero=1)], {"x": ["a"]}, ["y"], {"to": np.array([0, -1])})
    assert "both 0 and -1" in str(check(both))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([helper.make_node("Resize", ["x", "", "", "less"], ["y"], mode="nearest")], "the numbers in 'sizes' must be at least 0, but one is -1"),
        ([node("Squeeze", "less", "k"), node("HannWindow", "k", "y")], "the size in input 0 must be at least 0, but is -1"),
        ([node("ConstantOfShape", "less", "y")], "is negative"),
    ],
    ids=["Resize", "HannWindow", "ConstantOfShape"],
)
def test_negative_sizes_name_their_node(made: list[Any], words: str) -> None:
    nodes = [node("Shape", "x", "s"), node("Sub", "s two", "less"), *made]
    model = pliant.compile(model_of(nodes, {"x": ["n"]}, ["y"], CONSTANTS))
    assert [result(model, ones(n)).shape for n in (5, 2)] == [(3,), (0,)]
    with pytest.raises(pliant.PliantError) as told:
        result(model, ones(1))
    assert words in str(told.value) and f"{made[-1].op_type} 'y'" in str(told.value)


def test_sizes_beyond_int32_are_reported() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Cast", "s", "i", to=TensorProto.INT32),
        node("Mul", "i large", "j"),
        node("Cast", "j", "y", to=INT64),
    ]
    model = pliant.compile(model_of(nodes, {"x": ["n"]}, ["y"], {"large": np.array([2**30], np.int32)}))
    assert result(model, ones(1)) == [2**30]
    with pytest.raises(pliant.PliantError, match="the result 2147483648 does not fit in int32") as told:
        result(model, ones(2))
    assert "Mul 'j'" in str(told.value)
