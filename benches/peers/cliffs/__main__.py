"""The command line of `python -m peers.cliffs`: chooses models, runs them in both runtimes, prints
findings and a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from timing import geomean, require_release

from . import __doc__ as about
from . import model_zoo_cases, operator_cases
from .case_measurement import FAILURES, PEER_WRONG, SKIPPED, Outcome, Settings
from .worker_process import Request, Worker

# Compilations that take longer are listed.
SLOW_COMPILE = 10.0


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line of the cliff search."""
    parser = argparse.ArgumentParser(prog="peers.cliffs", description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--operators", nargs="?", const="*", metavar="PATTERN", help="operators whose name matches, as file names do"
    )
    parser.add_argument("--fixed", action="store_true", help="with --operators: dims that the model fixes, instead of symbolic dims")
    parser.add_argument("--zoo", nargs="?", const="", metavar="FOLDER", help="the models of peers/zoo, or of a folder like it")
    parser.add_argument("--random", type=int, metavar="N", help="number of generated networks")
    parser.add_argument("--replay", metavar="FOLDER", help="the cases that --save wrote")
    parser.add_argument("--seed", type=int, default=0, help="seed of the generated networks")
    parser.add_argument("--start", type=int, default=0, metavar="I", help="index of the first generated network")
    parser.add_argument("--below", type=float, default=0.5, help="print cases whose ratio is lower (default: 0.5)")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of both engines (default: all cores)"
    )
    parser.add_argument("--cpu-time", action="store_true", help="compare CPU time with one thread, for a loaded machine")
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="seconds of CPU time without progress that end a case (default: 60)"
    )
    parser.add_argument("--save", metavar="FOLDER", help="write the model and inputs of each finding")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all outcomes")
    parser.add_argument("--list", action="store_true", help="list operators without a case and exit")
    return parser.parse_args(argv)


def requests(args: argparse.Namespace) -> list[Request]:
    """Returns the cases that the command line selects, or all operators if it selects none."""
    none_selected = args.operators is None and args.zoo is None and args.random is None and args.replay is None
    selected: list[Request] = []
    if args.operators is not None or none_selected:
        selected += [("operators", name) for name in operator_cases.cases(args.operators or "*", args.fixed)]
    if args.zoo is not None:
        selected += [("zoo", name) for name in model_zoo_cases.names(args.zoo)]
    if args.random is not None:
        selected += [("random", f"{args.seed}:{i}") for i in range(args.start, args.start + args.random)]
    if args.replay is not None:
        selected += [("replay", str(path.parent)) for path in sorted(Path(args.replay).glob("**/model.onnx"))]
    return selected


def format_sizes(outcome: Outcome) -> str:
    """Formats the sizes of the symbols as text: `n=1 c=2`."""
    return " ".join(f"{k}={v}" for k, v in outcome.sizes.items())


def format_outcome(outcome: Outcome) -> str:
    """Formats the outcome of a case at one size in one line."""
    head = f"{outcome.case}  [{format_sizes(outcome)}]"
    times = f"{outcome.ratio:6.3f}  {head}  ONNX Runtime {outcome.peer * 1e3:.3f} ms, Pliant {outcome.pliant * 1e3:.3f} ms"
    return times if not outcome.message else f"{outcome.status.upper()}  {times if outcome.pliant else head}  {outcome.message}"


def report(outcome: Outcome, below: float) -> None:
    """Prints an outcome if it is a finding: a failure, a wrong result or a low speed ratio."""
    if outcome.status in FAILURES or (outcome.pliant and outcome.ratio < below):
        print(format_outcome(outcome))
        print(*(f"        {text}\n" for text in outcome.breakdown), sep="", end="", flush=True)


def summarize(outcomes: list[Outcome], below: float) -> None:
    """Prints the numbers of outcomes, the geometric mean of the ratios, the worst ratios, failures
    and slow compilations.
    """
    measured = [o for o in outcomes if o.pliant]
    failed = [o for o in outcomes if o.status in FAILURES]
    skipped = sorted({f"{o.case}: {o.message}" for o in outcomes if o.status == SKIPPED})
    print(
        f"\n{len({o.case for o in outcomes})} cases, {len(measured)} of {len(outcomes)} sizes measured, {len(failed)} failures, ",
        end="",
    )
    print(f"{len(skipped)} skipped")
    if measured:
        ratio = geomean([o.ratio for o in measured])
        low = sum(o.ratio < below for o in measured)
        print(f"geometric mean of ONNX Runtime's time / Pliant's: {ratio:.2f}; {low} below {below}")
        print("worst:", *(format_outcome(o) for o in sorted(measured, key=lambda o: o.ratio)[:10]), sep="\n  ")
    slow = {o.case: o.compile_seconds for o in outcomes if o.compile_seconds > SLOW_COMPILE}
    for title, lines in (
        ("failures", [format_outcome(o) for o in failed]),
        (
            "results in which ONNX Runtime differs from the reference",
            [format_outcome(o) for o in outcomes if o.status == PEER_WRONG],
        ),
        ("skipped", [text[:200] for text in skipped]),
        ("slow compilations", [f"{name}: {seconds:.1f} s" for name, seconds in slow.items()]),
    ):
        if lines:
            print(f"{title}:", *lines, sep="\n  ")


def main() -> None:
    """Runs the search. Exits with status 1 if Pliant fails or returns a wrong result in any
    case.
    """
    args = parse_arguments()
    if args.list:
        print(*operator_cases.missing(), sep="\n")
        return
    require_release()
    # The outcomes so far are written when the search is ended early.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threads = 1 if args.cpu_time else args.threads
    worker = Worker(Settings(threads, args.below, args.save, args.cpu_time), args.timeout)
    outcomes: list[Outcome] = []
    try:
        for request in requests(args):
            for outcome in worker.run(request):
                outcomes.append(outcome)
                report(outcome, args.below)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        worker.stop()
        if args.json:
            args.json.write_text(json.dumps([o.as_json() for o in outcomes], indent=1))
    summarize(outcomes, args.below)
    sys.exit(any(o.status in FAILURES for o in outcomes))


if __name__ == "__main__":
    main()
