"""Tests the requirements of ONNX nodes on sizes and values: a violation is an error at compile time or at run time that
names its node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import BOOL, FLOAT, INT64, model_of, node

import pliant
from pliant.error import AssertionFailed, BoundsError, CompileError, DivisionError, PliantError, ShapeError, VMError


# Sizes that must be wrong are symbols of the file for which only one size is valid.
pytestmark = pytest.mark.filterwarnings("ignore:.* would be fixed")


def failure(model: Any, feeds: dict[str, Any]) -> PliantError:
    """Returns the error of a model, at compile time or at run time."""
    with pytest.raises(PliantError) as told:
        pliant.compile(model, allow_specialization=True).run(None, feeds)
    return told.value


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def of_run(values: list[int], constant: bool, name: str = "c") -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Returns parts of a model that provide a vector: inputs, constants, and values to feed. If `constant` is set, the vector is
    a constant. Otherwise it is an input, and its elements are among the values to feed.
    """
    array = np.array(values, np.int64)
    return ({}, {name: array}, {}) if constant else ({name: (INT64, [len(values)])}, {}, {name: array})


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("parts", [[3, 3], [1, 1], [5, 0], [0, 0]])
def test_split_lengths_must_cover_the_axis(parts: list[int], constant: bool) -> None:
    inputs, constants, feeds = of_run(parts, constant)
    model = model_of([node("Split", "x c", "y z", name="cut")], {"x": ["n", 1], **inputs}, ["y", "z"], constants)
    error = failure(model, {"x": ones(4, 1), **feeds})
    assert isinstance(error, AssertionFailed), error
    assert f"the lengths in 'split' sum to {sum(parts)}, but the axis that is split has 4 elements\n  at Split 'cut'" in str(error)
    fits = model_of([node("Split", "x c", "y z")], {"x": ["n", 1], **inputs}, ["y", "z"], constants)
    assert [p.shape for p in pliant.compile(fits, allow_specialization=True).run(None, {"x": ones(sum(parts), 1), **feeds})] == [(p, 1) for p in parts]


def test_split_attribute_lengths_must_cover_the_axis() -> None:
    model = model_of([node("Split", "x", "y z", split=[3, 3])], {"x": ["n"]}, ["y", "z"], opset=11)
    assert "sum to 6, but the axis that is split has 4 elements" in str(failure(model, {"x": ones(4)}))
    for split, words in (([3, 3], "sum to 6, but the axis that is split has 4 elements"), ([5, -1], "length -1"), ([4], "2 outputs")):
        known = model_of([node("Split", "x", "y z", split=split)], {"x": [4]}, ["y", "z"], opset=11)
        with pytest.raises(CompileError, match=words):
            pliant.compile(known)


@pytest.mark.parametrize("axis", [5, -3, 2**62])
def test_non_constant_axis_must_be_in_range(axis: int) -> None:
    cumsum = model_of([node("CumSum", "x a", "y")], {"x": ["n", "m"], "a": (INT64, [])}, ["y"])
    error = failure(cumsum, {"x": ones(3, 2), "a": np.array(axis)})
    assert f"axis {axis} is out of range for rank 2\n  at CumSum 'y'" in str(error)
    squeeze = model_of([node("Squeeze", "x a", "y")], {"x": ["n", 1], "a": (INT64, [1])}, ["y"])
    assert "out of range for rank 2" in str(failure(squeeze, {"x": ones(3, 1), "a": np.array([axis])}))


