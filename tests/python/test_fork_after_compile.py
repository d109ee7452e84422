"""Tests that a forked child runs what its parent compiled, on its own threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import Any

import numpy as np
import pytest

import pliant
from pliant.script import from_source

SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 256), "float32"), w: R.Tensor((256, 256), "float32")):
        with R.dataflow():
            y = R.tanh(R.matmul(x, w))
            R.output(y)
        return y
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def operands(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, 256), np.float32), rng.standard_normal((256, 256), np.float32) / 16


def right(model: Any, sizes: list[int]) -> bool:
    pairs = [operands(n) for n in sizes]
    return all(np.allclose(model(x, w), np.tanh(x @ w), atol=1e-5) for x, w in pairs)


@pytest.mark.parametrize("threads", [None, 2])
def test_programs_run_in_forked_children_and_the_parent(threads: int | None) -> None:
    model = pliant.compile(from_source(SCRIPT), threads=threads)
    assert right(model, [300, 1, 0])
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_leave_by, args=(model,)) for _ in range(3)]
    for child in children:
        child.start()
    assert right(model, [77])
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert right(model, [300])


def _leave_by(model: Any) -> None:
    os._exit(0 if right(model, [513, 2, 300]) else 1)


def test_programs_compile_in_forked_children() -> None:
    assert right(pliant.compile(from_source(SCRIPT)), [3])
    child = multiprocessing.get_context("fork").Process(target=_compile_and_leave)
    child.start()
    child.join(60)
    assert child.exitcode == 0, "killed: it hung" if child.exitcode is None else child.exitcode


def _compile_and_leave() -> None:
    os._exit(0 if right(pliant.compile(from_source(SCRIPT)), [300]) else 1)


def test_forked_children_find_no_held_locks() -> None:
    models = [pliant.compile(from_source(SCRIPT)) for _ in range(8)]
    children = []
    # The watcher of running VMs checks all of them every 50 ms.
    for k in range(60):
        assert right(models[k % 8], [k % 5])
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if right(pliant.compile(from_source(SCRIPT)), [2]) else 1)
            finally:
                os._exit(2)
        children.append(child)
        if len(children) == 4:
            assert [os.waitpid(c, 0)[1] for c in children] == [0] * 4
            children = []


def test_interrupts_stop_runs_in_a_child() -> None:
    model = pliant.compile(from_source(LONG))
    assert model(np.array(3, "int64")).numpy() == 3
    reading, writing = os.pipe()
    child = multiprocessing.get_context("fork").Process(target=_run_until_interrupted, args=(model, writing))
    child.start()
    # An interrupt while the child is still being set up would not reach the run.
    assert os.read(reading, 1) == b"r"
    time.sleep(0.5)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGINT)
    child.join(30)
    assert child.exitcode == 7, "killed: it hung" if child.exitcode is None else child.exitcode


LONG = """
@R.function
def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    x = R.const(0, "int64")
    for i in R.range(0, n, 1):
        x = R.add(x, R.const(1, "int64"))
    return x
"""


def _run_until_interrupted(model: Any, ready: int) -> None:
    # Processes that a shell starts in the background ignore Ctrl-C, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.write(ready, b"r")
    try:
        model(np.array(1 << 60, "int64"))
    except KeyboardInterrupt:
        os._exit(7)
    os._exit(1)
