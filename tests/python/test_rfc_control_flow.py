"""Tests the programs of the Relax documents about branches, closures, recursion and loops, corrected and run.

Each program keeps the spelling of its document, in the dialect of 2022, as far as it can be parsed. Comments state what had to be
corrected. The test names contain the names of the documents' snippets (R1, A3, E2, ...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pliant as tvm
import pytest
from pliant import relax
from pliant.script import from_source

pytestmark = pytest.mark.usefixtures("exec_mode")

Register = Callable[[str, Callable[..., Any]], None]


def run(mod: Any, func: str, *args: Any) -> Any:
    """Builds a module as the documents do, and runs one function."""
    target = tvm.target.Target("llvm")
    ex = relax.vm.build(mod, target)
    assert ex.as_text()
    vm = relax.VirtualMachine(ex, tvm.cpu())
    return vm[func](*args)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.random(shape, "float32")


def test_f2_a_branch_that_calls_packed_functions(packed: Register, rng: np.random.Generator) -> None:
    """Tests snippet F2 of the RFC documents. The correction: the calls declare their result types. They have effects, so the
    function is impure."""
    packed("test.vm.add", lambda a, b: a.numpy() + b.numpy())
    packed("test.vm.mul", lambda a, b: a.numpy() * b.numpy())
    mod = from_source(
        """
@relax.function
def foo(cond: Tensor[(), "bool"], x: Tensor[(3, 4), "float32"]):
    if cond:
        r = relax.call_packed("test.vm.add", x, x, type_args=Tensor[(3, 4), "float32"])
    else:
        r = relax.call_packed("test.vm.mul", x, x, type_args=Tensor[(3, 4), "float32"])
    return r
"""
    )
    x = floats(rng, 3, 4)
    np.testing.assert_array_equal(run(mod, "foo", np.array(True), x).numpy(), x + x)
    np.testing.assert_array_equal(run(mod, "foo", np.array(False), x).numpy(), x * x)


def test_f3_a_closure_before_lifting() -> None:
    mod = from_source(
        """
