"""The engines for ONNX models (Pliant, ONNX Runtime, OpenVINO), and how they are timed.

In a phase, one engine runs all cases; phases alternate in random order with pauses between them. Worker threads of the peers spin while
they wait for work: without the pauses, they would occupy the cores of the next engine. The time of a case is the median over phases of
the best time within each phase.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import pliant

ROUNDS = 5
PAUSE = 0.4
MIN_SECONDS = 0.05

Feeds = dict[str, np.ndarray]
Run = Callable[[Feeds], list[np.ndarray]]


def pliant_model(path: Path, threads: int) -> Run:
    """Compiles a model with Pliant once for all cases. Returns a function that runs it."""
    model = pliant.compile(path, threads=threads)
    return lambda feeds: model.run(None, feeds)


def onnx_runtime(path: Path, threads: int) -> Run:
    """Opens a model in ONNX Runtime with default settings, except for the number of threads. Returns a function that runs it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def openvino(path: Path, threads: int) -> Run:
    """Compiles a model with OpenVINO for low latency in float32, with the symbolic sizes of the file. Returns a function that
    runs it."""
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(path), "CPU", settings).create_infer_request()
    return lambda feeds: list(request.infer(feeds).values())


PLIANT = "Pliant"
ENGINES: dict[str, Callable[[Path, int], Run]] = {PLIANT: pliant_model, "ONNX Runtime": onnx_runtime, "OpenVINO": openvino}


def best_time(call: Callable[[], object]) -> float:
    """The shortest time of a call in seconds, after two warm-up calls."""
    call()
    call()
    best, end = float("inf"), time.perf_counter() + MIN_SECONDS
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def time_in_phases(engines: Mapping[str, Sequence[Callable[[], object]]]) -> dict[str, list[float]]:
    """Times every case in alternating phases of the engines. Returns the seconds of each case by
    engine. All engines have the same cases.
    """
    times: dict[str, list[list[float]]] = {name: [] for name in engines}
    order = random.Random(0)
    for _ in range(ROUNDS):
        for name in order.sample(list(engines), len(engines)):
            time.sleep(PAUSE)
            times[name].append([best_time(call) for call in engines[name]])
    return {name: [statistics.median(case) for case in zip(*rounds, strict=True)] for name, rounds in times.items()}


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """Returns the largest difference between two outputs, divided by the magnitude of the largest
    output element or by 1, whichever is larger.
    """
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(ours, theirs, strict=True)]
    return max(float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) for a, b in pairs)
