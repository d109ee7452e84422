"""Tests nodes whose operands' ranks, sizes or values are known only at run time. Such nodes are imported for the actual
operands, and compared with NumPy and the reference of the package ``onnx``."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_models import model_of, node

import pliant
from pliant.error import CompileError, PliantError
from pliant.frontend.onnx import check

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def reshaped(nodes: list[Any], constants: dict[str, Any], feeds: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Builds a model with nodes on ``t``, whose rank is known only at run time. The inputs have
    symbols for all dims.
    """
    infos = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), [f"{k}{i}" for i in range(v.ndim)])
        for k, v in feeds.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()]
    first = [node("Reshape", "x s", "t")] if "s" in feeds else []
    graph = helper.make_graph([*first, *nodes], "g", infos, [onnx.ValueInfoProto(name="y")], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def holds(nodes: list[Any], constants: dict[str, Any], shapes: list[tuple[int, ...]]) -> None:
    """Checks that one compilation agrees with the reference implementation at every rank."""
    feeds = {"x": X, "s": np.array([1, 1])}
    model = reshaped(nodes, constants, feeds)
    reference, compiled = ReferenceEvaluator(model), pliant.compile(model)
    for shape in shapes:
        feeds = {"x": X, "s": np.array(shape)}
        want, got = reference.run(None, feeds)[0], compiled.run(None, feeds)[0]
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


THREE = [(3, 2, 4), (4, 2, 3), (2, 3, 4)]
ANY = [(24,), (4, 6), (3, 2, 4), (2, 2, 2, 3)]
OPERATORS: list[tuple[str, dict[str, Any], dict[str, Any], list[tuple[int, ...]]]] = [
    ("Shape", {}, {}, ANY),
    ("Shape", {}, {"start": -1}, ANY),
    ("Size", {}, {}, ANY),
    ("Gather", {"i": np.array([0, 1])}, {"axis": -1}, ANY),
    ("Slice", {"a": np.array([1]), "b": np.array([3])}, {}, ANY),
    ("Reshape", {"a": np.array([0, -1])}, {}, ANY),
    ("Flatten", {}, {}, ANY),
    ("Unsqueeze", {"a": np.array([-1])}, {}, ANY),
    ("ArgMax", {}, {"axis": -1}, ANY),
    ("CumSum", {"a": np.array(0)}, {}, ANY),
    ("Expand", {"a": np.array([2, 1, 1, 1, 1])}, {}, ANY),
    ("Tile", {"a": np.array([2, 1, 1])}, {}, THREE),
    ("Pad", {"a": np.array([0, 0, 1, 0, 0, 1])}, {}, THREE),
    ("LayerNormalization", {"w": np.ones(4, np.float32)}, {}, [(6, 4), (3, 2, 4)]),
    ("BatchNormalization", dict.fromkeys("abcd", np.ones(2, np.float32)), {}, [(12, 2), (3, 2, 4)]),
    ("InstanceNormalization", dict.fromkeys("ab", np.ones(2, np.float32)), {}, [(3, 2, 4), (1, 2, 3, 4)]),
    ("GlobalAveragePool", {}, {}, [(3, 2, 4), (2, 2, 2, 3)]),
    ("NonZero", {}, {}, ANY),
    ("GatherND", {"a": np.array([[0, 1]])}, {}, [(4, 6), (3, 2, 4)]),
    ("Compress", {"a": np.array([True, False, True])}, {}, ANY),
    ("Hardmax", {}, {}, ANY),
    ("Trilu", {}, {}, [(4, 6), (3, 2, 4)]),
    ("MaxPool", {}, {"kernel_shape": [2]}, THREE),
    ("Conv", {"w": np.ones((5, 2, 2), np.float32)}, {}, [(3, 2, 4), (2, 2, 6)]),
]


@pytest.mark.parametrize(("op", "constants", "attrs", "shapes"), OPERATORS, ids=[o[0] for o in OPERATORS])
def test_unknown_ranks(op: str, constants: dict[str, Any], attrs: dict[str, Any], shapes: Any) -> None:
    holds([node(op, " ".join(["t", *constants]), "y", **attrs)], constants, shapes)


def test_several_results_and_following_nodes() -> None:
    holds([node("TopK", "t k", "v i"), node("Neg", "v", "y")], {"k": np.array([1])}, ANY)
    holds([node("Split", "t", "a b", axis=-1, num_outputs=2), node("Add", "a b", "y")], {}, THREE[::2])
    sizes = [node("Shape", "t", "n"), node("Gather", "n zero", "first"), node("Concat", "first minus", "to", axis=0)]
    constants = {"zero": np.array([0]), "minus": np.array([-1])}
    holds([*sizes, node("Reshape", "t to", "y")], constants, ANY)


def test_subgraphs_use_outer_values() -> None:
    inner = [node("Add", "a w", "b")]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"]
    body = helper.make_graph(inner, "body", infos[:1], infos[1:])
    model = reshaped(
        [node("Scan", "t", "y", num_scan_inputs=1, body=body)], {}, {"x": X, "s": np.array([1]), "w": X[0, 0]}
    )
    compiled = pliant.compile(model)
    for shape in [(3, 2, 4), (6, 4)]:
        got = compiled.run(None, {"x": X, "s": np.array(shape), "w": X[0, 0]})[0]
        np.testing.assert_allclose(got, X.reshape(shape) + X[0, 0], rtol=1e-6)


def test_non_constant_sizes_that_operators_need() -> None:
    rng = np.random.default_rng(1)
    compiled = pliant.compile(reshaped([node("ScatterND", "d i u", "y")], {}, {
        "d": np.zeros((2, 3), np.float32), "i": np.zeros((1, 2), np.int64), "u": np.ones(1, np.float32)}))
    for rows in (4, 3, 5):
        data = rng.standard_normal((6, 7)).astype(np.float32)
        places = rng.permutation(6)[:rows, None].repeat(2, 1)
        updates = rng.standard_normal(rows).astype(np.float32)
        want = data.copy()
        want[tuple(places.T)] = updates
        np.testing.assert_array_equal(compiled.run(None, {"d": data, "i": places, "u": updates})[0], want)
    model = reshaped([node("Conv", "x w", "y")], {}, {"x": X[None], "w": X[None]})
    compiled, reference = pliant.compile(model), ReferenceEvaluator(model)
    for kernel in [(5, 2, 3, 3), (1, 2, 1, 2)]:
        feeds = {k: rng.standard_normal(s).astype(np.float32) for k, s in (("x", (1, 2, 6, 5)), ("w", kernel))}
        got, want = compiled.run(None, feeds)[0], reference.run(None, feeds)[0]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_errors_name_the_node() -> None:
    compiled = pliant.compile(reshaped([node("Conv", "t w", "y")], {"w": np.ones((5, 2, 2), np.float32)}, {
        "x": X, "s": np.array([1])}))
    for shape, words in (((24,), "Conv 'y'"), ((3, 4, 2), "Conv 'y'")):
        with pytest.raises(PliantError) as told:
            compiled.run(None, {"x": X, "s": np.array(shape)})
        assert words in str(told.value) and "Some(" not in str(told.value), str(told.value)
    assert compiled.run(None, {"x": X, "s": np.array((3, 2, 4))})[0].shape == (3, 5, 3)


def test_results_of_too_many_dims_are_named() -> None:
    compiled = pliant.compile(reshaped([node("Relu", "t", "y")], {}, {"x": X, "s": np.array([1])}))
    one = np.ones((1, 1, 1), np.float32)
    assert compiled.run(None, {"x": one, "s": np.ones(64, np.int64)})[0].ndim == 64
    with pytest.raises(ValueError, match="output 'y': the tensor has 65 dims"):
        compiled.run(None, {"x": one, "s": np.ones(65, np.int64)})


def test_operand_independent_errors_are_reported_at_compile_time() -> None:
    made = reshaped([node("Flatten", "t", "y", axis="one")], {}, {"x": X, "s": np.array([1])})
    with pytest.raises(CompileError, match="Flatten 'y'"):
        pliant.compile(made)
    report = check(made)
    assert not report.ok and "Unknown" not in str(report)


def test_programs_with_deferred_nodes_are_saved(tmp_path: Any) -> None:
    made = model_of([node("Reshape", "x s", "t"), node("Flatten", "t", "y")], {
        "x": ["n"], "s": (TensorProto.INT64, ["k"])}, ["y"])
    pliant.compile(made).save(tmp_path / "m.plx")
    loaded = pliant.load(tmp_path / "m.plx")
    for shape in [(24,), (2, 12), (2, 3, 4)]:
        got = loaded.run(None, {"x": X.ravel(), "s": np.array(shape)})[0]
        np.testing.assert_array_equal(got, X.reshape(shape[0], -1))


def test_stats_count_the_nodes_that_runs_compile() -> None:
    # The name of the node makes its programs different from those of other tests.
    model = reshaped([node("Flatten", "t", "y", axis=2, name="counted")], {}, {"x": X, "s": np.array([1, 1])})
    compiled = pliant.compile(model)
    assert compiled.stats().compilations == 1
    counts = []
    for shape in [(2, 3, 4), (4, 3, 2), (2, 2, 2, 3), (2, 3, 4)]:
        compiled.run(None, {"x": X, "s": np.array(shape)})
        counts.append(compiled.stats().compilations)
    # Each rank is compiled once, for all sizes.
    assert 1 < counts[0] == counts[1] < counts[2] == counts[3]
    again = pliant.compile(model)
    again.run(None, {"x": X, "s": np.array((2, 3, 4))})
    assert again.stats().compilations == 1


def test_dft_of_real_or_complex_input_is_selected_at_run_time() -> None:
    made = model_of([node("DFT", "x", "y", axis=1)], {"x": ["b", "n", "parts"]}, ["y"], opset=17)
    model = pliant.compile(made)
    for parts in (1, 2):
        x = np.random.default_rng(parts).standard_normal((2, 5, parts)).astype(np.float32)
        numbers = x[..., 0] if parts == 1 else x[..., 0] + 1j * x[..., 1]
        expected = np.fft.fft(numbers, axis=1)
        (y,) = model.run(None, {"x": x})
        np.testing.assert_allclose(y, np.stack([expected.real, expected.imag], -1), atol=1e-4)
    with pytest.raises(pliant.PliantError, match="must be 1 .real. or 2 .complex."):
        model.run(None, {"x": np.ones((2, 5, 3), np.float32)})