STATIC = {
    "kernel": (
        node("Conv", "x w", "y", kernel_shape=[5, 5]),
        {"x": [1, 1, 6, 6]},
        {"w": ones(1, 1, 3, 3)},
        "'kernel_shape' contains 5, but the size of the weight (input 1) in that dim is 3",
    ),
    "lstm": (
        node("LSTM", "x w r", "y", hidden_size=7),
        {"x": ["t", 2, 3]},
        {"w": ones(1, 8, 3), "r": ones(1, 8, 2)},
        "'hidden_size' is 7, but the last dim of the recurrence weights (input 2) is 2",
    ),
    "gru": (
        node("GRU", "x w r", "y", hidden_size=7),
        {"x": ["t", 2, 3]},
        {"w": ones(1, 6, 3), "r": ones(1, 6, 2)},
        "'hidden_size' is 7",
    ),
    "resize twice": (
        helper.make_node("Resize", ["x", "", "s"], ["y"], axes=[0, 0]),
        {"x": [2, 2]},
        {"s": np.array([2, 2], np.float32)},
        "contains axis 0 twice",
    ),
    "resize policy": (
        helper.make_node("Resize", ["x", "", "s"], ["y"], keep_aspect_ratio_policy="foo"),
        {"x": [2, 2]},
        {"s": np.array([2, 2], np.float32)},
        "keep_aspect_ratio_policy",
    ),
    "one hot": (
        node("OneHot", "i d v", "y"),
        {"i": (INT64, ["n"])},
        {"d": np.array(3), "v": np.arange(3.0)},
        "'values' (input 2) has 3 elements, but must have 2",
    ),
    "tile": (node("Tile", "x c", "y"), {"x": ["n", 2]}, {"c": np.array([2])}, "'repeats' has 1 numbers, but the input has 2 dims"),
    "tile below 0": (node("Tile", "x c", "y"), {"x": ["n", 2]}, {"c": np.array([-1, 1])}, "one is -1"),
    "pad": (node("Pad", "x c", "y"), {"x": [3, 2]}, {"c": np.array([-2, 0, -2, 0])}, "negative pads remove 4 elements from an axis of size 3"),
    "top k": (node("TopK", "x c", "y z"), {"x": [3]}, {"c": np.array([5])}, "k is 5, but the axis has 3"),
    "range step": (
        node("Range", "a b c", "y"),
        {},
        {"a": np.array(0), "b": np.array(9), "c": np.array(0)},
        "the step 'delta' (input 2) must not be 0",
    ),
    "range wraps": (
        node("Range", "a b c", "y"),
        {},
        {"a": np.array(-(2**63)), "b": np.array(2**63 - 1), "c": np.array(1)},
        "overflows int64",
    ),
}


@pytest.mark.parametrize("case", STATIC)
def test_known_violations_are_compile_errors(case: str) -> None:
    made, inputs, constants, words = STATIC[case]
    with pytest.raises(CompileError) as told:
        pliant.compile(model_of([made], inputs, [made.output[0]], constants))
    assert words in str(told.value) and f"{made.op_type} '{made.output[0]}'" in str(told.value)


AT_RUN: dict[str, tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "resize scale 0": (
        helper.make_node("Resize", ["x", "", "s"], ["y"]),
        {"x": ["n", 2], "s": [2]},
        {},
        {"x": ones(2, 2), "s": np.array([0, 1], np.float32)},
        "'scales' must be positive and finite",
    ),
    "resize scale nan": (
        helper.make_node("Resize", ["x", "", "s"], ["y"]),
        {"x": ["n", 2], "s": [2]},
        {},
        {"x": ones(2, 2), "s": np.array([np.nan, 1], np.float32)},
        "'scales' must be positive and finite",
    ),
    "resize scales": (
        helper.make_node("Resize", ["x", "", "s"], ["y"]),
        {"x": ["n", 2], "s": ["k"]},
        {},
        {"x": ones(2, 2), "s": ones(3)},
        "has 3 numbers, but 2 axes are resized",
    ),
    "one hot": (
        node("OneHot", "i d v", "y"),
        {"i": (INT64, ["n"]), "v": ["k"]},
        {"d": np.array(3)},
        {"i": np.array([1]), "v": ones(3)},
        "'values' (input 2) has 3 elements",
    ),
    "pad": (
        node("Pad", "x c", "y"),
        {"x": ["n", 2], "c": (INT64, [4])},
        {},
        {"x": ones(3, 2), "c": np.array([-5, 0, 0, 0])},
        "negative pads remove 5 elements from an axis of size 3",
    ),
    "pad of known widths": (
        node("Pad", "x c", "y"),
        {"x": ["n", 2]},
        {"c": np.array([-5, 0, 0, 0])},
        {"x": ones(3, 2)},
        "negative pads remove 5 elements from an axis of size 3",
    ),
    "top k": (
        node("TopK", "x c", "y z"),
        {"x": ["n"], "c": (INT64, [1])},
        {},
        {"x": ones(3), "c": np.array([5])},
        "k is 5, but the axis has 3",
    ),
    "top known k": (
        node("TopK", "x c", "y z"),
        {"x": ["n"]},
        {"c": np.array([5])},
        {"x": ones(3)},
        "k is 5, but the axis has 3",
    ),
    "range step": (
        node("Range", "a b c", "y"),
        {k: (INT64, []) for k in "abc"},
        {},
        {"a": np.array(0), "b": np.array(9), "c": np.array(0)},
        "the step 'delta' (input 2) must not be 0",
    ),
    "range wraps": (
        node("Range", "a b c", "y"),
        {k: (INT64, []) for k in "abc"},
        {},
        {"a": np.array(-(2**63)), "b": np.array(2**63 - 1), "c": np.array(1)},
        "overflows int64",
    ),
}


