"""Rounds of measurements. Each round uses a fresh worker process of each build, and the two workers alternate at every workload.

A round starts one process of each build; they run until its end. Each workload is compiled and run in phases in the order A B B A
A B B A, and B A A B B A A B in the next round, so that slow drift of the machine cancels. The result of a case is the median over
its phases of the best time within each. Peak memory is measured in an additional process for each build and workload.
"""

from __future__ import annotations

import json
import select
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from compare_builds.build_environments import FLAGS, Build, environment
from compare_builds.confidence_intervals import Pair
from compare_builds.workloads import Workload

WORKER = Path(__file__).with_name("worker_process.py")
PHASE_SECONDS = 0.02
LONG_CALL = 0.05
"""Calls and compilations that take longer have half as many phases."""
REPLY_SECONDS = 600
MIN_MEGABYTES = 4.0
"""Smaller peaks count as this value, since they vary by a few pages of Python itself."""
BUILD_ORDER = [0, 1, 1, 0]

Row = tuple[str, str]
"""The name of a workload, and what is measured: ``small``, ``large``, ``compile``, ``compile MB`` or ``run MB``."""


class WorkerError(Exception):
    """Raised if a worker process could not execute a request. The message is one line."""


class WorkloadFailure(Exception):
    """Raised if a workload fails with one build. The number of the build is 0 for the old and 1 for
    the new one.
    """

    def __init__(self, side: int, message: str) -> None:
        super().__init__(message)
        self.side = side


@dataclass
class Results:
    """The results of all rounds: pairs of values (old, new) for each row, the shapes of the cases,
    and the failures of each build.
    """

    pairs: dict[Row, list[Pair]] = field(default_factory=dict)
    shapes: dict[Row, str] = field(default_factory=dict)
    failures: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, name: str, measure: str, old: float, new: float) -> None:
        """Adds the pair of values (old, new) of one round to a row."""
        self.pairs.setdefault((name, measure), []).append((old, new))

    def fail(self, name: str, side: int, message: str) -> None:
        """Records the failure of a workload with one build, and excludes the workload from later
        rounds.
        """
        self.failures.setdefault(name, {})[side] = message


class Worker:
    """A process that runs workloads with one build and answers the requests of this process."""

    def __init__(self, build: Build, workload: Workload, threads: int, clock: str) -> None:
        self.build, self.defaults = build, {"threads": threads, "clock": clock}
        self.process: subprocess.Popen[bytes] | None = None
        if workload:
            self.ask("open", workload=workload)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the worker process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def ask(self, what: str, **request: Any) -> Any:
        """Sends a request to the worker process and returns its reply. Starts the process if it is
        not running.
        """
        if self.process is None:
            command: list[str | Path] = [self.build.python, *FLAGS, WORKER]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, env=environment(), cwd="/")
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"do": what} | self.defaults | request).encode() + b"\n")
        except BrokenPipeError:
            pass  # It has ended, which reading detects.
        text = b""
        while not text.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], REPLY_SECONDS)[0]:
                self.stop()
                raise WorkerError(f"no reply to '{what}' within {REPLY_SECONDS} s")
            part = self.process.stdout.read(65536)
            if not part:
                status = self.process.wait()
                self.stop()
                raise WorkerError(f"the process ended with status {status} at '{what}'")
            text += part
        reply = json.loads(text)
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply["value"]


def progress(text: str) -> None:
    """Shows on a terminal what is being measured."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def ask(workers: Sequence[Worker], side: int, what: str, **request: Any) -> Any:
    """Sends a request to one of the two worker processes and returns its reply. A failure becomes a
    `WorkloadFailure`.
    """
    try:
        return workers[side].ask(what, **request)
    except WorkerError as error:
        raise WorkloadFailure(side, str(error)) from error


def measure_alternating(workers: Sequence[Worker], order: Sequence[int], what: str, **request: Any) -> Pair:
    """Measures a workload in alternating phases and returns the median seconds of both builds."""
    times: tuple[list[float], list[float]] = ([], [])
    for side in order:
        times[side].append(ask(workers, side, what, **request))
    if max(map(min, times)) < LONG_CALL:
        for side in order:
            times[side].append(ask(workers, side, what, **request))
    return statistics.median(times[0]), statistics.median(times[1])


def measure_times(workers: Sequence[Worker], order: Sequence[int], workload: Workload, results: Results) -> None:
    """Compiles and runs a workload with both builds and records the times."""
    name = workload["name"]
    cases = [ask(workers, side, "open", workload=workload) for side in (0, 1)]
    measured = {"compile": measure_alternating(workers, order, "compile")}
    for case, shape in cases[0].items():
        measured[case] = measure_alternating(workers, order, "phase", case=case, seconds=PHASE_SECONDS)
        results.shapes[name, case] = shape
    for side in (0, 1):
        ask(workers, side, "close")
    for measure, (old, new) in measured.items():
        results.add(name, measure, old, new)


def measure_memory(builds: Sequence[Build], order: Sequence[int], workload: Workload, threads: int, results: Results) -> None:
    """Compiles and runs a workload once in a fresh process of each build, and records the peak
    memory.
    """
    peaks: list[dict[str, float]] = [{}, {}]
    for side in order[:2]:
        try:
            with Worker(builds[side], workload, threads, "wall") as worker:
                peaks[side] = worker.ask("memory")
        except WorkerError as error:
            raise WorkloadFailure(side, str(error)) from error
    for measure in ("compile", "run"):
        old, new = (max(peak[measure], MIN_MEGABYTES) for peak in peaks)
        results.add(workload["name"], f"{measure} MB", old, new)


def measure(builds: Sequence[Build], workloads: Sequence[Workload], rounds: int, threads: int, clock: str) -> Results:
    """Measures all workloads in all rounds. A workload that fails with one build is also tried with the other build, and then
    skipped.
    """
    results = Results()
    for count in range(rounds):
        order = [side ^ (count % 2) for side in BUILD_ORDER]
        with Worker(builds[0], {}, threads, clock) as old, Worker(builds[1], {}, threads, clock) as new:
            for workload in workloads:
                name = workload["name"]
                if name in results.failures:
                    continue
                progress(f"round {count + 1} of {rounds}: {name}")
                try:
                    measure_times((old, new), order, workload, results)
                    if workload["memory"]:
                        measure_memory(builds, order, workload, threads, results)
                except WorkloadFailure as failure:
                    results.fail(name, failure.side, str(failure))
                    try_other(builds[1 - failure.side], 1 - failure.side, workload, threads, results)
    progress("")
    return results


def try_other(build: Build, side: int, workload: Workload, threads: int, results: Results) -> None:
    """Runs a workload that failed with one build with the other build too, and records a failure of that build."""
    try:
        with Worker(build, workload, threads, "wall") as worker:
            worker.ask("memory")
    except WorkerError as error:
        results.fail(workload["name"], side, str(error))
