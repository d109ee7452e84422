"""Tests the checks of the operands of ONNX nodes: their element types, and the number of elements of additional operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx_models import BOOL, FLOAT, INT64, model_of, node

import pliant
from pliant.error import AssertionFailed, CompileError
from pliant.frontend.onnx import check


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("made", "types", "words"),
    [
        (node("Not", "x", "y"), [FLOAT], "input 0 is of float32, but opset 18 accepts bool"),
        (node("And", "x z", "y"), [FLOAT, FLOAT], "input 0 is of float32, but opset 18 accepts bool"),
        (node("Floor", "x", "y"), [INT64], "input 0 is of int64, but opset 18 accepts float32"),
        (node("Abs", "x", "y"), [BOOL], "input 0 is of bool, but opset 18 accepts"),
        (node("Neg", "x", "y"), [TensorProto.UINT8], "input 0 is of uint8, but opset 18 accepts"),
        (node("BitShift", "x z", "y", direction="LEFT"), [INT64, INT64], "opset 18 accepts uint8"),
        (node("Clip", "x", "y"), [BOOL], "input 0 is of bool"),
        (node("Add", "x z", "y"), [FLOAT, INT64], "inputs 0 and 1 must be of one type, but are of float32 and int64"),
        (node("Concat", "x x z", "y", axis=0), [FLOAT, INT64], "inputs 0 and 2 must be of one type"),
        (node("Gather", "x z", "y"), [FLOAT, FLOAT], "input 1 is of float32, but opset 18 accepts int32, int64"),
    ],
)
def test_element_types_must_match_the_operator(made: Any, types: list[int], words: str) -> None:
    model = model_of([made], {name: (ty, ["n"]) for name, ty in zip("xz", types, strict=False)}, ["y"])
    with pytest.raises(CompileError, match=words):
        pliant.compile(model)
    assert words in str(check(model))


def test_errors_name_the_opset_that_supports_a_type() -> None:
    inputs = {"x": (TensorProto.INT8, ["n"])}
    with pytest.raises(CompileError, match="opset 14 accepts it: onnx.version_converter"):
        pliant.compile(model_of([node("Add", "x x", "y")], inputs, ["y"], opset=13))
    model = pliant.compile(model_of([node("Add", "x x", "y")], inputs, ["y"], opset=14))
    assert model(np.ones(2, np.int8)).numpy().tolist() == [2, 2]


SPREAD = [node("PRelu", "x s", "y"), node("LayerNormalization", "x s", "y", axis=0), node("Gemm", "x w s", "y")]


@pytest.mark.parametrize("made", SPREAD)
def test_broadcast_parameters_do_not_grow_the_tensor(made: Any) -> None:
    inputs = {"x": ["n", 3], "w": [3, 3]}
    feeds = {"x": ones(2, 3), "w": ones(3, 3)}
    for shape, words in (([5, 2, 3], "has 3 dims, but the tensor to which it broadcasts has 2"), ([1, 4], "has a dim of size 4, .* dim of size 3")):
        with pytest.raises(CompileError, match=words):
            pliant.compile(model_of([made], {**inputs, "s": shape}, ["y"]))
    model = pliant.compile(model_of([made], {**inputs, "s": ["m", 3]}, ["y"]))
    for rows in (1, 2):
        assert model.run(None, {**feeds, "s": ones(rows, 3)})[0].shape == (2, 3)
    for x, rows in ((2, 3), (1, 3), (3, 0)):
        with pytest.raises(AssertionFailed, match=f"has a dim of size {rows}, .* dim of size {x}\n  at {made.op_type}"):
            model.run(None, {**feeds, "x": ones(x, 3), "s": ones(rows, 3)})


CHANNELS = [
    node("Conv", "x w s", "y"),
    node("BatchNormalization", "x s s s s", "y"),
    node("InstanceNormalization", "x s s", "y"),
    node("GroupNormalization", "x s s", "y", num_groups=1),
]


@pytest.mark.parametrize("made", CHANNELS)
def test_channel_parameters_have_one_value_per_channel(made: Any) -> None:
    def model(size: Any) -> Any:
        return model_of([made], {"x": ["n", 2, 4, 4], "s": [size]}, ["y"], {"w": ones(2, 2, 1, 1)}, opset=21)

    for size in (1, 3):
        with pytest.raises(CompileError, match=f"has {size} elements, but there are 2"):
            pliant.compile(model(size))
    assert pliant.compile(model(2))(ones(1, 2, 4, 4), ones(2)).shape == (1, 2, 4, 4)


def test_per_axis_scales_have_one_value_per_element() -> None:
    model = pliant.compile(model_of([node("QuantizeLinear", "x s", "y", axis=1)], {"x": ["n", "c"], "s": ["k"]}, ["y"]))
    assert model(ones(2, 3), ones(3)).shape == (2, 3)
    with pytest.raises(AssertionFailed, match="has 1 elements, but the quantized axis has 3"):
        model(ones(2, 3), ones(1))


@pytest.mark.parametrize("pads", [[0, -(2**63), 0, 0], [0, -(2**62), 0, -(2**62)], [2**62, 0, 0, 0]])
@pytest.mark.parametrize("mode", ["constant", "wrap", "edge", "reflect"])
def test_pads_beyond_the_size_limit_are_rejected(pads: list[int], mode: str) -> None:
    made = node("Pad", "x p", "y", mode=mode)
    with pytest.raises(CompileError, match="'pads' contains .* whose absolute value exceeds"):
        pliant.compile(model_of([made], {"x": ["n", "m"]}, ["y"], {"p": np.array(pads)}))
    model = pliant.compile(model_of([made], {"x": ["n", "m"], "p": (INT64, [4])}, ["y"]))
    with pytest.raises(AssertionFailed, match="'pads' contains .* whose absolute value exceeds"):
        model(ones(2, 3), np.array(pads))


def test_non_constant_pads_have_two_values_per_axis() -> None:
    known = model_of([node("Pad", "x p", "y")], {"x": ["n", "m"], "p": (INT64, [3])}, ["y"])
    with pytest.raises(CompileError, match="'pads' has 3 numbers, but must have 4"):
        pliant.compile(known)
    named = model_of([node("Pad", "x p  a", "y")], {"x": ["n", "m"], "p": (INT64, [2])}, ["y"], {"a": np.array([1, 1])})
    named.graph.node[0].input[:] = ["x", "p", "", "a"]
    with pytest.raises(CompileError, match="'pads' has 2 numbers, but must have 4"):
        pliant.compile(named)


@pytest.mark.parametrize("shape", [[-(2**63), 4], [4], [0, 4], [2**62, 4]])
def test_impossible_output_shapes_are_rejected(shape: list[int]) -> None:
    made = node("ConvTranspose", "x w", "y", output_shape=shape)
    with pytest.raises(CompileError, match="output_shape|pads"):
        pliant.compile(model_of([made], {"x": [1, 2, 5, 5]}, ["y"], {"w": ones(2, 2, 3, 3)}))


@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
def test_same_padding_of_a_kernel_below_its_stride(side: str) -> None:
    made = node("ConvTranspose", "x w", "y", auto_pad=side, strides=[2])
    model = pliant.compile(model_of([made], {"x": [1, 1, "n"]}, ["y"], {"w": ones(1, 1, 1)}))
    assert model(ones(1, 1, 3)).numpy().tolist() == [[[1, 0, 1, 0, 1, 0]]]


def test_argmax_of_an_empty_axis_is_an_error() -> None:
    model = model_of([node("ArgMax", "e", "y", axis=0)], {"x": ["n"]}, ["y"], {"e": ones(0, 3)})
    with pytest.raises(CompileError, match="ArgMax 'y': axis 0 of input 0 has size 0"):
        pliant.compile(model)
    assert "axis 0 of input 0 has size 0" in str(check(model))
