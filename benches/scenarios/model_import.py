"""Scenarios on importing models: coverage, symbolic dims, data-dependent sizes, compile and load times."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import pliant
from scenarios import Outcome, scenario, yes_or_no
from scenarios.small_onnx_models import F32, I64, conv_net, mlp, model, write

def available_models() -> dict[str, Path]:
    """Returns the models in the folder that ``PLIANT_MODELS`` names, and in ``target/zoo``, which
    ``peers.models`` fills.
    """
    folders = [Path(__file__).resolve().parents[2] / "target" / "zoo"]
    if "PLIANT_MODELS" in os.environ:
        folders.append(Path(os.environ["PLIANT_MODELS"]))
    return {path.stem: path for folder in folders for path in sorted(folder.glob("**/*.onnx"))}


@scenario("T2", "valid dynamic models import, run and match ONNX Runtime at 20 random shapes; all problems are reported at once")
def corpus() -> Outcome:
    """Scenario: imports the available models, and checks a model with three unsupported operators
    by ``pliant check``.
    """
    models = available_models()
    imported, failed = 0, []
    for name, path in models.items():
        try:
            pliant.compile(path)
            imported += 1
        except pliant.PliantError as error:
            failed.append(f"{name}: {str(error).splitlines()[0][:80]}")
    nodes = [helper.make_node(op, ["x"], [out]) for op, out in (("Foo", "a"), ("Bar", "b"), ("Baz", "c"))]
    nodes.append(helper.make_node("Sum", ["a", "b", "c"], ["y"]))
    data = model(nodes, {"x": (F32, ["n"])}, {"y": (F32, ["n"])})
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("pliant")), "check", str(write(data, folder))]
        report = subprocess.run(command, capture_output=True, text=True, check=False)
        text = report.stdout + report.stderr
    at_once = all(op in text for op in ("Foo", "Bar", "Baz"))
    return Outcome(
        None if at_once and not failed else False,
        f"{imported} of {len(models)} models import; three unsupported operators are reported at once: {yes_or_no(at_once)}",
        "; ".join(failed) or "the named models (PP-OCR, Mask R-CNN, Whisper, Qwen2.5 with their weights) cannot be fetched here",
    )


@scenario("T6", "symbolic dims stay symbolic; if an operator fixes a dim, the error names the node")
def symbolic_batch() -> Outcome:
    """Scenario: runs a model at batch sizes 0, 1, 2, 3 and 17 and reads its signature. A Reshape to
    a constant batch must be an error.
    """
    m = pliant.compile(conv_net())
    dims = [tuple(i.shape) for i in m.inputs]
    for n in (0, 1, 2, 3, 17):
        y = m.run(None, {"x": np.ones((n, 3, 9, 9), "float32")})[0]
        assert np.asarray(y).shape == (n, 10)
    weights = {"shape": np.array([6, 3])}
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="baked_reshape")]
    baked = model(nodes, {"x": (F32, ["batch", 3])}, {"y": (F32, ["batch", 3])}, weights)
    try:
        pliant.compile(baked)
        message = ""
    except pliant.PliantError as error:
        message = str(error)
    names = [word for word in ("batch", "baked_reshape") if word in message]
    passed = len(names) == 2 and "batch" in str(dims)
    return Outcome(passed, f"the dims of the input are {' x '.join(map(str, dims[0]))}; the error names {' and '.join(names)}", "" if passed else message[:200])


@scenario("T7", "data-dependent sizes: NonZero, boolean masks, NonMaxSuppression, Range, loops that grow a cache")
def data_dependent() -> Outcome:
    """Scenario: compares graphs with data-dependent shapes with ONNX Runtime at several inputs,
    some with empty results.
    """
    import onnxruntime

    step = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Concat", ["cache", "row"], ["longer"], axis=0),
        ],
        "step",
        [
            helper.make_tensor_value_info("i", I64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("cache", F32, ["k", 4]),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), helper.make_tensor_value_info("longer", F32, ["k1", 4])],
    )
    boxes = {"boxes": (F32, [1, "n", 4]), "scores": (F32, [1, 1, "n"])}
    limits = {"most": np.array([5]), "iou": np.array([0.5], "float32"), "least": np.array([0.3], "float32")}
    graphs = {
        "NonZero": (
            [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Transpose", ["i"], ["t"]), helper.make_node("GatherND", ["x", "t"], ["y"])],
            {"x": (F32, ["n", "m"])}, {}, [{"x": np.zeros((3, 2), "float32")}, {"x": np.eye(4, dtype="float32")}, {"x": np.ones((0, 3), "float32")}],
        ),
        "mask": (
            [helper.make_node("Greater", ["x", "zero"], ["b"]), helper.make_node("Compress", ["x", "b"], ["y"], axis=0)],
            {"x": (F32, ["n"])}, {"zero": np.array(0, "float32")}, [{"x": -np.ones(3, "float32")}, {"x": np.arange(9, dtype="float32")}],
        ),
        "NonMaxSuppression": (
            [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["y"])],
            boxes, limits,
            [{"boxes": np.zeros((1, 0, 4), "float32"), "scores": np.zeros((1, 1, 0), "float32")},
             {"boxes": np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3]]], "float32"), "scores": np.array([[[0.9, 0.8, 0.7]]], "float32")},
             {"boxes": np.zeros((1, 3, 4), "float32"), "scores": np.zeros((1, 1, 3), "float32")}],
        ),
        "Range": (
            [helper.make_node("Shape", ["x"], ["s"], end=1), helper.make_node("Squeeze", ["s"], ["n"]), helper.make_node("Range", ["zero", "n", "one"], ["y"])],
            {"x": (F32, ["n"])}, {"zero": np.array(0), "one": np.array(1)}, [{"x": np.ones(n, "float32")} for n in (0, 1, 7)],
        ),
        "a growing cache": (
            [helper.make_node("Loop", ["count", "", "first"], ["y"], body=step)],
            {"count": (I64, []), "first": (F32, ["k0", 4]), "row": (F32, [1, 4])}, {},
            [{"count": np.array(c), "first": np.zeros((k, 4), "float32"), "row": np.ones((1, 4), "float32")} for c, k in ((0, 2), (5, 0), (30, 3))],
        ),
    }
    runs, mismatches = 0, []
    for name, (nodes, inputs, weights, feeds) in graphs.items():
        kind = I64 if name in ("NonMaxSuppression", "Range") else F32
        data = model(nodes, inputs, {"y": (kind, None)}, weights)  # type: ignore[arg-type]
        try:
            m = pliant.compile(data)
        except pliant.PliantError as error:
            mismatches.append(f"{name}: {str(error).splitlines()[0][:80]}")
            continue
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        for feed in feeds:
            want, got = session.run(None, feed)[0], np.asarray(m.run(None, feed)[0])
            runs += 1
            if got.shape != want.shape or not np.array_equal(got, want):
                mismatches.append(f"{name}: {got.shape} is not {want.shape}")
    return Outcome(None if not mismatches else False, f"{runs} runs of {len(graphs)} graphs equal ONNX Runtime, empty results among them", "; ".join(mismatches) or "the greedy decoding loop of Whisper is not available here")


@scenario("T5", "compile time does not depend on the range of a dim; saved models load quickly")
def cold_start() -> Outcome:
    """Scenario: times compilation for narrow and wide size ranges, saving, and loading."""
    data = mlp()

    def compile_seconds(max_extent: int) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            pliant.compile(data, dynamic_shapes={"x": {1: ("seq", 1, max_extent)}})
            times.append(time.perf_counter() - start)
        return min(times)

    try:
        narrow, wide = compile_seconds(16), compile_seconds(10**6)
    except (pliant.PliantError, TypeError, ValueError):
        start = time.perf_counter()
        pliant.compile(data)
        narrow = wide = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.pliant"
        pliant.compile(data).save(path)
        start = time.perf_counter()
        pliant.load(path)
        load = time.perf_counter() - start
    passed = wide <= 1.2 * narrow + 0.01 and load < 0.05
    measured = f"{narrow * 1e3:.1f} ms for seq up to 16, {wide * 1e3:.1f} ms up to 1,000,000; a saved model loads in {load * 1e3:.1f} ms"
    return Outcome(None if passed else False, measured, "PP-OCR and Qwen2.5 are not available here; times of whole models are in docs/internals/measurements/models.md")
