"""Runs cases in a worker process; a crash or a timeout ends the worker and is a finding."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from . import model_zoo_cases, operator_cases, random_networks, saved_cases
from .benchmark_case import Case
from .case_measurement import CRASH, ERROR, HANG, SKIPPED, Outcome, Runner, Settings

# A case by its kind and name; the worker builds it, so that no model is sent through the pipe.
Request = tuple[str, str]
# Cases after which a worker is replaced, which bounds the memory it keeps.
MAX_CASES_PER_WORKER = 150


def build_case(kind: str, name: str, cache: dict[str, Case]) -> Case:
    """Builds the case that a request names."""
    if kind == "zoo":
        return model_zoo_cases.case(name)
    if kind == "replay":
        return saved_cases.case(name)
    if kind == "random":
        seed, index = name.split(":")
        return random_networks.case(int(seed), int(index))
    if not cache:
        cache.update({**operator_cases.cases(), **operator_cases.cases(fixed=True)})
    return cache[name]


def serve(pipe: Connection, settings: Settings) -> None:
    """Serves requests in the worker process until it is stopped."""
    cache: dict[str, Case] = {}
    while (request := pipe.recv()) is not None:
        try:
            kind, name = request
            Runner(build_case(kind, name, cache), settings, lambda event, value: pipe.send((event, value))).run()
        except Exception:  # noqa: BLE001
            pipe.send(("outcome", Outcome(request[1], status=ERROR, message=f"in this script: {traceback.format_exc()}")))
        pipe.send(("done", None))


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of a process in seconds, or 0 if the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A worker process, replaced if it ends unexpectedly."""

    def __init__(self, settings: Settings, timeout: float) -> None:
        self.settings, self.timeout = settings, timeout
        self.process: Any = None
        self.served = 0

    def start(self) -> None:
        """Starts a fresh worker process."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.settings), daemon=True)
        self.process.start()
        theirs.close()
        self.served = 0

    def stop(self) -> None:
        """Ends the worker process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None

    def wait_for_message(self) -> bool:
        """Waits for a message of the worker process. Returns false if the worker exceeds the time
        limit, which applies to its CPU time, since other processes may occupy the machine. A wait of
        ten times the limit also returns false.
        """
        start, cpu_at_start = time.monotonic(), cpu_seconds(self.process.pid)
        while not self.pipe.poll(0.5):
            if cpu_seconds(self.process.pid) - cpu_at_start > self.timeout or time.monotonic() - start > 10 * self.timeout:
                return False
        return True

    def run(self, request: Request) -> Iterator[Outcome]:
        """Yields the outcomes of a case as they arrive from the worker process."""
        if self.served >= MAX_CASES_PER_WORKER:
            self.stop()
        if self.process is None:
            self.start()
        self.served += 1
        self.pipe.send(request)
        stage = "starting"
        while True:
            if not self.wait_for_message():
                self.stop()
                yield Outcome(request[1], status=HANG, message=f"no answer within {self.timeout:.0f} s while {stage}")
                return
            try:
                kind, value = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                code = self.process.exitcode
                self.stop()
                # A crash of the peer says nothing about Pliant.
                status = SKIPPED if "ONNX Runtime" in stage else CRASH
                yield Outcome(request[1], status=status, message=f"exit status {code} while {stage}")
                return
            if kind == "done":
                return
            if kind == "stage":
                stage = str(value)
            else:
                yield value
