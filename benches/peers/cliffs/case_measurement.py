"""Runs a case in both engines: compares results, interleaves timings, and breaks down
Pliant's time."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pliant

from peers.engines import onnx_runtime

from .benchmark_case import Case, Feeds

# Maximum seconds of all measurements of an engine at one size, and seconds of one visit.
MAX_SECONDS = 0.5
VISIT_SECONDS = 0.006
# In this time, the spinning threads of the peer go to sleep.
PAUSE_SECONDS = 0.02
# The reference implementation is slow; it is not run for larger inputs.
REFERENCE_ELEMENTS = 200_000
AGREES = "the reference implementation agrees with {}"
Call = Callable[[], list[Any]]
Clock = Callable[[], float]
OK, WRONG, ERROR, SKIPPED, CRASH, HANG = "ok", "wrong result", "error", "skipped", "crash", "timeout"
# The engines differ, and the reference implementation agrees only with Pliant.
PEER_WRONG = "peer differs"
FAILURES = (WRONG, ERROR, CRASH, HANG)


@dataclass
class Settings:
    """Options of the search, from the command line."""

    threads: int
    below: float
    save: str | None = None
    # Measure CPU time rather than elapsed time, with one thread: on a loaded machine.
    cpu: bool = False

    @property
    def clock(self) -> Clock:
        """Returns the clock function of the measurement: CPU time or elapsed time."""
        return time.process_time if self.cpu else time.perf_counter


@dataclass
class Outcome:
    """The outcome of a case at one size: times of both engines, and an error or a difference if
    there is one. A time is missing if that engine failed.
    """

    case: str
    sizes: dict[str, int] = field(default_factory=dict)
    status: str = OK
    message: str = ""
    peer: float = 0.0
    pliant: float = 0.0
    compile_seconds: float = 0.0
    breakdown: list[str] = field(default_factory=list)
    saved: str = ""
    # The tolerances of the comparison, as in `Case`.
    error: float | None = None
    step: int = 0

    @property
    def ratio(self) -> float:
        """ONNX Runtime's time divided by Pliant's time."""
        return self.peer / self.pliant if self.pliant else 0.0

    def as_json(self) -> dict[str, Any]:
        """Returns all fields and the ratio as a JSON object."""
        return {**asdict(self), "ratio": self.ratio}


def timed(call: Call, clock: Clock) -> tuple[list[Any], float]:
    """Calls a function and returns its results and the elapsed seconds."""
    start = clock()
    results = call()
    return results, clock() - start


def visit(call: Call, last: float, clock: Clock) -> tuple[float, float]:
    """Measures a short series of calls. Returns the seconds of one call, and the seconds of the whole
    series. `last` is the time of an earlier call: only faster calls are warmed up first.

    If the clock counts elapsed time, the time of one call is that of the fastest call. If it counts
    CPU time, it is the mean of all calls, since that clock may be coarser than a call.
    """
    start = clock()
    if last < VISIT_SECONDS:
        call()
    best, count, first = float("inf"), 0, clock()
    while True:
        begin = clock()
        call()
        now = clock()
        best, count = min(best, now - begin), count + 1
        if now - start > VISIT_SECONDS:
            return (now - first) / count if clock is time.process_time else best, now - start


def interleaved(calls: list[Call], first: list[float], rounds: int, clock: Clock) -> list[float]:
    """Times both engines in alternation and returns the shortest seconds of each. `first` contains
    the seconds of each engine's first call.
    """
    best, last, spent = [float("inf")] * len(calls), list(first), [0.0] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            if spent[index] + last[index] > MAX_SECONDS and best[index] < float("inf"):
                continue
            time.sleep(PAUSE_SECONDS)
            last[index], seconds = visit(call, last[index], clock)
            best[index], spent[index] = min(best[index], last[index]), spent[index] + seconds
    return best


def flatten(values: list[Any]) -> Iterator[Any]:
    """Flattens the results of a run, including nested sequences, to a list of arrays."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from flatten(list(value))
        else:
            yield value


