"""Scenarios on correct results: random graphs against ONNX Runtime at shuffled shapes, empty tensors, batch invariance."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
from onnx import TensorProto, helper

import pliant
from scenarios import Outcome, scenario
from scenarios.small_onnx_models import F32, Dims, mlp, model

UNARY = ["Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Softplus", "Erf", "Sqrt"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
REDUCE = ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceMin"]


def random_graph(r: np.random.Generator) -> bytes:
    """Builds a random graph over (batch, seq, 8): elementwise operators, reductions, slices,
    concatenations and matrix products.
    """
    weights: dict[str, np.ndarray] = {"w": r.standard_normal((8, 8)).astype("float32") / 3}
    weights["axis"] = np.array([-1], "int64")
    nodes: list[onnx.NodeProto] = []
    values = ["x"]
    for k in range(int(r.integers(3, 12))):
        a, b, out = str(r.choice(values)), str(r.choice(values)), f"v{k}"
        kind = int(r.integers(0, 8))
        if kind <= 1:
            nodes.append(helper.make_node("Abs", [a], [f"{out}a"]))
            nodes.append(helper.make_node(str(r.choice(UNARY)), [f"{out}a"], [f"{out}b"]))
            nodes.append(helper.make_node("Tanh", [f"{out}b"], [out]))
        elif kind <= 3:
            nodes.append(helper.make_node(str(r.choice(BINARY)), [a, b], [out]))
        elif kind == 4:
            nodes.append(helper.make_node(str(r.choice(["ReduceSum", "ReduceMean"])), [a, "axis"], [f"{out}r"], keepdims=1))
            nodes.append(helper.make_node("Add", [f"{out}r", b], [out]))
        elif kind == 5:
            nodes.append(helper.make_node("MatMul", [a, "w"], [out]))
        elif kind == 6:
            nodes.append(helper.make_node("Softmax", [a], [out], axis=int(r.choice([-1, 2]))))
        else:
            nodes.append(helper.make_node("Concat", [a, b], [f"{out}c"], axis=2))
            weights |= {f"{out}s": np.array([0]), f"{out}e": np.array([16]), f"{out}x": np.array([2]), f"{out}t": np.array([2])}
            nodes.append(helper.make_node("Slice", [f"{out}c", f"{out}s", f"{out}e", f"{out}x", f"{out}t"], [out]))
        values.append(out)
    dims: Dims = ["batch", "seq", 8]
    return model(nodes, {"x": (F32, dims)}, {values[-1]: (F32, dims)}, weights)


@scenario("T3", "random graphs match ONNX Runtime at shuffled shapes, including sizes 0 and 1; repeated runs of a shape are bit-identical")
def random_graphs() -> Outcome:
    """Scenario: compiles random graphs once and runs each at 14 shapes in random order, at two
    optimization levels.
    """
    import onnxruntime

    r, runs, worst, changed, mismatches = np.random.default_rng(7), 0, 0.0, 0, 0
    shapes = [(0, 3), (1, 1), (3, 0), (2, 5), (1, 17), (9, 1), (4, 33), (31, 2), (0, 0), (16, 16), (1, 100), (7, 7), (2, 64), (5, 3)]
    for _ in range(150):
        data = random_graph(r)
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        models = [pliant.compile(data, threads=2), pliant.compile(data, threads=1, kernels="off")]
        inputs = {s: r.standard_normal((*s, 8)).astype("float32") for s in shapes}
        first: dict[tuple[int, int], bytes] = {}
        for at in r.permutation(np.repeat(np.arange(len(shapes)), 2)):
            shape = shapes[at]
            want = session.run(None, {"x": inputs[shape]})[0]
            for k, m in enumerate(models):
                got = np.asarray(m.run(None, {"x": inputs[shape]})[0])
                assert got.shape == want.shape
                error = float(np.max(np.abs(got - want) / (1 + np.abs(want)), initial=0))
                worst, mismatches = max(worst, error), mismatches + (error > 1e-4)
                if k == 0:
                    changed += first.setdefault(shape, got.tobytes()) != got.tobytes()
                runs += 1
    passed = mismatches == 0 and changed == 0
    return Outcome(passed, f"{runs} runs of 150 graphs, largest relative difference {worst:.1e}, {changed} runs that changed", "" if passed else f"{mismatches} differ")


def empty_tensor_cases() -> list[tuple[str, list[tuple[int, ...]], dict[str, object]]]:
    """Returns operators with their attributes and the shapes of their operands; in each case, one
    dim is 0.
    """
    cases: list[tuple[str, list[tuple[int, ...]], dict[str, object]]] = []
    for name in UNARY + ["Softmax", "LogSoftmax", "Identity", "Flatten", "Transpose", "Shape", "Size", "NonZero", "Cast"]:
        for zero in range(3):
            shape = tuple(0 if k == zero else k + 2 for k in range(3))
            cases.append((name, [shape], {"to": TensorProto.INT64} if name == "Cast" else {}))
    for name in BINARY + ["Div", "Pow", "Greater", "Equal"]:
        for zero in range(2):
            shape = tuple(0 if k == zero else 3 for k in range(2))
            cases += [(name, [shape, shape], {}), (name, [shape, (1, 1)], {})]
    for m, k, n in itertools.product((0, 2), (0, 3), (0, 4)):
        cases.append(("MatMul", [(m, k), (k, n)], {}))
    cases += [("Conv", [(0, 3, 8, 8), (4, 3, 3, 3)], {}), ("MaxPool", [(0, 3, 8, 8)], {"kernel_shape": [2, 2]})]
    cases += [("AveragePool", [(0, 3, 8, 8)], {"kernel_shape": [2, 2]}), ("GlobalAveragePool", [(0, 3, 8, 8)], {})]
    for axis in range(2):
        shape = tuple(0 if k == axis else 3 for k in range(2))
        cases += [(name, [shape], {"keepdims": 1}) for name in ("ReduceSum", "ReduceL2", "ReduceSumSquare")]
        cases += [("Concat", [shape, (3, 3)], {"axis": axis}), ("Concat", [shape, shape], {"axis": axis})]
        cases += [("CumSum", [shape], {}), ("Gather", [shape], {"axis": 1 - axis})]
    return cases


@scenario("T17", "operators on tensors with dims of 0, and whole models on empty batches, match ONNX Runtime")
def empty_tensors() -> Outcome:
    """Scenario: runs operators on empty tensors in Pliant and ONNX Runtime. A case that ONNX
    Runtime rejects must not end the process.
    """
    import onnxruntime

    same, refused, mismatches = 0, 0, []
    for name, shapes, attributes in empty_tensor_cases():
        inputs = {f"x{k}": (F32, [f"d{k}_{i}" for i in range(len(s))]) for k, s in enumerate(shapes)}
        if name == "Conv":
            inputs["x1"] = (F32, list(shapes[1]))
            inputs["x0"] = (F32, ["n", 3, "h", "w"])
        weights: dict[str, np.ndarray] = {}
        operands = list(inputs)
        if name == "CumSum":
            weights["axis"], operands = np.array(0), [*operands, "axis"]
        if name == "Gather":
            weights["at"], operands = np.array([0, 1]), [*operands, "at"]
        out = {"NonZero": TensorProto.INT64, "Shape": TensorProto.INT64, "Size": TensorProto.INT64, "Cast": TensorProto.INT64}
        kind = out.get(name, TensorProto.BOOL if name in ("Greater", "Equal") else F32)
        nodes = [helper.make_node(name, operands, ["y"], **attributes)]
        data = model(nodes, {k: (v[0], v[1]) for k, v in inputs.items()}, {"y": (kind, None)}, weights)  # type: ignore[misc]
        feeds = {k: np.ones(s, "float32") for k, s in zip(inputs, shapes, strict=True)}
        try:
            want = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)[0]
        except Exception:
            want = None
        try:
            got = np.asarray(pliant.compile(data).run(None, feeds)[0])
        except pliant.PliantError as error:
            got = error
        if want is None:
            refused += 1
        elif isinstance(got, np.ndarray) and got.shape == want.shape and np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
            same += 1
        else:
            mismatches.append(f"{name} {shapes}: {str(got)[:60]}")
    empty = np.asarray(pliant.compile(mlp()).run(None, {"x": np.ones((0, 4, 32), "float32")})[0])
    assert empty.shape == (0, 4, 32)
    measured = f"{same} cases equal, {refused} refused by ONNX Runtime, {len(mismatches)} differ"
    return Outcome(not mismatches, measured, "; ".join(mismatches)[:400])


@scenario("T23", "row i of a batch is bit-equal to the row alone, for all thread counts")
def batch_invariance() -> Outcome:
    """Scenario: compares rows of batches with batches of one row under deterministic settings."""
    r = np.random.default_rng(3)
    x = r.standard_normal((64, 5, 32)).astype("float32")
    differ = 0
    for threads in (1, 2):
        m = pliant.compile(mlp(), threads=threads)
        batch = np.asarray(m.run(None, {"x": x})[0])
        for i in range(64):
            single = np.asarray(m.run(None, {"x": x[i : i + 1]})[0])[0]
            differ += single.tobytes() != batch[i].tobytes()
    return Outcome(
        None if differ == 0 else False,
        f"{differ} of 128 rows of an MLP differ between a batch of 64 and a batch of 1",
        "there is no option that guarantees it (deterministic=\"batch_invariant\")",
    )
