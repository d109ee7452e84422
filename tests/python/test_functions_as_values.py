"""Tests functions as values: closures to and from Python, wrong arguments, callbacks that fail, block or re-enter."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source

pytestmark = pytest.mark.usefixtures("exec_mode")

HEADER = "from pliant.script import ir as I, relax as R, tir as T\n"
LIFTED = """
@I.ir_module
class Module:
    @R.function
    def scaled(w: R.Tensor(("n",), "float32")) -> R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32"), True):
        n = T.int64()
        @R.function
        def scale(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.multiply(x, w)
        return scale

    @R.function
    def plain() -> R.Callable((R.Tensor(ndim=1, dtype="float32"),), R.Tensor(ndim=1, dtype="float32"), True):
        @R.function
        def double(x: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            return R.add(x, x)
        return double

    @R.function(pure=False)
    def apply(f: R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32")), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return f(x)

    @R.function(pure=False)
    def twice(f: R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32")), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = f(x)
        return R.negative(f(y))
"""


def machine(script: str) -> Any:
    return relax.VirtualMachine(relax.vm.build(from_source(HEADER + script)), pliant.cpu())


def ones(n: int) -> np.ndarray:
    return np.ones(n, "float32")


@pytest.mark.parametrize("n", [0, 1, 3])
def test_closures_in_python(n: int) -> None:
    vm = machine(LIFTED)
    scale = vm["scaled"](np.full(n, 3, "float32"))
    np.testing.assert_array_equal(scale(ones(n)).numpy(), 3 * ones(n))
    np.testing.assert_array_equal(vm["apply"](scale, ones(n)).numpy(), 3 * ones(n))
    np.testing.assert_array_equal(vm["twice"](scale, ones(n)).numpy(), -9 * ones(n))
    double = vm["plain"]()
    np.testing.assert_array_equal(vm["twice"](double, ones(n)).numpy(), -4 * ones(n))


def test_closure_outlives_its_vm() -> None:
    vm = machine(LIFTED)
    scale = vm["scaled"](np.full(2, 5, "float32"))
    del vm
    gc.collect()
    np.testing.assert_array_equal(scale(ones(2)).numpy(), [5, 5])


def test_closure_runs_in_another_vm() -> None:
    scale = machine(LIFTED)["scaled"](np.full(2, 5, "float32"))
    np.testing.assert_array_equal(machine(LIFTED)["apply"](scale, ones(2)).numpy(), [5, 5])


def test_python_functions_as_values() -> None:
    vm = machine(LIFTED)

    def triple(x: Any) -> np.ndarray:
        return x.numpy() * 3

    np.testing.assert_array_equal(vm["twice"](triple, ones(2)).numpy(), [-9, -9])
    np.testing.assert_array_equal(vm["apply"](lambda x: x, ones(2)).numpy(), [1, 1])
    registered = pliant.register_func("test.triple", triple, override=True)
    assert registered is not None
    np.testing.assert_array_equal(vm["apply"](pliant.get_global_func("test.triple"), ones(2)).numpy(), [3, 3])
    pliant.registry.remove_global_func("test.triple")
    same = machine("""
@I.ir_module
class Module:
    @R.function
    def main(f: R.Object) -> R.Object:
        return f
""")
    assert same["main"](triple) is triple


def test_wrong_arguments_name_the_closure_and_the_parameter() -> None:
    vm = machine(LIFTED)
    scale = vm["scaled"](ones(3))
    with pytest.raises(TypeError, match=r"scaled_scale\(x: .*\) takes 1 argument, but 2 were given"):
        scale(ones(3), ones(3))
    with pytest.raises(Exception, match=r"scaled_scale: 'x' must be a float32 tensor of 1 dim, but is a float64"):
        scale(np.ones(3))
    with pytest.raises(Exception, match=r"'x' dim 0|'w' dim 0"):
        scale(ones(4))
    with pytest.raises(Exception, match="'f' must be a function, but is an integer"):
        vm["apply"](3, ones(3))


def test_results_of_python_functions_are_checked() -> None:
    vm = machine(LIFTED)
    with pytest.raises(Exception, match="the result of 'f' must be a float32 tensor of 1 dim, but is an integer"):
        vm["apply"](lambda x: 1, ones(3))
    with pytest.raises(Exception, match="the result of 'f' dim 0 must equal n = 3"):
        vm["twice"](lambda x: x.numpy()[1:], ones(3))


def test_callbacks_that_raise() -> None:
    vm = machine(LIFTED)

    class Mine(Exception):
        pass

    def fail(x: Any) -> Any:
        raise Mine("inside")

    for _ in range(3):
        with pytest.raises(Mine, match="inside"):
            vm["twice"](fail, ones(2))
    np.testing.assert_array_equal(vm["twice"](lambda x: x, ones(2)).numpy(), [-1, -1])


def test_callback_recursion_is_bounded() -> None:
    vm = machine(LIFTED)

    def deeper(x: Any) -> Any:
        return vm["apply"](deeper, x)

    with pytest.raises((RecursionError, pliant.PliantError), match="nested too deeply|recursion"):
        vm["apply"](deeper, ones(2))
    depth = [0]

    def some(x: Any) -> Any:
        depth[0] += 1
        return vm["apply"](some, x) if depth[0] < 20 else x

    np.testing.assert_array_equal(vm["apply"](some, ones(2)).numpy(), [1, 1])


def test_callbacks_block_and_reenter_from_many_threads() -> None:
    vm = machine(LIFTED)
    count = 8
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def work(i: int) -> None:
        def callback(x: Any) -> Any:
            # All threads are inside the VM at once.
            barrier.wait(timeout=60)
            if i % 4 == 3:
                raise ValueError(f"thread {i}")
            return vm["apply"](lambda y: y.numpy() + i, x)

        try:
            results[i] = vm["apply"](callback, ones(i)).numpy()
        except ValueError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    assert sorted(str(e) for e in errors) == ["thread 3", "thread 7"]
    for i in range(count):
        if i % 4 != 3:
            np.testing.assert_array_equal(results[i], 1 + i * ones(i))


RECURSIVE = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def loop(i: R.Object) -> R.Object:
        j = R.call_packed("test.next", i, sinfo_args=R.Object)
        more = R.call_packed("test.more", j, sinfo_args=R.Tensor((), "bool"))
        if more:
            r = Module.loop(j)
        else:
            r = j
        return r

    @R.function(pure=False)
    def nested(i: R.Object) -> R.Object:
        j = R.call_packed("test.next", i, sinfo_args=R.Object)
        k = Module.nested(j)
        return R.call_packed("test.next", k, sinfo_args=R.Object)
"""


def test_tail_recursion_needs_no_stack_and_other_recursion_is_bounded(packed: Any) -> None:
    packed("test.next", lambda i: i + 1)
    packed("test.more", lambda i: np.array(i < 3_000))
    vm = machine(RECURSIVE)
    assert vm["loop"](0) == 3_000
    with pytest.raises(Exception, match="calls are nested too deeply"):
        vm["nested"](0)
    # The VM keeps working.
    assert vm["loop"](2_990) == 3_000


def resident() -> int:
    """Returns the resident memory of the process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


MANY_ITERATIONS = """
@I.ir_module
class Module:
    # Creates a closure in each iteration. The closure captures the tensor `acc` of this iteration.
    @R.function
    def closures(x: R.Tensor(("n",), "int64"), iterations: R.Prim("int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        acc = x
        for i in R.range(iterations):

            @R.function
            def get(y: R.Tensor((n,), "int64")) -> R.Tensor((n,), "int64"):
                return acc

            fs = (get, x)
            f = fs[0]
            acc = f(x)
        return acc

    @R.function
    def tail(i: R.Prim(value="j"), x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        j = T.int64()
        n = T.int64()
        if R.prim_value(0 < j):
            r = Module.tail(R.prim_value(j - 1), x)
        else:
            r = x
        return r
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc/self/statm does not exist")
@pytest.mark.parametrize(("name", "iterations"), [("closures", 1_000_000), ("tail", 300_000)])
def test_many_iterations_do_not_leak(name: str, iterations: int) -> None:
    vm = machine(MANY_ITERATIONS)
    x = np.arange(16)

    def run(iterations: int) -> Any:
        return vm[name](x, iterations) if name == "closures" else vm[name](iterations, x)

    for warm in (0, 1, 1000):
        np.testing.assert_array_equal(run(warm).numpy(), x)
    before = resident()
    np.testing.assert_array_equal(run(iterations).numpy(), x)
    # One word per iteration would exceed this.
    assert resident() - before < 8 * iterations


def test_captured_values_are_freed_with_closures(packed: Any) -> None:
    class Token:
        pass

    alive = weakref.WeakSet[Any]()

    def make() -> Any:
        token = Token()
        alive.add(token)
        return token

    packed("test.make", make)
    vm = machine("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main() -> R.Callable((), R.Object, True):
        token = R.call_packed("test.make", sinfo_args=R.Object)
        @R.function
        def get() -> R.Object:
            return token
        return get
""")
    closures = [vm["main"]() for _ in range(1000)]
    assert len(alive) == 1000 and closures[5]() in alive
    del closures
    gc.collect()
    assert len(alive) == 0


def test_closure_results_are_checked_in_tail_position() -> None:
    vm = machine("""
@I.ir_module
class Module:
    @R.function
    def two(x: R.Tensor((2,), "float32")) -> R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), True):
        @R.function
        def f(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.add(x, y)
        return f

    @R.function
    def tail(f: R.Object, x: R.Tensor((2,), "float32")) -> R.Tensor((3,), "float32"):
        r = R.invoke_pure_closure(f, (x,), sinfo_args=R.Tensor((3,), "float32"))
        return r

    @R.function
    def typed(
        f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((3,), "float32"), True), x: R.Tensor((2,), "float32")
    ) -> R.Tensor((3,), "float32"):
        return f(x)

    @R.function
    def anything(f: R.Object, x: R.Object) -> R.Object:
        r = R.invoke_pure_closure(f, (x,), sinfo_args=R.Object)
        return r
""")
    x = np.ones(2, "float32")
    f = vm["two"](x)
    assert vm["anything"](f, x).numpy().tolist() == [2, 2]
    for name in ("tail", "typed"):
        with pytest.raises(Exception, match="must equal 3, but is 2"):
            vm[name](f, x)
