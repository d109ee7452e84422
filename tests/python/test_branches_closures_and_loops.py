"""Tests branches, closures, recursion and loops in graph functions, with local functions before and after lifting.

The programs come from Apache TVM's design document on control flow in Relax (2022), and keep its old spellings as far as they
can be parsed. Docstrings state what had to be corrected.
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
    """Builds a module for the target `llvm`, and runs one of its functions in a virtual machine."""
    target = tvm.target.Target("llvm")
    ex = relax.vm.build(mod, target)
    assert ex.as_text()
    vm = relax.VirtualMachine(ex, tvm.cpu())
    return vm[func](*args)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.random(shape, "float32")


def test_branches_that_call_packed_functions(packed: Register, rng: np.random.Generator) -> None:
    """Tests a conditional whose branches call packed functions. Correction: the calls declare their result types."""
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


def test_closure_before_lifting() -> None:
    """Tests a local function that captures two constants and is returned as a closure."""
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


def test_closure_after_lifting() -> None:
    """Tests a closure that `make_closure` creates from a global function. The function takes the captured values as one tuple,
    after its arguments."""
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


def test_recursion_before_lifting() -> None:
    """Tests a local function that captures a constant and calls itself. Corrections: the recursion has a base case, and `main`
    returns its result."""
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


def test_recursion_after_lifting() -> None:
    """Tests a global function that calls itself and passes on its captured value in a tuple."""
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


def test_mutual_recursion_before_lifting() -> None:
    """Tests two local functions that call each other: f1(x) = f2(x - 1) + x1 and f2(x) = f1(x - 1) + x2. Correction: both have
    base cases."""
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


def test_mutual_recursion_after_lifting() -> None:
    """Tests two global functions that call each other. Each takes, in a tuple, the values that either of them captured before
    lifting."""
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


def test_loop_as_recursion_and_as_operator() -> None:
    """Tests that a loop up to 10 has the same result as a recursive local function and as `R.while_loop`. Correction: the loop
    condition, which the document omits, compares the counter with 10."""
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
