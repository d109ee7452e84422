"""A function of many chained operators: time of building, printing, parsing and compiling it.

Each step should take linear time: the table has time and memory per binding at every length.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import pliant
from pliant import relax, script, tir
from timing import require_release

LENGTHS = (12_500, 50_000, 200_000)


def build(length: int) -> pliant.IRModule:
    """Builds a function with `length` additions, each of which adds the previous result to
    itself.
    """
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((tir.Var("n", "int64"),), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(length - 1):
                y = bb.emit(relax.op.add(y, y))
            y = bb.emit_output(relax.op.add(y, y))
        bb.emit_func_output(y)
    return bb.get()


def timed(run: Callable[[], object]) -> tuple[object, float]:
    """Calls `run` and returns its result and the elapsed seconds."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def resident_bytes() -> int:
    """The resident memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def memory_growth(length: int) -> int:
    """Returns by how many bytes a fresh process grows when it builds the function."""
    build(2)
    before = resident_bytes()
    module = build(length)
    growth = resident_bytes() - before
    assert len(module.functions) == 1
    return growth


def main() -> None:
    """Prints a table of seconds for each step and each length of the chain."""
    require_release()
    print(f"{'bindings':>9} {'builder':>8} {'print':>8} {'parse':>8} {'build':>8} {'total s':>8} {'us/binding':>11}"
          f" {'bytes/binding':>14}")
    for length in LENGTHS:
        with multiprocessing.get_context("spawn").Pool(1) as fresh:
            growth = fresh.apply(memory_growth, (length,))
        module, build_time = timed(lambda n=length: build(n))
        text, print_time = timed(lambda m=module: m.script())
        parsed, parse_time = timed(lambda t=text: script.from_source(t))
        _, compile_time = timed(lambda m=parsed: relax.build(m))
        total = build_time + print_time + parse_time + compile_time
        print(f"{length:9} {build_time:8.3f} {print_time:8.3f} {parse_time:8.3f} {compile_time:8.3f} {total:8.3f}"
              f" {total / length * 1e6:11.1f} {growth / length:14.0f}")


if __name__ == "__main__":
    main()
