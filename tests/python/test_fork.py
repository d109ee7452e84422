"""A forked child runs what its parent compiled, on threads of its own."""

from __future__ import annotations

import multiprocessing
import os
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
def test_programs_run_in_forked_children_and_on_in_the_parent(threads: int | None) -> None:
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
