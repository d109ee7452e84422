"""Formats the results of a comparison as tables and as JSON rows, and finds the rows that became worse by more than a limit."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from compare_builds.confidence_intervals import Ratio, from_logs, geomean, logs
from compare_builds.measurement_rounds import Results

MEASURES = ["small", "large", "compile", "compile MB", "run MB"]
SIDES = ("old", "new")


def rows(results: Results) -> list[dict[str, Any]]:
    """Returns the rows of the comparison: one for each workload and measure (such as run time)."""
    result = []
    for name, measure in sorted(results.pairs, key=lambda row: MEASURES.index(row[1])):
        pairs = results.pairs[name, measure]
        if name in results.failures:
            continue
        old, new = (geomean([pair[side] for pair in pairs]) for side in (0, 1))
        shape = results.shapes.get((name, measure), "")
        ratio = from_logs(logs(pairs), len(results.pairs))
        result.append({"workload": name, "measure": measure, "shape": shape, "old": old, "new": new} | ratio_columns(ratio))
    return result


def ratio_columns(ratio: Ratio) -> dict[str, Any]:
    """Formats the ratio old/new and its interval as columns of the table."""
    verdict = "worse" if ratio.worse else "better" if ratio.better else ""
    return {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "verdict": verdict}


def means(results: Results) -> list[dict[str, Any]]:
    """The geometric mean of each measure over all workloads, with an interval over the means of the rounds."""
    result = []
    for measure in MEASURES:
        pairs = [p for (name, m), p in results.pairs.items() if m == measure and name not in results.failures]
        if pairs:
            each = [statistics.fmean(round_) for round_ in zip(*map(logs, pairs), strict=True)]
            result.append({"measure": measure, "workloads": len(pairs)} | ratio_columns(from_logs(each, len(MEASURES))))
    return result


def format_value(value: float, measure: str, unit: str) -> str:
    """Formats a measured value with its unit."""
    if measure.endswith("MB"):
        return f"{value:.1f} MB"
    scales = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")] if unit == "instructions" else [(1.0, "s"), (1e-3, "ms"), (1e-6, "us")]
    scale, suffix = next((s for s in scales if value >= s[0]), scales[-1])
    return f"{value / scale:.3f} {suffix}".rstrip()


def format_interval(row: dict[str, Any]) -> str:
    """Formats the interval of a ratio. After a single round, or if the noise is too high, there is
    no meaningful interval.
    """
    return f"{row['low']:.3f} to {row['high']:.3f}" if 0.01 < row["low"] and row["high"] < 100 else "unknown"


def print_rows(table: Sequence[dict[str, Any]], unit: str) -> None:
    """Prints a table of rows for each measure. A ratio above 1 means that the new build is
    better.
    """
    words = {"worse": "WORSE", "better": "better", "": ""}
    for measure in MEASURES:
        measure_rows = [row for row in table if row["measure"] == measure]
        if measure_rows:
            print(f"\n{measure:48} {'old':>12} {'new':>12} {'old/new':>8}   interval")
        for row in measure_rows:
            label = f"{row['workload']} {row['shape']}"
            old, new = (format_value(row[side], measure, unit) for side in SIDES)
            cells = f"{old:>12} {new:>12} {row['ratio']:8.3f}   {format_interval(row):16}"
            print(f"  {label:46} {cells} {words[row['verdict']]}".rstrip())


def print_summary(results: Results, table: Sequence[dict[str, Any]]) -> None:
    """Prints the geometric means, the failures, and the number of rows that differ
    significantly.
    """
    print(f"\n{'geometric means':74} {'old/new':>8}   interval")
    for row in means(results):
        print(f"  {row['measure'] + ' (' + str(row['workloads']) + ')':72} {row['ratio']:8.3f}   {format_interval(row)}")
    for name, sides in results.failures.items():
        for side, message in sorted(sides.items()):
            print(f"  {name} fails with the {SIDES[side]} build: {message}")
    worse, better = (sum(row["verdict"] == verdict for row in table) for verdict in ("worse", "better"))
    print(f"\n{len(table)} rows: {worse} significantly worse, {better} significantly better")


def regressions(results: Results, table: Sequence[dict[str, Any]], percent: float) -> list[str]:
    """Returns the results that are significantly worse by more than a limit, and the workloads that
    fail with the new build only.
    """
    result = [
        f"{row['workload']}, {row['measure']}: {100 * (1 / row['ratio'] - 1):.1f} % more"
        for row in table
        if row["verdict"] == "worse" and 1 / row["ratio"] > 1 + percent / 100
    ]
    return result + [f"{name} fails" for name, sides in results.failures.items() if list(sides) == [1]]
