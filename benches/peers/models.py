"""Whole ONNX models with their cases: Pliant, ONNX Runtime and OpenVINO in one run.

``python -m peers.models``, within ``benches/``, creates the models of ``peers/zoo`` in
``target/zoo`` (0.8 GB) and runs them; ``python -m peers.models FOLDER...`` runs those of folders,
each with one ``.onnx`` file and ``.npz`` files of inputs. ``--write`` writes the table and its plot
into ``docs/``. `engines` describes how they are timed.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from page import PAGES, write_table
from peers import zoo
from peers.engines import ENGINES, PLIANT, difference, time_in_phases
from timing import geomean, require_release

THREADS = 2
ZOO_FOLDER = Path(__file__).resolve().parents[2] / "target" / "zoo"

# A case of a model: engines with their milliseconds, and notes.
Row = dict[str, Any]


def measure(folder: Path) -> list[Row]:
    """A row for each case of a model."""
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
    """The rows in Markdown, with the geometric mean of each model below it."""
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


def picture(rows: list[Row], path: Path) -> None:
    """A bar for each case: the speed-up over the best peer, with a line at 1.0."""
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
    """Prints the table, and writes it if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true", help="put table and picture into docs/")
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
        picture(rows, PAGES.with_name("models.svg"))


if __name__ == "__main__":
    main()