@pytest.mark.parametrize("case", AT_RUN)
def test_unknown_violations_are_run_time_errors(case: str) -> None:
    made, inputs, constants, feeds, words = AT_RUN[case]
    error = failure(model_of([made], inputs, [made.output[0]], constants), feeds)
    assert isinstance(error, AssertionFailed), error
    assert words in str(error) and f"\n  at {made.op_type} '{made.output[0]}'" in str(error)


def test_directions_of_a_scan_are_0_or_1() -> None:
    infos = [helper.make_tensor_value_info(name, FLOAT, ["m"]) for name in ("s", "v", "t", "o")]
    body = helper.make_graph([node("Add", "s v", "t"), node("Identity", "t", "o")], "body", infos[:2], infos[2:])
    for key in ("scan_input_directions", "scan_output_directions"):
        made = node("Scan", "s0 x", "y z", body=body, num_scan_inputs=1, **{key: [3]})
        with pytest.raises(CompileError, match=f"'{key}' must contain only 0 .forward. and 1 .backward., but contains 3"):
            pliant.compile(model_of([made], {"s0": ["m"], "x": ["t", "m"]}, ["y", "z"]))


def test_run_time_errors_name_the_node() -> None:
    x, i = np.array([1, 2]), np.array([0, 1])
    divide = model_of([node("Div", "x i", "y", name="over")], {"x": (INT64, ["n"]), "i": (INT64, ["n"])}, ["y"])
    error = failure(divide, {"x": x, "i": i})
    assert isinstance(error, DivisionError) and "\n  at Div 'over'" in str(error)
    gather = model_of([node("Gather", "x i", "y", name="rows")], {"x": (INT64, ["n"]), "i": (INT64, ["m"])}, ["y"])
    error = failure(gather, {"x": x, "i": np.array([7])})
    assert isinstance(error, BoundsError) and "\n  at Gather 'rows'" in str(error)
    nodes = [node("Div", "x i", "d", name="over"), node("Mul", "d d", "y", name="square")]
    fused = model_of(nodes, {"x": (INT64, ["n"]), "i": (INT64, ["n"])}, ["y"])
    assert "\n  at Div 'over' or Mul 'square'" in str(failure(fused, {"x": x, "i": i}))
    pool = model_of([node("LpPool", "x", "y", kernel_shape=[9], name="pool")], {"x": [1, 1, "n"]}, ["y"])
    assert "\n  at LpPool 'pool'" in str(failure(pool, {"x": ones(1, 1, 3)}))
    # Errors of inputs name the input itself.
    error = failure(model_of([node("Relu", "x", "y")], {"x": ["n", 4]}, ["y"]), {"x": ones(2, 3)})
    assert "'x' dim 1" in str(error) and "at Relu" not in str(error)


def test_errors_of_a_saved_program_name_the_node(tmp_path: Any) -> None:
    divide = model_of([node("Div", "x i", "y", name="over")], {"x": (INT64, ["n"]), "i": (INT64, ["n"])}, ["y"])
    pliant.compile(divide).save(tmp_path / "m.plx")
    with pytest.raises(DivisionError, match="at Div 'over'"):
        pliant.load(tmp_path / "m.plx").run(None, {"x": np.array([1]), "i": np.array([0])})


def test_errors_of_sequences_name_the_node() -> None:
    info = helper.make_tensor_sequence_value_info("s", FLOAT, ["k"])
    for made, extra, feeds, words in (
        (node("SequenceAt", "s i", "y"), True, {"s": [ones(1)], "i": np.array(2)}, "position 2 is out of range"),
        (node("ConcatFromSequence", "s", "y", axis=0), False, {"s": []}, "cannot be concatenated"),
    ):
        inputs = [info, helper.make_tensor_value_info("i", INT64, [])][: 2 if extra else 1]
        graph = helper.make_graph([made], "g", inputs, [onnx.ValueInfoProto(name="y")])
        error = failure(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), feeds)
        assert words in str(error) and f"\n  at {made.op_type} 'y'" in str(error)


