"""Single layers with one and two threads: Pliant, Pliant limited to AVX2, ONNX Runtime and OpenVINO.

Scripts of this folder list their layers and call `main`. `engines` describes the timing. A process chooses its instruction set once, so
``PLIANT_ISA=avx2`` is measured in a separate process, directly after the other engines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx
from onnx import NodeProto, helper, numpy_helper

from measurement_pages import write_table
from peers.engines import ENGINES, PLIANT, Feeds, difference, time_in_phases
from timing import geomean, require_release

THREADS = (1, 2)
PLIANT_AVX2 = "Pliant, AVX2"
# The option and the environment of the process that measures PLIANT_AVX2.
PLIANT_ONLY = "--pliant-only"
AVX2_ENVIRONMENT = {"PLIANT_ISA": "avx2"}


@dataclass
class Layer:
    """A layer: its name in the table, and its nodes. The nodes read the model's only input and the constants; the last node computes
    the output."""

    name: str
    nodes: Sequence[NodeProto]
    feeds: Feeds
    constants: Feeds
    # Dims of the input; a string is the name of a symbolic dim.
    dims: Sequence[int | str]
    # Tolerance of the result, as computed by `difference`.
    error: float = 1e-4

    def model(self) -> onnx.ModelProto:
        """Returns the layer as an ONNX model with one input and one output."""
        ((x, feed),) = self.feeds.items()
        kind = helper.np_dtype_to_tensor_dtype(feed.dtype)
        graph = helper.make_graph(
            self.nodes,
            "layer",
            [helper.make_tensor_value_info(x, kind, self.dims)],
            [helper.make_tensor_value_info(self.nodes[-1].output[0], kind, None)],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def seconds(layers: list[Layer], threads: int, names: Sequence[str]) -> dict[str, list[float]]:
    """Compares the results of the engines, then returns the seconds of each layer by engine."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{index}.onnx" for index in range(len(layers))]
        for path, layer in zip(paths, layers, strict=True):
            onnx.save(layer.model(), path)
        runs = {name: [ENGINES[name](path, threads) for path in paths] for name in names}
        for index, layer in enumerate(layers):
            results = [engine_runs[index](layer.feeds) for engine_runs in runs.values()]
            error = max(difference(result, results[0]) for result in results)
            if error > layer.error:
                raise SystemExit(f"{layer.name}: results differ by {error}")
        calls = {
            name: [partial(run, layer.feeds) for run, layer in zip(engine_runs, layers, strict=True)]
            for name, engine_runs in runs.items()
        }
        return time_in_phases(calls)


def measure(script: str, layers: list[Layer], threads: int) -> dict[str, list[float]]:
    """Returns the seconds of each layer by engine; the engine `PLIANT_AVX2`, which needs a process
    of its own, is measured last.
    """
    times = seconds(layers, threads, list(ENGINES))
    words = [sys.executable, "-m", script, PLIANT_ONLY, str(threads)]
    pliant_only = subprocess.run(words, env={**os.environ, **AVX2_ENVIRONMENT}, check=True, stdout=subprocess.PIPE, text=True)
    return {**times, PLIANT_AVX2: json.loads(pliant_only.stdout)}


def table(threads: int, layers: list[Layer], times: dict[str, list[float]]) -> str:
    """Formats the times as a Markdown table. The last row has the geometric mean of the time of the
    fastest peer divided by Pliant's.
    """
    peers = [name for name in ENGINES if name != PLIANT]
    names = [PLIANT, *peers, PLIANT_AVX2]
    lines = [f"| {threads} thr | " + " | ".join(f"{name} us" for name in names) + " | best peer / Pliant |"]
    lines.append("|---" * (len(names) + 2) + "|")
    ratios = []
    for index, layer in enumerate(layers):
        ratios.append(min(times[name][index] for name in peers) / times[PLIANT][index])
        cells = " | ".join(f"{times[name][index] * 1e6:.0f}" for name in names)
        lines.append(f"| {layer.name} | {cells} | {ratios[-1]:.2f} |")
    lines.append("| geometric mean |" + " |" * len(names) + f" **{geomean(ratios):.2f}** |")
    return "\n".join(lines) + "\n"


def main(script: str, about: str, layers: list[Layer]) -> None:
    """Measures the layers of a script, prints the tables, and writes them if requested."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/internals/measurements/")
    only_help = "measure only Pliant, with this number of threads, and print the seconds as JSON"
    parser.add_argument(PLIANT_ONLY, type=int, metavar="THREADS", help=only_help)
    args = parser.parse_args()
    require_release()
    if args.pliant_only is not None:
        print(json.dumps(seconds(layers, args.pliant_only, [PLIANT])[PLIANT]))
        return
    tables = []
    for threads in THREADS:
        tables.append(table(threads, layers, measure(script, layers, threads)))
        print(tables[-1], flush=True)
    if args.write:
        write_table(f"benches/{script.replace('.', '/')}.py", "\n".join(tables))