@tvm.script.ir_module
class Module:
    @R.function
    def f1():
        y = R.const(1)
        z = R.const(2)

        @R.function
        def f2(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            return R.add(R.add(x, y), z)

        return f2

    @R.function
    def main() -> R.Tensor((), "int32"):
        result = f1()
        return result(R.const(3))
"""
    )
    assert run(mod, "main").numpy() == 6


def test_f4_a_closure_after_lifting() -> None:
    """Tests snippet F4 of the RFC documents. The lifted function takes its captured variables as one tuple, after its
    arguments."""
    mod = from_source(
        """
@tvm.script.ir_module
class Module:
    @R.function
    def f2_lifted(
        x: R.Tensor((), "int32"), env: R.Tuple(R.Tensor((), "int32"), R.Tensor((), "int32"))
    ) -> R.Tensor((), "int32"):
        return R.add(R.add(x, env[0]), env[1])

    @R.function
    def f1_lifted() -> R.Object:
        y = R.const(1)
        z = R.const(2)
        env = (y, z)
        g = R.make_closure(f2_lifted, (env,))
        return g

    @R.function
    def main() -> R.Tensor((), "int32"):
        result = f1_lifted()
        return R.invoke_pure_closure(result, (R.const(3),), sinfo_args=(R.Tensor((), "int32"),))
"""
    )
    assert run(mod, "main").numpy() == 6


def test_f5_recursion_before_lifting() -> None:
    """Tests snippet F5 of the RFC documents. The correction adds a base case and returns a result."""
    mod = from_source(
        """
@R.function
def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    x1 = R.const(2, "int64")

    @R.function
    def f1(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less_equal(x, x1):
            return x
        y = R.subtract(x, x1)
        return f1(y)

    return f1(n)
"""
    )
    for n, want in ((1, 1), (8, 2), (101, 1)):
        assert run(mod, "main", np.array(n)).numpy() == want


def test_f6_recursion_after_lifting() -> None:
    mod = from_source(
        """
@tvm.script.ir_module
class Module:
    @R.function
    def f1_lifted(x: R.Tensor((), "int64"), env: R.Tuple(R.Tensor((), "int64"))) -> R.Tensor((), "int64"):
        x1 = env[0]
        if R.less_equal(x, x1):
            return x
        y = R.subtract(x, x1)
        return f1_lifted(y, env)

    @R.function
    def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        x1 = R.const(2, "int64")
        f1 = R.make_closure(f1_lifted, ((x1,),))
        return R.invoke_pure_closure(f1, (n,), sinfo_args=(R.Tensor((), "int64"),))
"""
    )
    for n, want in ((1, 1), (8, 2), (101, 1)):
        assert run(mod, "main", np.array(n)).numpy() == want


def test_f7_mutual_recursion_before_lifting() -> None:
    """Tests snippet F7 of the RFC documents, with base cases added: f1(x) = f2(x - 1) + x1 and f2(x) = f1(x - 1) + x2."""
    mod = from_source(
        """
@R.function
def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    x1 = R.const(1, "int64")
    x2 = R.const(10, "int64")

    @R.function
    def f1(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less(x, x1):
            return x
        return R.add(f2(R.subtract(x, R.const(1, "int64"))), x1)

    @R.function
    def f2(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        if R.less(x, R.const(1, "int64")):
            return x
        return R.add(f1(R.subtract(x, R.const(1, "int64"))), x2)

    return f1(n)
"""
    )
    for n, want in ((0, 0), (1, 1), (2, 11), (5, 23)):
        assert run(mod, "main", np.array(n)).numpy() == want


def test_f8_mutual_recursion_after_lifting() -> None:
    """Tests snippet F8 of the RFC documents. Both lifted functions take the union of their captured variables."""
    mod = from_source(
        """
@tvm.script.ir_module
class Module:
    @R.function
    def f1_lifted(
        x: R.Tensor((), "int64"), env: R.Tuple(R.Tensor((), "int64"), R.Tensor((), "int64"))
    ) -> R.Tensor((), "int64"):
        if R.less(x, R.const(1, "int64")):
            return x
        return R.add(f2_lifted(R.subtract(x, R.const(1, "int64")), env), env[0])

    @R.function
    def f2_lifted(
        x: R.Tensor((), "int64"), env: R.Tuple(R.Tensor((), "int64"), R.Tensor((), "int64"))
    ) -> R.Tensor((), "int64"):
        if R.less(x, R.const(1, "int64")):
            return x
        return R.add(f1_lifted(R.subtract(x, R.const(1, "int64")), env), env[1])

    @R.function
    def main(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        env = (R.const(1, "int64"), R.const(10, "int64"))
        f1 = R.make_closure(f1_lifted, (env,))
        return R.invoke_pure_closure(f1, (n,), sinfo_args=(R.Tensor((), "int64"),))
"""
    )
    for n, want in ((0, 0), (1, 1), (2, 11), (5, 23)):
        assert run(mod, "main", np.array(n)).numpy() == want


def test_f9_a_loop_as_recursion_and_as_operator() -> None:
    """Tests snippet F9 of the RFC documents. The correction completes the loop condition, which compares the counter with 10."""
    mod = from_source(
        """
@tvm.script.ir_module
class Module:
    @R.function
    def by_recursion(start: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def loop(loop_var_0: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            c = R.less(loop_var_0, R.const(10))
            cond = R.min(R.astype(c, "int32"))
            if R.equal(cond, R.const(1)):
                v = R.add(loop_var_0, R.const(1))
                return loop(v)
            else:
                return loop_var_0

        return loop(start)

    @R.function
    def by_operator(start: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        r = R.while_loop(lambda i: R.less(i, R.const(10)), lambda i: R.add(i, R.const(1)), start)
        return r
"""
    )

    def tf_while_loop(i: int) -> int:
        while i < 10:
            i = i + 1
        return i

    for start in (0, 9, 10, 15):
        for func in ("by_recursion", "by_operator"):
            assert run(mod, func, np.array(start, "int32")).numpy() == tf_while_loop(start)