def test_results_do_not_alias_inputs() -> None:
    branch = {
        f"{name}_branch": helper.make_graph([node("Identity", "x", name)], name, [], [onnx.ValueInfoProto(name=name)])
        for name in ("then", "else")
    }
    nodes = [node("Identity", "x", "y"), node("Reshape", "x s", "z"), node("If", "c", "w", **branch)]
    model = pliant.compile(model_of(nodes, {"x": ["n"], "c": (BOOL, [])}, ["y", "z", "w"], {"s": np.array([1, -1])}))
    x = ones(3)
    for results in (model.run(None, {"x": x, "c": np.array(True)}), [r.numpy() for r in model(x, np.array(True))]):
        x[:] = 7
        assert all((result == 1).all() for result in results)
        x[:] = 1


# ---- ranks known only at run time ----


def test_axes_and_shapes_of_any_length() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3)
    cases: list[tuple[Any, list[Any], Any]] = [
        (node("Squeeze", "x c", "y"), [1, "b", 1, "d"], [([0], (2, 1, 3)), ([0, -2], (2, 3)), ([], (1, 2, 1, 3))]),
        (node("Unsqueeze", "x c", "y"), [1, "b", 1, "d"], [([0], (1, 1, 2, 1, 3)), ([1, -1], (1, 1, 2, 1, 3, 1))]),
        (node("Reshape", "x c", "y"), ["a", "b", "e", "d"], [([6], (6,)), ([-1, 2], (3, 2)), ([0, 0, -1], (1, 2, 3))]),
        (
            node("Expand", "x c", "y"),
            ["a", "b", "e", "d"],
            [([1], x.shape), ([2, 1, 1, 2, 5, 1], (2, 1, 1, 2, 5, 3)), ([2, 3], (1, 2, 2, 3))],
        ),
        (node("ReduceSum", "x c", "y", keepdims=0), ["a", "b", "e", "d"], [([1], (1, 1, 3)), ([0, -1], (2, 1))]),
    ]
    for made, dims, runs in cases:
        model = pliant.compile(model_of([made], {"x": dims, "c": (INT64, ["k"])}, ["y"]))
        for values, shape in runs:
            feeds = {"x": x, "c": np.array(values, np.int64)}
            (y,) = model.run(None, feeds)
            assert y.shape == shape, (made.op_type, values)
            if made.op_type == "Expand":
                np.testing.assert_array_equal(y, np.broadcast_to(x, shape))
            elif made.op_type != "ReduceSum":
                np.testing.assert_array_equal(y.ravel(), x.ravel())
            else:
                np.testing.assert_array_equal(y, x.sum(tuple(values)))


def test_declared_ranks_after_unknown_ranks_are_used() -> None:
    nodes = [node("Reshape", "x c", "r"), node("Transpose", "r", "y", perm=[1, 0])]
    made = model_of(nodes, {"x": ["n"], "c": (INT64, ["k"])}, ["y"])
    made.graph.value_info.append(helper.make_tensor_value_info("r", FLOAT, ["p", "q"]))
    model = pliant.compile(made)
    (y,) = model.run(None, {"x": np.arange(6, dtype=np.float32), "c": np.array([2, 3])})
    np.testing.assert_array_equal(y, np.arange(6).reshape(2, 3).T)
    with pytest.raises(ShapeError, match="at Reshape 'r'"):
        model.run(None, {"x": ones(6), "c": np.array([6])})


def test_constants_of_a_shape_of_any_length() -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [2.0])
    model = pliant.compile(model_of([node("ConstantOfShape", "c", "y", value=value)], {"c": (INT64, ["k"])}, ["y"]))
    for shape in ((2, 3), (4,), ()):
        (y,) = model.run(None, {"c": np.array(shape, np.int64)})
        np.testing.assert_array_equal(y, np.full(shape, 2.0))


def test_gather_nd_through_any_number_of_axes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    model = pliant.compile(model_of([node("GatherND", "x i", "y")], {"x": ["a", "b", "c"], "i": (INT64, ["n", "q"])}, ["y"]))
    for index in ([[1], [0]], [[1, 2], [0, 1]], [[1, 2, 3], [0, 0, 0]]):
        (y,) = model.run(None, {"x": x, "i": np.array(index)})
        np.testing.assert_array_equal(y, np.stack([x[tuple(i)] for i in index]))
    for index, words in (([[0, 0, 0, 0]], "(input 1) is 4, but the data (input 0) has only 3 dims"), ([[], []], "at least")):
        error = failure_of(model, {"x": x, "i": np.array(index, np.int64).reshape(len(index), -1)})
        assert words in error and "at GatherND 'y'" in error


