"""Tests symbols together with sizes known only at run time, in branches, and in inputs with a default value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import BOOL, FLOAT, INT64, model_of, node

import pliant


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def graph_of(nodes: list[onnx.NodeProto], inputs: list[tuple[str, int]], outputs: list[tuple[str, int]]) -> onnx.GraphProto:
    infos = [[helper.make_tensor_value_info(name, dtype, None) for name, dtype in side] for side in (inputs, outputs)]
    return helper.make_graph(nodes, "inner", *infos)


GOES_ON, TURN = [("go", BOOL)], [("i", INT64), ("goes", BOOL)]
# Nodes, inputs besides x, constants, and the feeds of the inputs.
Case = tuple[list[onnx.NodeProto], dict[str, tuple[int, list[int]]], dict[str, Any], dict[str, Any]]
BESIDE: dict[str, Case] = {
    "pad": (
        [helper.make_node("Pad", ["x", "k", "", "zero"], ["u"])],
        {"k": (INT64, [2])},
        {"zero": np.array([0])},
        {"k": np.array([1, 2])},
    ),
    "tile": (
        [node("Concat", "k one", "t", axis=0), node("Tile", "x t", "u")],
        {"k": (INT64, [1])},
        {"one": np.array([1])},
        {"k": np.array([3])},
    ),
    "expand": (
        [node("Concat", "k one one", "t", axis=0), node("Expand", "x t", "u")],
        {"k": (INT64, [1])},
        {"one": np.array([1])},
        {"k": np.array([3])},
    ),
    "reshape": (
        [
            node("Shape", "x", "q", start=1),
            node("Concat", "k rest q", "t", axis=0),
            node("Reshape", "x t", "u"),
        ],
        {"k": (INT64, [1])},
        {"rest": np.array([-1])},
        {"k": np.array([2])},
    ),
    "unique": ([node("Unique", "x", "u", axis=0)], {}, {}, {}),
    "sequence": (
        [node("SplitToSequence", "x k", "s", axis=0), node("SequenceAt", "s zero", "u")],
        {"k": (INT64, [])},
        {"zero": np.array(0)},
        {"k": np.array(3)},
    ),
    "sequence map": (
        [
            node("SplitToSequence", "x", "s", axis=0),
            node("SequenceMap", "s", "m", body=graph_of([node("Relu", "e", "o")], [("e", FLOAT)], [("o", FLOAT)])),
            node("ConcatFromSequence", "m", "u", axis=0),
        ],
        {},
        {},
        {},
    ),
    "loop": (
        [
            helper.make_node(
                "Loop",
                ["k", "yes", "x"],
                ["u"],
                body=graph_of(
                    [node("Identity", "goes", "go"), node("Concat", "s x", "o", axis=0)],
                    [*TURN, ("s", FLOAT)],
                    [*GOES_ON, ("o", FLOAT)],
                ),
            )
        ],
        {"k": (INT64, [])},
        {"yes": np.array(True)},
        {"k": np.array(2)},
    ),
    "branches": (
        [
            node(
                "If",
                "c",
                "u",
                then_branch=graph_of([node("Concat", "x x", "o", axis=0)], [], [("o", FLOAT)]),
                else_branch=graph_of([node("Neg", "x", "p")], [], [("p", FLOAT)]),
            )
        ],
        {"c": (BOOL, [])},
        {},
        {"c": np.array(True)},
    ),
    "replaced": (
        [node("Shape", "x", "t"), node("ScatterElements", "t zero k", "n"), node("Expand", "one n", "u")],
        {},
        {"zero": np.array([0]), "k": np.array([3]), "one": ones(1, 1)},
        {},
    ),
}


@pytest.mark.parametrize("case", BESIDE)
def test_non_constant_sizes_keep_other_symbols(case: str) -> None:
    nodes, inputs, constants, feeds = BESIDE[case]
    given: dict[str, Any] = {"x": ["a", "b"], **inputs}
    product = model_of([*nodes, node("MatMul", "u r", "y")], given, ["y"], {**constants, "r": ones(7, 2)})
    with pytest.raises(pliant.CompileError, match="q would be fixed: the node needs q to be 7"):
        pliant.compile(product, dynamic_shapes={"x": ["s", "q"]})
    plain = model_of(nodes, given, ["u"], constants)
    model, reference = pliant.compile(plain, dynamic_shapes={"x": ["s", "q"]}), ReferenceEvaluator(plain)
    for shape in ((4, 7), (4, 3), (8, 1)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 5
        np.testing.assert_array_equal(model.run(None, {"x": x, **feeds})[0], reference.run(None, {"x": x, **feeds})[0])


def branching(condition: list[onnx.NodeProto], other: list[onnx.NodeProto]) -> onnx.ModelProto:
    branches = {
        "then_branch": graph_of([node("MatMul", "x r", "o", name="product")], [], [("o", FLOAT)]),
        "else_branch": graph_of(other, [], [("p", FLOAT)]),
    }
    nodes = [*condition, node("If", "c", "y", name="either", **branches)]
    inputs: dict[str, Any] = {"x": ["a", "b"]} if condition else {"x": ["a", "b"], "c": (BOOL, [])}
    constants = {"r": ones(7, 7), "one": np.array(1), "seven": np.array(7)}
    return model_of(nodes, inputs, ["y"], constants)


def test_branches_on_sizes_do_not_specialize(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [node("Shape", "x", "t"), node("Gather", "t one", "q"), node("Equal", "q seven", "c")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = pliant.compile(branching(sizes, [node("Relu", "x", "p")]), dynamic_shapes={"x": ["s", "q"]})
    assert np.array_equal(model.run(None, {"x": ones(2, 7)})[0], np.full((2, 7), 7, np.float32))
    assert model.run(None, {"x": ones(2, 5)})[0].shape == (2, 5)
    model.explain_shapes()
    assert "MatMul 'product': in the then-branch of If 'either' the node needs q to be 7" in capsys.readouterr().out


def test_branches_on_values_may_specialize_symbols() -> None:
    warning = "in runs that execute the node, q can have no other size: in the then-branch of If 'either'"
    with pytest.warns(UserWarning, match=warning):
        model = pliant.compile(branching([], [node("Relu", "x", "p")]), dynamic_shapes={"x": ["s", "q"]})
    assert model.run(None, {"x": ones(2, 5), "c": np.array(False)})[0].shape == (2, 5)
    with pytest.raises(pliant.ShapeError, match="must be 7"):
        model.run(None, {"x": ones(2, 5), "c": np.array(True)})
    # If both branches do, no run has another size.
    both = branching([], [node("Add", "x r", "p")])
    with pytest.raises(pliant.CompileError, match="MatMul 'product': the declared symbol q would be fixed"):
        pliant.compile(both, dynamic_shapes={"x": ["s", "q"]})


def test_initialized_inputs_can_be_declared_as_inputs() -> None:
    model = model_of([node("Add", "x w", "y")], {"x": ["n", 2], "w": [2]}, ["y"], {"w": ones(2)})
    x = ones(3, 2)
    plain = pliant.compile(model)
    assert [i.name for i in plain.inputs] == ["x"] and plain.run(None, {"x": x})[0][0, 0] == 2
    with pytest.raises(ValueError, match=r"'w'.*a constant: to feed it.*dynamic_shapes=\{\"w\": \{\}\}"):
        plain.run(None, {"x": x, "w": ones(2)})
    fed = pliant.compile(model, dynamic_shapes={"w": {}})
    assert fed.run(None, {"x": x, "w": 4 * ones(2)})[0][0, 0] == 5
    wrong = model_of([node("Add", "x w", "y")], {"x": ["n", 2], "w": [3]}, ["y"], {"w": ones(2)})
    with pytest.raises(pliant.CompileError, match=r"input 'w' is declared as \[3\], but is \[2\] in its initializer"):
        pliant.compile(wrong)


@pytest.mark.parametrize("size", [1, 4])
def test_norm_parameters_may_be_scalars_at_run_time(size: int) -> None:
    model = model_of([node("LayerNormalization", "x g b", "y")], {"x": ["n", "d"], "g": ["p"], "b": ["q"]}, ["y"])
    x = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2
    y = pliant.compile(model).run(None, {"x": x, "g": 2 * ones(size), "b": ones(1)})[0]
    whole = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, 2 * whole + 1, rtol=1e-5)


def test_memory_limit_counts_containers_of_small_items() -> None:
    body = graph_of([node("Identity", "goes", "go"), node("Identity", "i", "o")], TURN, [*GOES_ON, ("o", INT64)])
    made = helper.make_node("Loop", ["k", ""], ["y"], body=body)
    model = pliant.compile(model_of([made], {"k": (INT64, [])}, ["y"]))
    assert model.run(None, {"k": np.array(1000)})[0].shape == (1000,)
    pliant.runtime.set_memory_limit(pliant.runtime.held_bytes() + (60 << 20))
    try:
        with pytest.raises(pliant.VMError, match="out of memory.*\n  at Loop 'y'"):
            model.run(None, {"k": np.array(300_000)})
    finally:
        pliant.runtime.set_memory_limit(None)


def test_generated_symbol_names_do_not_collide(capsys: pytest.CaptureFixture[str]) -> None:
    """Checks that names of generated symbols do not collide with names in the model. Symbols are generated for a dim without a
    name, and for a quotient such as `n / 4` of a divisible size.
    """
    both = [node("Relu", "x", "y"), node("Relu", "w", "z")]
    model = pliant.compile(model_of(both, {"x": [None, 3], "w": ["x_0", 3]}, ["y", "z"]))
    y, z = model.run(None, {"x": ones(2, 3), "w": ones(5, 3)})
    assert (y.shape, z.shape) == ((2, 3), (5, 3))
    model = pliant.compile(model_of(both, {"x": ["n", 3], "w": ["n_over_4", 3]}, ["y", "z"]), divisible={"n": 4})
    y, z = model.run(None, {"x": ones(8, 3), "w": ones(5, 3)})
    assert (y.shape, z.shape) == ((8, 3), (5, 3))
    assert [i.shape for i in model.inputs] == [("n_over_4_ * 4", 3), ("n_over_4", 3)]
    model.explain_shapes()
    told = capsys.readouterr().out
    assert "n: 0 .. any size, divisible by 4  (of the file; x[0])" in told
    assert "n_over_4: 0 .. any size  (of the file; w[0])" in told
    same = pliant.compile(model_of(both, {"x": ["a b", 3], "w": ["a_b", 3]}, ["y", "z"]))
    assert [i.shape for i in same.inputs] == [("a_b", 3), ("a_b_", 3)]


def test_divisibility_errors_name_the_symbol() -> None:
    tenfold = [node("Concat", " ".join(["x"] * 10), "c", axis=0), node("Add", "c w", "z")]
    with pytest.raises(pliant.CompileError, match=r"dims n \* 10 and 17 .* R.Tensor\(\(n \* 10, 3\)"):
        pliant.compile(model_of(tenfold, {"x": ["n", 3], "w": [17, 3]}, ["z"]), divisible={"n": 4})


@pytest.mark.parametrize("times", [2, 12, 30])
def test_large_powers_in_dims_are_names(times: int) -> None:
    text = "n"
    for _ in range(times):
        text = f"({text})**8"
    model = pliant.compile(model_of([node("Relu", "x", "y")], {"x": [text], "w": ["n"]}, ["y"]))
    assert model.run(None, {"x": ones(1), "w": ones(1)})[0].shape == (1,)


def test_limits_count_inlined_function_calls() -> None:
    """Checks that functions nested more than 32 deep are rejected, even if another call of one of the inner functions is within
    this limit.
    """
    own = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def called(i: int) -> onnx.NodeProto:
        return helper.make_node(f"F{i}", ["x"], ["y"], domain="own")

    bodies = [node("Relu", "x", "y"), *map(called, range(59))]
    functions = [helper.make_function("own", f"F{i}", ["x"], ["y"], [body], own) for i, body in enumerate(bodies)]

    def model(*calls: int) -> onnx.ModelProto:
        nodes = [helper.make_node(f"F{i}", ["x"], [f"y{i}"], domain="own") for i in calls]
        made = model_of(nodes, {"x": ["n"]}, [nodes[-1].output[0]])
        made.functions.extend(functions[: calls[-1] + 1])
        made.opset_import.append(own[1])
        return made

    pliant.compile(model(20, 30))
    with pytest.raises(pliant.CompileError, match="nested more than 32 deep"):
        pliant.compile(model(20, 40))
    with pytest.raises(pliant.CompileError, match="F.*nested more than 32 deep"):
        pliant.compile(model(29, 59))


def test_dims_may_precede_the_dims_that_define_them() -> None:
    model = pliant.compile(model_of([node("Relu", "x", "y")], {"x": ["n//3", "n"]}, ["y"]), divisible={"n": 4})
    assert model.run(None, {"x": ones(2, 8)})[0].shape == (2, 8)
    with pytest.raises(pliant.ShapeError, match="x"):
        model.run(None, {"x": ones(3, 8)})
