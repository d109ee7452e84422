"""Whole ONNX models over their shapes: Pliant, ONNX Runtime and OpenVINO in one run.

``python -m peers.models``, within ``benches/``, writes the models of ``peers/zoo`` to ``target/zoo`` (0.8 GB) and measures them.
``python -m peers.models FOLDER...`` measures other models; each folder has one ``.onnx`` file and ``.npz`` files of inputs. ``--write``
replaces the table in ``docs/internals/measurements/`` and draws its plot again. `engines` describes the timing.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from measurement_pages import write_table
from peers import zoo
from peers.engines import ENGINES, PLIANT, difference, time_in_phases
from plots import write_plots
from timing import geomean, require_release

THREADS = 2
ZOO_FOLDER = Path(__file__).resolve().parents[2] / "target" / "zoo"

# A case of a model: the milliseconds of each engine, the ratio and the error.
Row = dict[str, Any]


def measure(folder: Path) -> list[Row]:
    """Returns the table rows of a model, one for each case."""
    (path,) = folder.glob("*.onnx")
    cases = {file.stem: dict(np.load(file)) for file in sorted(folder.glob("*.npz"))}
    cases = {name: feeds for name, feeds in cases.items() if all(x.size for x in feeds.values())}
    runs = {name: create(path, THREADS) for name, create in ENGINES.items()}
    times = time_in_phases({name: [partial(run, feeds) for feeds in cases.values()] for name, run in runs.items()})
    rows = []
    for index, feeds in enumerate(cases.values()):
        error = difference(runs[PLIANT](feeds), runs["ONNX Runtime"](feeds))
        row = {engine: times[engine][index] * 1e3 for engine in runs}
        shapes = ", ".join("x".join(map(str, x.shape)) or "scalar" for x in list(feeds.values())[:1])
        best = min(value for engine, value in row.items() if engine != PLIANT)
        rows.append({"model": folder.name, "case": shapes, **row, "ratio": best / row[PLIANT], "error": error})
    return rows


def table(rows: list[Row]) -> str:
    """Formats the measurements as a Markdown table, with the geometric mean of each model below its
    rows.
    """
    names = list(ENGINES)
    lines = ["| model | first input | " + " | ".join(f"{n} ms" for n in names) + " | best peer / Pliant | error |"]
    lines.append("|---" * (len(names) + 4) + "|")
    for model in dict.fromkeys(str(r["model"]) for r in rows):
        model_rows = [r for r in rows if r["model"] == model]
        for r in model_rows:
            cells = " | ".join(f"{r[n]:.3f}" for n in names)
            lines.append(f"| {model} | {r['case']} | {cells} | {r['ratio']:.2f} | {r['error']:.0e} |")
        lines.append(f"| **{model}** | geometric mean |" + " |" * len(names) + f" **{geomean([r['ratio'] for r in model_rows]):.2f}** | |")
    lines.append(f"| **all** | geometric mean |" + " |" * len(names) + f" **{geomean([r['ratio'] for r in rows]):.2f}** | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures the models, prints the table, and writes it if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="replace the table in docs/internals/measurements/, and the plots")
    args = parser.parse_args()
    require_release()
    rows: list[Row] = []
    for folder in args.folders or [zoo.folder(name, ZOO_FOLDER) for name in zoo.names()]:
        model_rows = measure(folder)
        print(table(model_rows), flush=True)
        rows += model_rows
    print(table(rows).splitlines()[-1])
    if args.write:
        write_table("benches/peers/models.py", table(rows))
        write_plots()


if __name__ == "__main__":
    main()