def failure_of(model: Any, feeds: dict[str, Any]) -> str:
    with pytest.raises(PliantError) as told:
        model.run(None, feeds)
    return str(told.value)


# ---- bounds known only at run time ----


def doubling(collects: bool) -> Any:
    """Builds a loop whose state doubles in each iteration. The loop optionally collects the
    states.
    """
    outputs = [("co", BOOL, []), ("t", FLOAT, None), ("o", FLOAT, None)][: 3 if collects else 2]
    infos = [helper.make_tensor_value_info(*i) for i in (("i", INT64, []), ("ci", BOOL, []), ("s", FLOAT, None))]
    nodes = [node("Identity", "ci", "co"), node("Concat", "s s", "t", axis=0), node("Identity", "s", "o")]
    body = helper.make_graph(nodes, "body", infos, [helper.make_tensor_value_info(*o) for o in outputs])
    names = "y z" if collects else "y"
    made = helper.make_node("Loop", ["m", "", "s0"], names.split(), name="double", body=body)
    return model_of([made], {"m": (INT64, []), "s0": ["n"]}, names.split())


def test_memory_limit_of_a_run() -> None:
    from pliant.runtime import held_bytes, memory_limit, set_memory_limit

    model = pliant.compile(doubling(collects=False))
    feeds = {"m": np.array(60), "s0": ones(1024)}
    before = memory_limit()
    set_memory_limit(held_bytes() + (16 << 20))
    try:
        with pytest.raises(VMError, match=r"out of memory: \d+ bytes are requested and \d+ bytes are in use.*(\n.*)*at Loop 'double'|Concat"):
            model.run(None, feeds)
        assert model.run(None, {**feeds, "m": np.array(3)})[0].shape == (8192,)
    finally:
        set_memory_limit(before)
    for wrong, kind in ((0, ValueError), (-1, ValueError), (2**63, ValueError), ("1G", TypeError), (True, TypeError)):
        with pytest.raises(kind, match="set_memory_limit"):
            set_memory_limit(wrong)  # type: ignore[arg-type]


def test_scan_outputs_of_unequal_shapes_fail_at_their_iteration() -> None:
    model = pliant.compile(doubling(collects=True))
    assert model.run(None, {"m": np.array(1), "s0": ones(2)})[1].shape == (1, 2)
    with pytest.raises(ShapeError, match=r"one is float32 \[2\] and the next float32 \[4\]\n  at Loop 'double'"):
        # More iterations than time or memory allow.
        model.run(None, {"m": np.array(2**60), "s0": ones(2)})


def test_scan_inputs_must_have_equal_lengths() -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Add", "a b", "s"), node("Add", "c s", "d"), node("Identity", "d", "e")],
        "body",
        [value(name, onnx.TensorProto.FLOAT, []) for name in ("c", "a", "b")],
        [value(name, onnx.TensorProto.FLOAT, []) for name in ("d", "e")],
    )
    scan = helper.make_node("Scan", ["c0", "x", "k"], ["last", "y"], body=body, num_scan_inputs=2)
    model = pliant.compile(model_of([scan], {"x": ["n"], "k": ["m"]}, ["y"], {"c0": np.float32(0)}))
    np.testing.assert_array_equal(model.run(None, {"x": ones(3), "k": ones(3)})[0], [2, 4, 6])
    with pytest.raises(pliant.PliantError, match="the scanned inputs have 3 and 4 slices"):
        model.run(None, {"x": ones(3), "k": ones(4)})
    with pytest.raises(pliant.PliantError, match="the scanned inputs have 3 and 4 slices"):
        pliant.compile(model_of([scan], {"x": [3], "k": [4]}, ["y"], {"c0": np.float32(0)}))


def test_squeeze_of_dims_that_are_1_at_run_time() -> None:
    squeezed = pliant.compile(model_of([node("Squeeze", "x", "t"), node("Relu", "t", "y")], {"x": ["a", 1, "b"]}, ["y"]))
    for shape in ((2, 1, 3), (1, 1, 3), (2, 1, 1), (1, 1, 1), (0, 1, 1)):
        assert squeezed.run(None, {"x": ones(*shape)})[0].shape == tuple(d for d in shape if d != 1)
