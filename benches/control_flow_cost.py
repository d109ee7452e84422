"""The cost of control flow: nanoseconds per loop iteration, tail call and closure call, and the memory that remains allocated."""

from __future__ import annotations

import resource
import time

import numpy as np

from pliant import relax
from pliant.script import from_source
from timing import require_release

ITERATIONS = 1_000_000
ROUNDS = 5

SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def empty(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        x = R.const(0, "int64")
        for i in R.range(0, n, 1):
            x = x
        return x

    @R.function
    def add(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        x = R.const(0, "int64")
        for i in R.range(0, n, 1):
            x = R.add(x, R.const(1, "int64"))
        return x

    @R.function
    def while_less_add(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        x = R.const(0, "int64")
        while R.less(x, n):
            x = R.add(x, R.const(1, "int64"))
        return x

    @R.function
    def tail_call(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        return cls.step(R.const(0, "int64"), n)

    @R.function(private=True)
    def step(x: R.Tensor((), "int64"), n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        if R.less(x, n):
            y = cls.step(R.add(x, R.const(1, "int64")), n)
        else:
            y = x
        return y

    @R.function
    def closure(n: R.Tensor((), "int64"), z: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        @R.function
        def f(a: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
            return z

        g = f
        if R.less(z, n):
            h = g
        else:
            h = f
        x = z
        for i in R.range(0, n, 1):
            x = h(x)
        return x

    @R.function
    def creation(n: R.Tensor((), "int64"), z: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        x = z
        for i in R.range(0, n, 1):
            @R.function
            def f(a: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
                return x

            x = f(x)
        return x
"""


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_mode(mode: str) -> dict[str, tuple[float, int]]:
    """Measures all programs in one execution mode. Returns for each the nanoseconds per iteration,
    as the best of several rounds, and the growth of the peak memory of the process in KiB.
    """
    vm = relax.VirtualMachine(relax.build(from_source(SCRIPT), exec_mode=mode))
    n, zero = np.array(ITERATIONS, "int64"), np.array(0, "int64")
    results = {}
    for name in ("empty", "add", "while_less_add", "tail_call", "closure", "creation"):
        args = (n, zero) if name in ("closure", "creation") else (n,)
        vm[name](*args)
        before, times = peak_kilobytes(), []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            vm[name](*args)
            times.append(time.perf_counter() - start)
        results[name] = (min(times) / ITERATIONS * 1e9, peak_kilobytes() - before)
    return results


def main() -> None:
    require_release()
    modes = {mode: measure_mode(mode) for mode in ("bytecode", "compiled")}
    print(f"{'iteration of':16}{'bytecode':>12}{'compiled':>12}{'growth':>12}")
    for name in modes["bytecode"]:
        (bytecode_time, bytecode_growth), (compiled_time, compiled_growth) = modes["bytecode"][name], modes["compiled"][name]
        print(f"{name:16}{bytecode_time:9.0f} ns{compiled_time:9.0f} ns{bytecode_growth + compiled_growth:8} KiB")


if __name__ == "__main__":
    main()
