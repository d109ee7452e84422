"""Compares two builds of Pliant: run time, compile time and peak memory of models and programs, with intervals for noise.

``python against.py OLD NEW``, within ``benches/``. OLD and NEW are each a wheel, a Python interpreter (or the environment's folder) that
has Pliant, or a git revision, which is built with maturin into ``target/against``. A ratio above 1 means that NEW is better. Comparing a
build with itself must show no significant difference.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path

from compare_builds import comparison_report, instruction_counts, measurement_rounds
from compare_builds.build_environments import BuildError, find_build
from compare_builds.instruction_counts import NoCounter
from compare_builds.workloads import NoWorkloads, workloads


def positive_int(text: str) -> int:
    """Parses a command-line option that must be a positive integer."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def parse_arguments() -> argparse.Namespace:
    """Parses the command line of the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--models", metavar="PATTERN", action="append", default=[],
                        help="only models and programs whose names match, such as 'resnet*' or 'op/*'; may be repeated")
    parser.add_argument("--rounds", type=positive_int, help="pairs of processes (default: 7, with --instructions 2)")
    parser.add_argument("--threads", type=positive_int, default=1, help="threads of a run (default: 1)")
    parser.add_argument("--zoo", metavar="FOLDER", type=Path, help="models (NAME.onnx and NAME.d/*.npz, or NAME/*); default: peers/zoo")
    parser.add_argument("--cpu-time", action="store_true", help="time the CPU instead of the clock: for machines that others use")
    parser.add_argument("--instructions", action="store_true", help="count instructions instead of time (perf or valgrind)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all rows and every round's values")
    parser.add_argument("--fail-above", metavar="PERCENT", type=float,
                        help="exit with 1 where something is significantly worse by more than this, or fails with NEW only")
    return parser.parse_args()


def write_json(path: Path, results: measurement_rounds.Results, about: dict[str, object]) -> None:
    """Writes the comparison to `path` as JSON: all rows, geometric means, values of every round,
    and failures.
    """
    pairs = [{"workload": name, "measure": measure, "pairs": pairs} for (name, measure), pairs in results.pairs.items()]
    failures = {name: {comparison_report.SIDES[side]: text for side, text in sides.items()} for name, sides in results.failures.items()}
    # JSON has no infinity: an interval without an end is null.
    rows, means = (
        [row | {"high": row["high"] if math.isfinite(row["high"]) else None} for row in table]
        for table in (comparison_report.rows(results), comparison_report.means(results))
    )
    document = about | {"rows": rows, "geomeans": means, "rounds": pairs, "failures": failures}
    path.write_text(json.dumps(document, indent=1) + "\n")


def compare(args: argparse.Namespace) -> int:
    """Measures both builds and prints the tables. Returns the exit status, 1 if `--fail-above` is
    exceeded.
    """
    if args.json and not os.access(args.json.absolute().parent, os.W_OK):
        raise NoWorkloads(f"{args.json}: its folder cannot be written")
    builds = [find_build(args.old), find_build(args.new)]
    chosen = workloads(args.zoo, args.models)
    print(f"old: {builds[0].describe()}\nnew: {builds[1].describe()}", flush=True)
    unit = "CPU time" if args.cpu_time else "time"
    if args.instructions:
        tool, results = instruction_counts.measure(builds, chosen, args.rounds or 2, args.threads)
        unit = "instructions"
        print(f"instructions counted by {tool}")
    else:
        results = measurement_rounds.measure(builds, chosen, args.rounds or 7, args.threads, "cpu" if args.cpu_time else "wall")
    table = comparison_report.rows(results)
    comparison_report.print_rows(table, unit)
    comparison_report.print_summary(results, table)
    if args.json:
        about = {"old": builds[0].about | {"given": args.old}, "new": builds[1].about | {"given": args.new}}
        write_json(args.json, results, about | {"unit": unit, "threads": args.threads})
    failing = comparison_report.regressions(results, table, args.fail_above) if args.fail_above is not None else []
    for line in failing:
        print(f"above the limit of {args.fail_above:g} %: {line}")
    return 1 if failing else 0


def main() -> None:
    """Runs the comparison. Prints an error as one line and exits with status 2 if a build or
    workload is unusable.
    """
    args = parse_arguments()
    try:
        sys.exit(compare(args))
    except (BuildError, NoWorkloads, NoCounter) as error:
        print(f"against.py: error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
