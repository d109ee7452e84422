"""Scenarios on speed: dynamic against static shapes, whole models against ONNX Runtime, attention of several exporters."""

from __future__ import annotations

import timeit

import numpy as np
import onnx
from onnx import helper

import pliant
from scenarios import Outcome, scenario
from scenarios.model_import import available_models
from scenarios.memory_and_time import rss
from scenarios.small_onnx_models import F32, Dims, model


def min_milliseconds(run: object, repeat: int = 15) -> float:
    """The minimum time of a call, in milliseconds."""
    assert callable(run)
    run()
    return min(timeit.repeat(run, number=1, repeat=repeat)) * 1e3


def layer(dims: Dims, elementwise: bool) -> bytes:
    """Returns an ONNX model over the given dims with one matrix product or, if `elementwise`, a
    chain of elementwise operators.
    """
    r = np.random.default_rng(0)
    w = {"w": r.standard_normal((256, 256)).astype("float32") / 16}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    if elementwise:
        nodes = [helper.make_node("Tanh", ["x"], ["a"]), helper.make_node("Mul", ["a", "x"], ["b"]), helper.make_node("Sigmoid", ["b"], ["y"])]
        w = {}
    return model(nodes, {"x": (F32, dims)}, {"y": (F32, dims)}, w)


@scenario("T8", "dynamic shapes cost at most 5 % for matrix products and 15 % for elementwise chains, including odd sizes")
def dynamic_shape_cost() -> Outcome:
    """Scenario: compiles the same layer once for one constant size and once for all sizes, and
    times both at that size.
    """
    rows = {}
    for elementwise in (False, True):
        worst = 0.0
        for n in (1, 7, 31, 33, 127, 129, 1000):
            x = np.random.default_rng(n).standard_normal((n, 256)).astype("float32")
            static = pliant.compile(layer([n, 256], elementwise), threads=1)
            dynamic = pliant.compile(layer(["n", 256], elementwise), threads=1)
            times = [[min_milliseconds(lambda m=m: m.run(None, {"x": x}), 60) for m in (static, dynamic)] for _ in range(3)]
            worst = max(worst, min(t[1] for t in times) / min(t[0] for t in times))
        rows["elementwise" if elementwise else "product"] = worst
    passed = rows["product"] <= 1.05 and rows["elementwise"] <= 1.15
    return Outcome(passed, ", ".join(f"{name}: at most {ratio:.2f}" for name, ratio in rows.items()), "" if passed else "the limits are 1.05 and 1.15")


@scenario("T13", "without tuning, geomean at least 0.8 of ONNX Runtime's speed over models and shapes")
def no_tuning() -> Outcome:
    """Scenario: times each available model with its symbolic dims set to 1, 2 and 8, on two
    threads.
    """
    import onnxruntime

    ratios: dict[str, float] = {}
    for name, path in available_models().items():
        try:
            m = pliant.compile(path, threads=2)
        except pliant.PliantError:
            continue
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 2, 4
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        ratios_of_model = []
        for size in (1, 2, 8):
            feeds = {}
            for i in session.get_inputs():
                shape = [d if isinstance(d, int) else size for d in i.shape]
                dtype = {"tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"}.get(i.type, "float32")
                feeds[i.name] = np.ones(shape, dtype)
            try:
                times = [min_milliseconds(lambda: session.run(None, feeds), 7), min_milliseconds(lambda: m.run(None, feeds), 7)]
            except Exception:  # The model does not take these sizes.
                continue
            ratios_of_model.append(times[0] / times[1])
        if ratios_of_model:
            ratios[name] = float(np.exp(np.mean(np.log(ratios_of_model))))
    mean = float(np.exp(np.mean(np.log(list(ratios.values()))))) if ratios else 0.0
    slow = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < 0.5)
    passed = mean >= 0.8
    return Outcome(
        None if passed else False,
        f"geomean {mean:.2f} over {len(ratios)} models, with all symbolic dims (also those of images) set to 1, 2 and 8",
        f"below 0.5: {slow or 'none'}; docs/internals/measurements/models.md has other shapes, and OpenVINO; "
        "20 shapes per model are not run",
    )


def attention(form: str) -> bytes:
    """Returns an ONNX model of attention as one exporter writes it. `form` selects how the scale factor
    is applied.
    """
    dims: Dims = ["batch", 4, "seq", 32]
    weights = {"s": np.array(32**-0.5, "float32"), "q4": np.array(32**-0.25, "float32"), "d": np.array(32**0.5, "float32")}
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2])]
    if form == "scale after":
        nodes += [helper.make_node("MatMul", ["q", "kt"], ["m"]), helper.make_node("Mul", ["m", "s"], ["p"])]
    elif form == "division":
        nodes += [helper.make_node("MatMul", ["q", "kt"], ["m"]), helper.make_node("Div", ["m", "d"], ["p"])]
    elif form == "scale before":
        nodes += [helper.make_node("Mul", ["q", "s"], ["qs"]), helper.make_node("MatMul", ["qs", "kt"], ["p"])]
    else:
        nodes += [helper.make_node("Mul", ["q", "q4"], ["qs"]), helper.make_node("Mul", ["kt", "q4"], ["ks"]), helper.make_node("MatMul", ["qs", "ks"], ["p"])]
    nodes += [helper.make_node("Softmax", ["p"], ["a"], axis=-1), helper.make_node("MatMul", ["a", "v"], ["y"])]
    return model(nodes, {n: (F32, dims) for n in "qkv"}, {"y": (F32, dims)}, weights)


@scenario("T21", "attention patterns of five exporters become one kernel call, whose memory is not quadratic in seq")
def fused_attention() -> Outcome:
    """Scenario: looks for the attention kernel in the compiled program of each exporter's form, and
    runs 10,000 tokens.
    """
    forms = ["scale after", "division", "scale before", "scale on both sides"]
    fused = []
    for form in forms:
        m = pliant.compile(attention(form), threads=2)
        module = m.executable.module
        fused.append(module is not None and 'T.call_kernel("attention"' in module.script())
    m = pliant.compile(attention(forms[0]), threads=2)
    r = np.random.default_rng(0)
    q = r.standard_normal((1, 4, 10_000, 32)).astype("float32")
    before = rss()
    m.run(None, {"q": q, "k": q, "v": q})
    growth = rss() - before
    passed = all(fused) and growth < 200
    text = ", ".join(f for f, is_fused in zip(forms, fused, strict=True) if not is_fused)
    return Outcome(
        None if passed else False,
        f"{sum(fused)} of {len(forms)} forms call the kernel; 10,000 tokens take {growth:.0f} MB (a full score matrix would take 1,600)",
        f"not fused: {text}" if text else "the exporters are not installed here; their patterns are written by hand",
    )


@scenario("T11", "a packed batch of sequences of different lengths is faster than a padded one")
def packed() -> Outcome:
    """Scenario that always fails: attention over packed sequences is not supported."""
    assert onnx
    return Outcome(False, "", "there is no attention over packed sequences (cu_seqlens), and no transform that packs a model")
