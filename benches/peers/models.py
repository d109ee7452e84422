"""Whole ONNX models at the cases that stand beside them: Pliant, ONNX Runtime and OpenVINO in one run.

``python -m peers.models``, within ``benches/``, makes the models of ``peers/zoo`` in ``target/zoo`` (0.8 GB) and runs them;
``python -m peers.models FOLDER...`` runs those of folders, each with one ``.onnx`` file and ``.npz`` files of inputs. ``--write``
puts the table and its picture into ``docs/``.

The engines are measured in phases: one runs all cases of a model, then there is a pause, then comes the next, several times
around in changing order. Threads that wait for work by spinning, as those of the peers do, would otherwise take the cores of
whoever comes next; within its phase each engine may spin as it likes. A case counts with the median over the phases of the
best time within each.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from page import PAGE, put
from peers import zoo
from timing import geomean, require_release

THREADS = 2
MADE = Path(__file__).resolve().parents[2] / "target" / "zoo"
ROUNDS = 5
PAUSE = 0.4
MIN_SECONDS = 0.05

Feeds = dict[str, np.ndarray]
# A case of a model: engines with their milliseconds, and what is said of them.
Row = dict[str, Any]
Run = Callable[[Feeds], list[np.ndarray]]


def pliant_model(path: Path) -> Run:
    """Compiled once, for all cases."""
    model = pliant.compile(path)
    return lambda feeds: model.run(None, feeds)


def onnx_runtime(path: Path) -> Run:
    """A session of so many threads, all else by default."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def openvino(path: Path) -> Run:
    """Compiled for latency in float32, with the sizes that the file leaves open."""
    import openvino

    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(path), "CPU", settings).create_infer_request()
    return lambda feeds: list(request.infer(feeds).values())


ENGINES = {"Pliant": pliant_model, "ONNX Runtime": onnx_runtime, "OpenVINO": openvino}


def best_of(run: Run, feeds: Feeds) -> float:
    """The best seconds of a call, after two to warm up."""
    run(feeds)
    run(feeds)
    best, end = float("inf"), time.perf_counter() + MIN_SECONDS
    while True:
        start = time.perf_counter()
        run(feeds)
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def measure(folder: Path) -> list[Row]:
    """A row for each case of a model."""
    (path,) = folder.glob("*.onnx")
    cases = {file.stem: dict(np.load(file)) for file in sorted(folder.glob("*.npz"))}
    cases = {name: feeds for name, feeds in cases.items() if all(x.size for x in feeds.values())}
    runs = {name: make(path) for name, make in ENGINES.items()}
    times: dict[tuple[str, str], list[float]] = {}
    order = random.Random(0)
    for _ in range(ROUNDS):
        for engine in order.sample(list(runs), len(runs)):
            time.sleep(PAUSE)
            for case, feeds in cases.items():
                times.setdefault((case, engine), []).append(best_of(runs[engine], feeds))
    rows = []
    for case, feeds in cases.items():
        ours, theirs = runs["Pliant"](feeds), runs["ONNX Runtime"](feeds)
        error = max(float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) for a, b in zip(ours, theirs, strict=True))
        row = {engine: statistics.median(times[case, engine]) * 1e3 for engine in runs}
        shapes = ", ".join("x".join(map(str, x.shape)) or "scalar" for x in list(feeds.values())[:1])
        best = min(value for engine, value in row.items() if engine != "Pliant")
        rows.append({"model": folder.name, "case": shapes, **row, "ratio": best / row["Pliant"], "error": error})
    return rows


def table(rows: list[Row]) -> str:
    """The rows in Markdown, with the geometric mean of each model below it."""
    names = list(ENGINES)
    lines = ["| model | first input | " + " | ".join(f"{n} ms" for n in names) + " | best peer / Pliant | error |"]
    lines.append("|---" * (len(names) + 4) + "|")
    for model in dict.fromkeys(str(r["model"]) for r in rows):
        own = [r for r in rows if r["model"] == model]
        for r in own:
            cells = " | ".join(f"{r[n]:.3f}" for n in names)
            lines.append(f"| {model} | {r['case']} | {cells} | {r['ratio']:.2f} | {r['error']:.0e} |")
        lines.append(f"| **{model}** | geometric mean |" + " |" * len(names) + f" **{geomean([r['ratio'] for r in own]):.2f}** | |")
    lines.append(f"| **all** | geometric mean |" + " |" * len(names) + f" **{geomean([r['ratio'] for r in rows]):.2f}** | |")
    return "\n".join(lines) + "\n"


def picture(rows: list[Row], path: Path) -> None:
    """A bar for each case: how many times as fast as the best peer, 1.0 where a line stands."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "pliant"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.22 * len(rows) + 1))
    names = [f"{r['model']} {r['case']}" for r in rows][::-1]
    ratios = [float(r["ratio"]) for r in rows][::-1]
    axes.barh(names, ratios, color=["#3a7d44" if r >= 1 else "#b35c44" for r in ratios])
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("times as fast as the best of ONNX Runtime and OpenVINO")
    axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Prints the table, and writes it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="put table and picture into docs/")
    args = parser.parse_args()
    require_release()
    rows: list[Row] = []
    for folder in args.folders or [zoo.folder(name, MADE) for name in zoo.names()]:
        own = measure(folder)
        print(table(own), flush=True)
        rows += own
    print(table(rows).splitlines()[-1])
    if args.write:
        put("benches/peers/models.py", table(rows))
        picture(rows, PAGE.with_name("performance-models.svg"))


if __name__ == "__main__":
    main()
