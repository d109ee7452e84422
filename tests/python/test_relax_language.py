"""Tests the language of graph functions, compiled: effects, opaque objects, dynamically typed values, calls across levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source

pytestmark = pytest.mark.usefixtures("exec_mode")

Register = Callable[[str, Callable[..., Any]], None]


def run(text: str, *args: Any, func: str = "main") -> Any:
    """Compiles a module and runs a function of it."""
    return machine(text)[func](*args)


def machine(text: str) -> Any:
    return relax.VirtualMachine(relax.vm.build(from_source(text), pliant.target.Target("llvm")), pliant.cpu())


def test_side_effects_keep_their_order(packed: Register) -> None:
    seen: list[int] = []
    packed("log", lambda v: seen.append(int(v if isinstance(v, int) else v.numpy())))
    text = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def show(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        R.call_packed("log", x)
        return R.add(x, x)

    @R.function(pure=False)
    def main(n: R.Prim("int64")) -> R.Tensor((), "int64"):
        cls = Module
        R.call_packed("log", R.const(1, "int64"))
        a = cls.show(R.const(2, "int64"))
        if R.less(a, R.const(9, "int64")):
            b = cls.show(a)
        else:
            b = a
        for i in R.range(2):
            R.call_packed("log", i)
            b = cls.show(b)
        R.call_packed("log", n)
        return b
"""
    assert run(text, 70).numpy() == 32
    assert seen == [1, 2, 4, 0, 8, 1, 16, 70]


def test_a_step_of_gradient_descent_updates_in_place(rng: np.random.Generator) -> None:
    """Tests a step of gradient descent: the weights of a linear model with squared error are
    updated in place until they fit.
    """
    vm = machine(
        """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def step(w: T.handle, g: T.handle):
        k = T.int64()
        W = T.match_buffer(w, (k,), "float32")
        G = T.match_buffer(g, (k,), "float32")
        for i in range(k):
            W[i] = W[i] - T.float32(0.1) * G[i]

    @R.function(pure=False)
    def train(
        x: R.Tensor(("n", "k"), "float32"),
        y: R.Tensor(("n",), "float32"),
        w: R.Tensor(("k",), "float32"),
        steps: R.Prim("int64"),
    ) -> R.Tensor((), "float32"):
        n, k = T.int64(), T.int64()
        cls = Module
        for i in R.range(steps):
            error = R.subtract(R.matmul(x, w), y)
            grad = R.divide(R.matmul(error, x), R.const(4.0, "float32"))
            _ = R.call_tir_inplace(cls.step, (w, grad), inplace_indices=[0], out_sinfo=R.Tensor((k,), "float32"))
        last = R.subtract(R.matmul(x, w), y)
        return R.sum(R.multiply(last, last))
"""
    )
    x = rng.random((8, 3), "float32")
    true = np.array([1.0, -2.0, 0.5], "float32")
    w = pliant.nd.array(np.zeros(3, "float32"))
    first = float(vm["train"](x, x @ true, w, 0).numpy())
    assert np.all(w.numpy() == 0)
    loss = float(vm["train"](x, x @ true, w, 500).numpy())
    assert loss < first / 100
    np.testing.assert_allclose(w.numpy(), true, atol=0.2)


def test_random_generators_and_state_machines_are_objects(packed: Register) -> None:
    class Generator:
        """A linear congruential random number generator."""

        def __init__(self, seed: int) -> None:
            self.state = seed

    def draw(g: Generator, count: int) -> np.ndarray:
        out = []
        for _ in range(count):
            g.state = (1103515245 * g.state + 12345) % 2**31
            out.append(g.state % 100)
        return np.array(out, "int64")

    packed("rng.new", lambda seed: Generator(int(seed)))
    packed("rng.draw", draw)
    text = """
@R.function(pure=False)
def main(seed: R.Prim("int64"), n: R.Prim("int64")) -> R.Tensor(ndim=1, dtype="int64"):
    g = R.call_packed("rng.new", seed, sinfo_args=R.Object)
    out = R.zeros((0,), "int64")
    for i in R.range(3):
        m = T.int64()
        drawn = R.call_packed("rng.draw", g, n, sinfo_args=R.Tensor(ndim=1, dtype="int64"))
        values = R.match_cast(drawn, R.Tensor((m,), "int64"))
        out = R.concat([out, values])
    return out
"""
    for n in (0, 1, 4):
        np.testing.assert_array_equal(run(text, 7, n).numpy(), draw(Generator(7), 3 * n))


def test_a_tensor_array_through_packed_functions(packed: Register, rng: np.random.Generator) -> None:
    """Tests a tensor array, an opaque list: one packed function appends a tensor, another stacks
    all tensors.
    """

    class TensorArray:
        def __init__(self) -> None:
            self.rows = [np.zeros((0, 2), "float32")]

    def push(array: TensorArray, row: Any) -> TensorArray:
        array.rows.append(row.numpy().copy())
        return array

    packed("array.new", TensorArray)
    packed("array.push", push)
    packed("array.stack", lambda array: np.concatenate(array.rows))
    vm = machine(
        """
@R.function(pure=False)
def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
    n = T.int64()
    array = R.call_packed("array.new", sinfo_args=R.Object)
    for i in R.range(n):
        row = R.strided_slice(x, axes=[0], begin=[i], end=[i + 1])
        array = R.call_packed("array.push", array, R.add(row, row), sinfo_args=R.Object)
    out = R.call_packed("array.stack", array, sinfo_args=R.Tensor(dtype="float32"))
    m = T.int64()
    y = R.match_cast(out, R.Tensor((m, 2), "float32"))
    return y
"""
    )
    for n in (0, 1, 5):
        x = rng.random((n, 2), "float32")
        np.testing.assert_array_equal(vm["main"](x).numpy(), x + x)


