"""Tests both execution modes from Python, and loop functions that call Python."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source

CALLS = """
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in T.parallel(n):
            with T.block("B"):
                v_i = T.axis.spatial(n, i)
                B[v_i] = T.call_packed("test.native.half", A[v_i], "text", dtype="float32")
        T.evaluate(T.call_packed("test.native.seen", B, n))

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), "float32"))
        return y
"""

RECURSION = """
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        y = cls.main(x)
        z = R.add(y, y)
        return z
"""

MODES = pytest.mark.parametrize("mode", ["bytecode", "compiled"])


@pytest.fixture
def seen() -> Iterator[list[tuple[int, int]]]:
    calls: list[tuple[int, int]] = []
    threads: set[int] = set()

    def half(value: float, text: str) -> float:
        assert text == "text"
        threads.add(threading.get_ident())
        if value < 0:
            raise KeyError("below zero")
        return value / 2

    def see(array: pliant.NDArray, count: int) -> None:
        calls.append((array.shape[0], count))

    pliant.register_func("test.native.half", half, override=True)
    pliant.register_func("test.native.seen", see, override=True)
    yield calls


@MODES
def test_loop_functions_call_python(mode: str, seen: list[tuple[int, int]]) -> None:
    model = pliant.compile(from_source(CALLS), exec_mode=mode)
    for n in (0, 1, 7, 5000):
        x = np.arange(n, dtype="float32")
        np.testing.assert_array_equal(np.asarray(model(x)), x / 2)
        assert seen.pop() == (n, n)


@MODES
def test_errors_of_python_keep_their_traceback(mode: str, seen: list[tuple[int, int]]) -> None:
    model = pliant.compile(from_source(CALLS), exec_mode=mode)
    for n in (1, 5000):
        with pytest.raises(KeyError, match="below zero") as info:
            model(np.full(n, -1, "float32"))
        text = "".join(traceback.format_exception(info.value))
        assert "in half" in text
    assert not seen


@MODES
def test_endless_recursion(mode: str) -> None:
    model = pliant.compile(from_source(RECURSION), exec_mode=mode)
    with pytest.raises((pliant.PliantError, RecursionError), match="nested too deeply"):
        model(np.array(1, "int64"))


def test_a_saved_program_keeps_its_mode(tmp_path: Path, seen: list[tuple[int, int]]) -> None:
    ex = relax.build(from_source(CALLS), exec_mode="compiled")
    path = str(tmp_path / "program.plx")
    ex.export_library(path)
    loaded = pliant.runtime.load_module(path)
    assert "Execution mode: compiled" in loaded.stats()
    vm = relax.VirtualMachine(loaded, pliant.cpu())
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(vm["main"](x).numpy(), x / 2)
    assert seen == [(3, 3)]