def output_difference(a: Any, b: Any, case: Case) -> str | None:
    """Describes how an output differs from the expected output, or returns None if they agree."""
    if a is None or b is None:
        return None if a is b else "one engine returns no value"
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
    if case.error is None or not a.size:
        return None
    if a.dtype.kind not in "fc":
        distance = int(np.abs(a.astype(np.int64) - b.astype(np.int64)).max())
        return f"integers differ by {distance} in {(a != b).mean():.1%} of elements" if distance > case.step else None
    x, y = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(x), np.isnan(y)) or not np.array_equal(x[np.isinf(x)], y[np.isinf(y)]):
        return f"NaN or infinite elements differ: {np.isfinite(x).mean():.1%} finite, expected {np.isfinite(y).mean():.1%}"
    finite = np.isfinite(y) & np.isfinite(x)
    if not finite.any():
        return None
    absolute_errors = np.abs(x - y)[finite]
    error = float(absolute_errors.max() / max(1.0, np.abs(y[finite]).max()))
    return f"relative error {error:.1e} in an output of {list(a.shape)}" if error > case.error else None


def difference(ours: list[Any], theirs: list[Any], case: Case) -> str | None:
    """Describes the first difference among all outputs, or returns None if all agree."""
    a, b = list(flatten(ours)), list(flatten(theirs))
    if len(a) != len(b):
        return f"{len(a)} outputs, expected {len(b)}"
    differences = ((i, output_difference(x, y, case)) for i, (x, y) in enumerate(zip(a, b, strict=True)))
    return next((f"output {i}: {text}" for i, text in differences if text), None)


def reference_agreement(model: onnx.ModelProto, feeds: Feeds, ours: list[Any], theirs: list[Any], case: Case) -> str:
    """Returns which engine agrees with the reference implementation of ONNX."""
    from onnx.reference import ReferenceEvaluator

    if sum(np.asarray(x).size for x in feeds.values()) > REFERENCE_ELEMENTS:
        return "too large for the reference implementation"
    try:
        expected = list(ReferenceEvaluator(model).run(None, feeds))
    except Exception as e:  # noqa: BLE001
        return f"the reference implementation fails: {type(e).__name__}"
    agreeing = [name for name, x in (("Pliant", ours), ("ONNX Runtime", theirs)) if difference(x, expected, case) is None]
    return AGREES.format(" and ".join(agreeing) or "neither")


def breakdown(model: pliant.Model, arguments: list[Any]) -> list[str]:
    """Returns the functions in which Pliant spends most of its time, from the fastest of several
    instrumented runs.
    """
    machine = pliant.relax.VirtualMachine(model)
    graph_functions = set(model.function_names)
    runs: list[dict[str, list[float]]] = []
    start_times: list[float] = []

    def record(_func: Any, name: str, before: bool, *_: Any) -> None:
        if name in graph_functions:
            return
        now = time.perf_counter()
        if before:
            start_times.append(time.perf_counter())
        elif start_times:
            runs[-1][name].append(now - start_times.pop())

    machine["main"](*arguments)
    machine.set_instrument(record)
    end = time.perf_counter() + MAX_SECONDS
    while not runs or (len(runs) < 3 and time.perf_counter() < end):
        runs.append(defaultdict(list))
        machine["main"](*arguments)
    fastest = min(runs, key=lambda run: sum(map(sum, run.values())))
    total = sum(map(sum, fastest.values())) or 1.0
    top = sorted(fastest.items(), key=lambda item: -sum(item[1]))[:6]
    lines = [f"{sum(s) * 1e3:10.3f} ms {sum(s) / total:4.0%}  {len(s):5} x {name}" for name, s in top]
    return lines + explanation(model)


def explanation(model: pliant.Model) -> list[str]:
    """Returns the report of `Model.explain`, or nothing if this build does not have that method."""
    explain = getattr(model, "explain", None)
    if explain is None:
        return []
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = explain()
    return [*printed.getvalue().splitlines(), *(str(result).splitlines() if result is not None else [])]


def save(folder: str, case: Case, model: onnx.ModelProto, index: int, feeds: Feeds, outcome: Outcome) -> str:
    """Writes the model and the inputs of a reported finding into a folder."""
    target = Path(folder) / re.sub(r"[^A-Za-z0-9.=]+", "-", case.name).strip("-")
    target.mkdir(parents=True, exist_ok=True)
    if not (target / "model.onnx").exists():
        onnx.save(model, target / "model.onnx")
    np.savez(target / f"inputs{index}.npz", **feeds)
    outcome.saved = str(target)
    (target / f"outcome{index}.json").write_text(json.dumps(outcome.as_json(), indent=1))
    return str(target)


