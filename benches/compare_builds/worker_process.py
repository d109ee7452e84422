"""A process of one build, which executes the requests of `measurement_rounds` and `instruction_counts`. Imports only
NumPy and the Pliant of its environment.

Without arguments, it reads requests from standard input and writes replies to standard output, one JSON object per line. With a
workload file, a number of threads and steps (``compile``, ``small:20``), it runs the steps and calls `getsid` before and after
each step. Nothing else calls `getsid`, and callgrind writes its counts at these calls.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pliant
from pliant.script import from_source

Array = np.ndarray[Any, np.dtype[Any]]
BATCH_SECONDS = 50e-6
"""Calls are timed in batches that take at least this long."""
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}

WARM_UP = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            out = R.add(x, x)
            R.output(out)
        return out
"""


def program_inputs(workload: dict[str, Any], case: str) -> list[Array]:
    """Generates the input arrays of a program. Every process generates the same arrays."""
    generator, sizes = np.random.default_rng(zlib.crc32(f"{workload['name']} {case}".encode())), workload[case]
    arrays: list[Array] = []
    for spec in workload["inputs"]:
        shape = [sizes.get(dim, dim) for dim in spec["dims"]]
        if spec["dtype"] == "int64":
            arrays.append(generator.integers(0, sizes["n"], shape))
        else:
            arrays.append(generator.standard_normal(shape, np.float32))
    return arrays


def smallest_and_largest_cases(files: list[str]) -> dict[str, dict[str, Array]]:
    """Returns the cases of a model whose inputs have the fewest and the most elements, ignoring
    cases with empty inputs.
    """
    cases: list[dict[str, Array]] = []
    for file in files:
        with np.load(file) as data:
            cases.append(dict(data))
    cases = sorted((c for c in cases if all(x.size for x in c.values())), key=lambda c: sum(x.size for x in c.values()))
    if not cases:
        raise ValueError("all cases of the model have empty inputs, so none can be timed")
    return {"small": cases[0], "large": cases[-1]} if len(cases) > 1 else {"small": cases[0]}


def largest_shape(arrays: list[Array]) -> str:
    """Returns the shape of the largest input array."""
    return "x".join(map(str, max(arrays, key=lambda x: x.size).shape)) or "scalar"


class Job:
    """A workload that this worker process executes: its inputs and, once compiled, its model."""

    def __init__(self, workload: dict[str, Any], threads: int, clock: str = "wall") -> None:
        self.workload, self.threads, self.clock = workload, threads, CLOCKS[clock]
        self.model: Any = None
        self.feeds: dict[str, Any] = {}
        if "model" in workload:
            self.feeds = dict(smallest_and_largest_cases(workload["files"]))
            self.cases = {case: largest_shape(list(feeds.values())) for case, feeds in self.feeds.items()}
        else:
            self.feeds = {case: program_inputs(workload, case) for case in ("small", "large")}
            self.cases = {case: largest_shape(arrays) for case, arrays in self.feeds.items()}

    def compile(self) -> float:
        """Compiles the workload. Returns the seconds, including import and parsing."""
        self.model = None
        gc.collect()
        start = self.clock()
        source: Any = self.workload["model"] if "model" in self.workload else from_source(self.workload["source"])
        self.model = pliant.compile(source, threads=self.threads)
        return self.clock() - start

    def call(self, case: str) -> Callable[[], object]:
        """Returns a function without arguments that runs a case once."""
        model, feeds = self.model, self.feeds[case]
        if "model" in self.workload:
            return lambda: model.run(None, feeds)
        return lambda: model(*feeds)

    def phase(self, case: str, seconds: float) -> float:
        """Runs a case repeatedly for a number of seconds, after two warm-up runs. Returns the
        shortest time of a run in seconds.
        """
        call, clock = self.call(case), self.clock
        call()
        start = clock()
        call()
        batch = range(max(1, int(BATCH_SECONDS / max(clock() - start, 1e-9))))
        best, end = float("inf"), clock() + seconds
        while True:
            start = clock()
            for _ in batch:
                call()
            now = clock()
            best = min(best, (now - start) / len(batch))
            if now > end:
                return best

    def memory(self) -> dict[str, float]:
        """Compiles the workload and then runs it. Returns by how many megabytes the compilation and the run each raised the peak
        memory of the process.
        """
        base = process_size("VmRSS")
        reset_peak()
        self.compile()
        compiled = process_size("VmHWM") - base
        reset_peak()
        for case in self.cases:
            self.call(case)()
        return {"compile": compiled, "run": process_size("VmHWM") - base}


def process_size(field: str) -> float:
    """Reads a memory figure of this process, such as its peak, in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def reset_peak() -> None:
    """Resets the peak size to the current size. If the system forbids this, the peak remains the maximum since
    the start of the process."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def handle_request(job: Job | None, request: dict[str, Any]) -> tuple[Job | None, Any]:
    """Executes a request. Returns the open job after the request (`None` if it closes the job), and the reply."""
    if request["do"] == "open":
        job = Job(request["workload"], request["threads"], request["clock"])
        return job, job.cases
    if job is None:
        raise ValueError("no workload is open: the first request must be 'open'")
    match request["do"]:
        case "compile":
            return job, job.compile()
        case "phase":
            return job, job.phase(request["case"], request["seconds"])
        case "memory":
            return job, job.memory()
        case "close":
            return None, None
        case other:
            raise ValueError(f"unknown request {other!r}")


def serve() -> None:
    """Answers requests until the input ends. Pliant's output goes to the error stream."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job: Job | None = None
    for line in sys.stdin:
        try:
            job, value = handle_request(job, json.loads(line))
            reply = {"value": value}
        except Exception as error:  # noqa: BLE001 - whatever a build cannot do is reported
            job = None
            reply = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}
        if job is None:
            gc.collect()
        try:
            replies.write(json.dumps(reply) + "\n")
            replies.flush()
        except BrokenPipeError:
            os._exit(1)  # The command has ended. Closing the pipe would fail again.


def run_steps(job: Job, steps: list[str]) -> None:
    """Executes steps: compiles, or runs a case several times. Calls `getsid` as a mark before and
    after each step.
    """
    for step in steps:
        os.getsid(0)
        if step == "compile":
            job.compile()
            continue
        case, _, count = step.partition(":")
        call = job.call(case)
        for _ in range(int(count)):
            call()
    os.getsid(0)


def main() -> None:
    """The entry point: answers requests from standard input, or runs the steps of the command
    line.
    """
    program: Any = from_source(WARM_UP)
    pliant.compile(program, threads=1)(np.zeros(4, np.float32))
    gc.disable()
    if len(sys.argv) == 1:
        serve()
    else:
        run_steps(Job(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])), sys.argv[3:])


if __name__ == "__main__":
    main()
