"""Counts instructions with ``perf stat``, or with valgrind if the CPU's counters are not accessible. Unlike times, the counts do
not depend on other load on the machine.

A worker process of a build compiles a workload, and runs each case once and then several more times. Each of these is a step. The
worker calls `getsid` after each step, and callgrind dumps its counts at these calls. With perf, the process is run repeatedly
with one more step each time, and the difference of two runs is the count of the last step. valgrind does not support AVX-512, so
callgrind counts the kernels for AVX2.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from compare_builds.build_environments import FLAGS, Build, environment
from compare_builds.measurement_rounds import (
    BUILD_ORDER,
    WORKER,
    WorkloadFailure,
    Results,
    Worker,
    WorkerError,
    progress,
)
from compare_builds.workloads import Workload

EVENT = "instructions:u"
RUN_SECONDS = 0.02
"""A case is run about this long, as it takes without valgrind."""
MAX_RUNS = 1000

Count = Callable[[Build, Path, int, Sequence[str]], list[float]]
"""Counts the instructions of the steps of a workload (a file) with a number of threads."""


class NoCounter(Exception):
    """Raised if no tool can count instructions on this machine. The message is one line."""


def run(command: Sequence[str | Path]) -> str:
    """Runs a command and returns its standard error, where perf and valgrind write their output."""
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                          env=environment(PYTHONHASHSEED="0"), cwd="/")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("==")]
        raise WorkerError(f"the command failed with status {done.returncode}: {lines[-1].strip() if lines else 'no message'}")
    return done.stderr


def worker_command(build: Build, workload: Path, threads: int, steps: Sequence[str]) -> list[str | Path]:
    """Returns the command that runs a worker process with the given steps, such as `compile` or
    `small:20`.
    """
    return [build.python, *FLAGS, WORKER, workload, str(threads), *steps]


def by_perf(build: Build, workload: Path, threads: int, steps: Sequence[str]) -> list[float]:
    """Returns the instructions of each step, counted with perf as differences between runs with one
    more step each.
    """
    totals = []
    for count in range(len(steps) + 1):
        text = run(["perf", "stat", "-x", ",", "-e", EVENT, *worker_command(build, workload, threads, steps[:count])])
        totals.append(perf_count(text))
    return [max(after - before, 1.0) for before, after in itertools.pairwise(totals)]


def perf_count(text: str) -> float:
    """Parses the instruction count in the output of `perf stat`."""
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) > 2 and cells[2].startswith(EVENT.split(":")[0]) and cells[0].isdigit():
            return float(cells[0])
    raise WorkerError("perf counted nothing")


def by_callgrind(build: Build, workload: Path, threads: int, steps: Sequence[str]) -> list[float]:
    """Returns the instructions of each step, which callgrind dumps whenever the worker process
    marks the end of a step.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=getsid*"]
        run([*tool, *worker_command(build, workload, threads, steps)])
        # `out.1` ends at the first mark, `out.2` at the one after the first step; `out` contains
        # what follows the last mark.
        parts = [Path(f"{out}.{number}") for number in range(2, len(steps) + 2)]
        if not all(part.exists() for part in parts) or Path(f"{out}.{len(steps) + 2}").exists():
            raise WorkerError("callgrind did not dump once at each mark")
        return [callgrind_count(part.read_text()) for part in parts]


def callgrind_count(text: str) -> float:
    """Parses the instruction count of a callgrind dump. Returns at least 1."""
    match = re.search(r"^totals: (\d+)", text, re.MULTILINE)
    return max(float(match[1]), 1.0) if match else 1.0


def counter() -> tuple[str, Count]:
    """Returns the tool that can count instructions on this machine, perf or callgrind, and its
    counting function.
    """
    why = "perf is not installed"
    if shutil.which("perf"):
        try:
            perf_count(run(["perf", "stat", "-x", ",", "-e", EVENT, "true"]))
            return "perf", by_perf
        except WorkerError:
            why = "perf has no access to the CPU's counters"
    if shutil.which("valgrind"):
        return "callgrind", by_callgrind
    raise NoCounter(f"--instructions needs perf or valgrind: {why}, and valgrind is not installed")


def measure_run_counts(build: Build, workload: Workload, threads: int) -> dict[str, int]:
    """Returns how many runs of each case are counted, derived from the run time of the case with
    one build.
    """
    with Worker(build, workload, threads, "wall") as process:
        cases = process.ask("open", workload=workload)
        process.ask("compile")
        times = {case: process.ask("phase", case=case, seconds=0.0) for case in cases}
    return {case: max(1, min(MAX_RUNS, int(RUN_SECONDS / seconds))) for case, seconds in times.items()}


def count_workload(
    count: Count, builds: Sequence[Build], workload: Workload, threads: int, results: Results, order: Sequence[int]
) -> None:
    """Counts the instructions of one workload with both builds and adds the two counts to the
    results.
    """
    sides: list[list[float]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workload.json"
        file.write_text(json.dumps(workload))
        side = 0
        try:
            run_counts = measure_run_counts(builds[0], workload, threads)
            steps = ["compile", *(step for case, n in run_counts.items() for step in (f"{case}:1", f"{case}:{n}"))]
            for side in order[:2]:
                sides[side] = count(builds[side], file, threads, steps)
        except WorkerError as error:
            raise WorkloadFailure(side, str(error)) from error
    results.add(workload["name"], "compile", sides[0][0], sides[1][0])
    for index, (case, n) in enumerate(run_counts.items()):
        at = 2 + 2 * index
        results.add(workload["name"], case, sides[0][at] / n, sides[1][at] / n)


def measure(builds: Sequence[Build], workloads: Sequence[Workload], rounds: int, threads: int) -> tuple[str, Results]:
    """Counts all workloads in all rounds. Returns the name of the counting tool and the results."""
    name, count = counter()
    results = Results()
    for number in range(rounds):
        order = [side ^ (number % 2) for side in BUILD_ORDER]
        for workload in workloads:
            if workload["name"] in results.failures:
                continue
            progress(f"{name}, round {number + 1} of {rounds}: {workload['name']}")
            try:
                count_workload(count, builds, workload, threads, results, order)
            except WorkloadFailure as failure:
                results.fail(workload["name"], failure.side, str(failure))
    progress("")
    return name, results
