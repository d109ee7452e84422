"""Matrix products in Pliant and in the Rust libraries gemm, matrixmultiply and gemmkit, in one run.

``python -m peers.matmul_libraries``, within ``benches/``, builds ``matmul_libraries_bench/`` in release mode and runs it once per number of threads.
``--write`` replaces the tables in ``docs/internals/measurements/``.

The right operand is constant, like weights. Pliant packs it once, and so does gemmkit in the cases ``prepacked``, whose results are
column-major. The libraries alternate; the time of a case is the best series of calls.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
from pathlib import Path

from measurement_pages import write_table

PACKAGE = Path(__file__).resolve().parent / "matmul_libraries_bench"
THREADS = (1, 2)
SHAPES = [(m, n, n) for n in (384, 1024) for m in (1, 2, 4, 8, 16, 48, 144, 512)]
SHAPES += [(m, *dims) for dims in ((1536, 384), (384, 1536)) for m in (1, 16, 144)]
SHAPES += [(2048, 2048, 2048)]
PLIANT = "Pliant"

Shape = tuple[int, int, int]


def measure(threads: int, shapes: list[Shape]) -> list[tuple[Shape, dict[str, float]]]:
    """Runs the benchmark program with a number of threads. Returns the seconds of each library, by
    shape.
    """
    count = str(threads)
    env = {**os.environ, "MATMUL_NUM_THREADS": count, "RAYON_NUM_THREADS": count}
    words = ["cargo", "run", "--quiet", "--release", "--", count, *("x".join(map(str, shape)) for shape in shapes)]
    lines = subprocess.run(words, cwd=PACKAGE, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    times: dict[Shape, dict[str, float]] = {}
    for line in lines:
        m, n, k, *name, seconds = line.split(" ")
        times.setdefault((int(m), int(n), int(k)), {})[" ".join(name)] = float(seconds)
    return list(times.items())


def table(threads: int, rows: list[tuple[Shape, dict[str, float]]]) -> str:
    """Formats the times as a Markdown table. The last row has the geometric mean of the time of the
    fastest peer divided by Pliant's.
    """
    names = list(rows[0][1])
    head = f"| {threads} thr | " + " | ".join(f"{name} us" for name in names) + " | best peer / Pliant |"
    lines, ratios = [head, "|---" * (len(names) + 2) + "|"], []
    for (m, n, k), times in rows:
        ratios.append(min(seconds for name, seconds in times.items() if name != PLIANT) / times[PLIANT])
        cells = " | ".join(f"{times[name] * 1e6:.1f}" for name in names)
        lines.append(f"| {m} x {n} x {k} | {cells} | {ratios[-1]:.2f} |")
    lines.append("| geometric mean |" + " |" * len(names) + f" **{statistics.geometric_mean(ratios):.2f}** |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures with each number of threads, prints the tables, and writes them if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/internals/measurements/")
    args = parser.parse_args()
    tables = []
    for threads in THREADS:
        tables.append(table(threads, measure(threads, SHAPES)))
        print(tables[-1], flush=True)
    if args.write:
        write_table("benches/peers.matmul_libraries.py", "\n".join(tables))


if __name__ == "__main__":
    main()