class Runner:
    """Runs one case at all sizes. `send` receives the current stage and each outcome."""

    def __init__(self, case: Case, settings: Settings, send: Callable[[str, Any], None]) -> None:
        self.case, self.settings, self.send = case, settings, send
        # The reference implementation disagreed with the peer at a smaller size.
        self.peer_wrong = False

    def run(self) -> None:
        """Runs the case at all sizes. Skips a case that ONNX Runtime does not support."""
        self.send("stage", "making the model")
        try:
            self.model = self.case.model()
        except (OSError, RuntimeError) as e:
            # Weights that are not installed.
            return self.send("outcome", Outcome(self.case.name, status=SKIPPED, message=one_line(e)))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(self.model, path)
            self.send("stage", "loading into ONNX Runtime")
            try:
                peer = onnx_runtime(path, self.settings.threads)
            except Exception as e:  # noqa: BLE001
                return self.send("outcome", Outcome(self.case.name, status=SKIPPED, message=f"ONNX Runtime: {one_line(e)}"))
            self.send("stage", "compiling in Pliant")
            start = time.perf_counter()
            compiled: pliant.Model | Exception
            try:
                compiled = pliant.compile(path, threads=self.settings.threads)
            except Exception as e:  # noqa: BLE001
                compiled = e
            seconds = time.perf_counter() - start
            for index, sizes in enumerate(self.case.sizes):
                feeds = self.case.feeds(sizes)
                outcome = Outcome(
                    self.case.name, dict(sizes), compile_seconds=seconds, error=self.case.error, step=self.case.step
                )
                self.measure(compiled, lambda feeds=feeds: peer(feeds), feeds, outcome)  # type: ignore[misc]
                if self.settings.save and (
                    outcome.status in FAILURES or (outcome.pliant and outcome.ratio < self.settings.below)
                ):
                    save(self.settings.save, self.case, self.model, index, feeds, outcome)
                self.send("outcome", outcome)

    def measure(self, compiled: pliant.Model | Exception, peer: Call, feeds: Feeds, outcome: Outcome) -> None:
        """Runs the case at one size and fills in its outcome."""
        self.send("stage", f"running in ONNX Runtime at {outcome.sizes}")
        try:
            theirs, peer_first = timed(peer, self.settings.clock)
        except Exception as e:  # noqa: BLE001
            outcome.status, outcome.message = SKIPPED, f"ONNX Runtime: {one_line(e)}"
            return
        self.send("stage", f"running in Pliant at {outcome.sizes}")
        try:
            if isinstance(compiled, Exception):
                raise compiled
            model = compiled
            call: Call = lambda: model.run(None, feeds)
            ours, first = timed(call, self.settings.clock)
        except Exception as e:  # noqa: BLE001
            outcome.status, outcome.message = ERROR, f"{type(e).__name__}: {one_line(e)}"
            return
        text = difference(ours, theirs, self.case)
        if text:
            agreement = reference_agreement(self.model, feeds, ours, theirs, self.case)
            self.peer_wrong |= agreement == AGREES.format("Pliant")
            outcome.status, outcome.message = PEER_WRONG if self.peer_wrong else WRONG, f"{text}; {agreement}"
        outcome.peer, outcome.pliant = self.times([peer, call], [peer_first, first])
        if outcome.ratio < self.settings.below:
            outcome.breakdown = breakdown(model, [feeds[i.name] for i in self.model.graph.input])

    def times(self, calls: list[Call], first: list[float]) -> list[float]:
        """Returns the shortest seconds of both engines. A low ratio is measured a second time."""
        best = interleaved(calls, first, 3, self.settings.clock)
        if best[0] < 1.2 * self.settings.below * best[1]:
            best = [min(pair) for pair in zip(best, interleaved(calls, best, 4, self.settings.clock), strict=True)]
        return best


def one_line(error: BaseException) -> str:
    """Returns the text of an error in one line."""
    text = " ".join(str(error).split())
    return text if len(text) < 400 else text[:400] + "..."