def test_dynamically_typed_values(packed: Register) -> None:
    packed("pick", lambda a, y: a)
    vm = machine(
        """
@R.function(pure=False)
def main(x: R.Tensor, y: R.Tensor(dtype="int64")) -> R.Object:
    b = R.call_packed("pick", x, y)
    c = R.match_cast(b, R.Tensor(dtype="int64"))
    d = R.unique(c)
    n = T.int64()
    e = R.match_cast(d, R.Tensor((n,), "int64"))
    f = R.nonzero(e)
    return (R.concat([e, e]), f, R.shape([n * 2]))
"""
    )
    for data in ([3, 0, 3, 1], [5], []):
        x = np.array(data, "int64")
        unique = np.unique(x)
        twice, nonzero, shape = vm["main"](x, x)
        np.testing.assert_array_equal(twice.numpy(), np.concatenate([unique, unique]))
        np.testing.assert_array_equal(nonzero.numpy(), np.array(np.nonzero(unique)))
        assert tuple(shape) == (2 * len(unique),)
    with pytest.raises(Exception, match="int64"):
        vm["main"](np.zeros(2, "float32"), np.zeros(2, "int64"))


def test_computed_shapes_allocate_outputs(packed: Register) -> None:
    packed("myshape_func", lambda s: pliant.runtime.ShapeTuple([s[0] // 2]))
    vm = machine(
        """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fill(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            B[i] = T.Cast("float32", n)

    @R.function
    def main(
        x: R.Tensor(("n",), "float32"),
    ) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(ndim=1, dtype="float32")):
        n = T.int64()
        k = T.int64()
        cls = Module
        s: R.Shape(ndim=1) = R.call_pure_packed("myshape_func", R.shape([n]), sinfo_args=R.Shape(ndim=1))
        a = R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor(s, "float32"))
        t = R.match_cast(s, R.Shape([k]))
        b = R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor((k + 1,), "float32"))
        return (a, b)
"""
    )
    for n in (0, 1, 5):
        a, b = vm["main"](np.zeros(n, "float32"))
        np.testing.assert_array_equal(a.numpy(), np.full(n // 2, n, "float32"))
        np.testing.assert_array_equal(b.numpy(), np.full(n // 2 + 1, n, "float32"))


def test_strings_types_shapes_and_tuples_are_values(packed: Register) -> None:
    packed("describe", lambda *args: ", ".join(type(a).__name__ for a in args))
    text = """
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Object:
    n = T.int64()
    args = (x, x)
    shape = R.shape([n, 2])
    z = R.call_pure_packed("describe", R.str("s"), shape, R.prim_value(n), R.prim_value(0.5), args, sinfo_args=R.Object)
    return z
"""
    assert run(text, np.zeros(2, "float32")) == "str, ShapeTuple, int, float, tuple"


def test_loop_functions_take_scalars(rng: np.random.Generator) -> None:
    """Tests scalar parameters of loop functions: sizes after the outputs, and a scalar at its own
    position.
    """
    vm = machine(
        """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, scale: T.float32, k: T.int64, b: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (n,), "int64")
        for i in range(n):
            B[i] = A[i] * scale
            C[i] = i + k

    @R.function
    def main(
        x: R.Tensor(("n",), "float32"), s: R.Prim("float32")
    ) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "int64")):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x, s, R.prim_value(n)), out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((n,), "int64")])
        return y
"""
    )
    for n in (0, 1, 5):
        x = rng.random(n, "float32")
        b, c = vm["main"](x, 0.5)
        np.testing.assert_array_equal(b.numpy(), x * np.float32(0.5))
        np.testing.assert_array_equal(c.numpy(), np.arange(n) + n)


def test_errors_name_the_failing_call(packed: Register) -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def scale(x: R.Tensor((2,), "float32"), k: R.Tensor((), "float32")) -> R.Tensor((2,), "float32"):
        return R.multiply(x, k)

    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        f: R.Object = R.make_closure(cls.scale, (R.const(2.0, "float32"),))
        return R.invoke_pure_closure(f, (x,), sinfo_args=R.Tensor(ndim=1, dtype="float32"))
"""
    vm = machine(text)
    np.testing.assert_array_equal(vm["main"](np.ones(2, "float32")).numpy(), [2, 2])
    with pytest.raises(Exception, match="'x'.*2.*3"):
        vm["main"](np.ones(3, "float32"))


def test_endless_recursion_is_an_error() -> None:
    text = """
@R.function
def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
    @R.function
    def forever(y: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.add(forever(y), y)

    return forever(x)
"""
    with pytest.raises(Exception, match="(?i)deep|depth|recursion"):
        run(text, np.array(1))
