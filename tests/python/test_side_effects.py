"""Tests programs with side effects: inputs that are overwritten, opaque objects as the state of loops and recursion, and
their lifetimes."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source

pytestmark = pytest.mark.usefixtures("exec_mode")

HEADER = "from pliant.script import ir as I, relax as R, tir as T\n"


def machine(script: str) -> Any:
    return relax.VirtualMachine(relax.vm.build(from_source(HEADER + script)), pliant.cpu())


SGD = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def sgd(var_w: T.handle, var_g: T.handle, rate: T.float32):
        n = T.int64()
        m = T.int64()
        w = T.match_buffer(var_w, (n, m), "float32")
        g = T.match_buffer(var_g, (n, m), "float32")
        for i, j in T.grid(n, m):
            with T.block("update"):
                vi, vj = T.axis.remap("SS", [i, j])
                w[vi, vj] = w[vi, vj] - rate * g[vi, vj]

    @R.function(pure=False)
    def step(x: R.Tensor(("b", "n"), "float32"), y: R.Tensor(("b", "m"), "float32"), w: R.Tensor(("n", "m"), "float32")) -> R.Tensor((), "float32"):
        b = T.int64()
        n = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            error = R.subtract(R.matmul(x, w), y)
            grad = R.matmul(R.permute_dims(x), error)
            loss = R.sum(R.multiply(error, error))
            R.output(grad, loss)
        _ = cls.sgd(w, grad, R.prim_value(T.float32(0.01)))
        return loss
"""


def test_read_only_weights_are_rejected_for_writing(rng: np.random.Generator) -> None:
    vm = machine(SGD)
    x, y, w = (rng.random((2, 2), "float32") for _ in range(3))
    w.flags.writeable = False
    with pytest.raises(Exception, match="must be a writable float32 tensor"):
        vm["step"](x, y, w)


def test_in_place_calls(packed: Any, rng: np.random.Generator) -> None:
    def add_one(x: Any) -> Any:
        x[:] = x.numpy() + 1
        return x

    packed("test.add_one", add_one)
    vm = machine("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(var_x: T.handle):
        n = T.int64()
        x = T.match_buffer(var_x, (n,), "float32")
        for i in range(n):
            with T.block("double"):
                vi = T.axis.spatial(n, i)
                x[vi] = x[vi] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        a = R.exp(x)
        b = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32"))
        c = R.call_inplace_packed("test.add_one", b, inplace_indices=[0], sinfo_args=R.Tensor((n,), "float32"))
        return c
""")
    for n in (0, 1, 5):
        x = rng.random(n, "float32")
        np.testing.assert_allclose(vm["main"](x).numpy(), np.exp(x) * 2 + 1, rtol=1e-5)


def test_random_generator_as_opaque_object(packed: Any) -> None:
    """Tests a random generator as an opaque object: it is passed through a loop, and each draw
    advances its state.
    """
    packed("test.rng", lambda seed: np.random.default_rng(seed))
    packed("test.draw", lambda g, shape: g.random(tuple(shape), "float32"))
    vm = machine("""
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(seed: R.Prim("int64"), shape: R.Shape(["n"]), iterations: R.Tensor((), "int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        generator = R.call_packed("test.rng", seed, sinfo_args=R.Object)
        first = R.call_packed("test.draw", generator, shape, sinfo_args=R.Tensor((n,), "float32"))

        @R.function(pure=False)
        def more(i: R.Tensor((), "int64"), g: R.Object, acc: R.Tensor((n,), "float32")) -> R.Tensor((), "bool"):
            return R.less(i, iterations)

        @R.function(pure=False)
        def body(i: R.Tensor((), "int64"), g: R.Object, acc: R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Object, R.Tensor((n,), "float32")):
            x = R.call_packed("test.draw", g, shape, sinfo_args=R.Tensor((n,), "float32"))
            return (R.add(i, R.const(1, "int64")), g, R.add(acc, x))

        state = R.while_loop(more, body, R.const(0, "int64"), generator, first)
        return state[2]
""")
    for iterations in (0, 1, 4):
        g = np.random.default_rng(7)
        expected = g.random(3, "float32")
        for _ in range(iterations):
            expected = expected + g.random(3, "float32")
        np.testing.assert_allclose(vm["main"](7, (3,), np.array(iterations)).numpy(), expected, rtol=1e-6)


TENSOR_ARRAY = """
@I.ir_module
class Module:
    # A reduced form of the LSTM of the control-flow document: a loop over the rows, in which each iteration appends its state.
    @R.function(pure=False)
    def main(x: R.Tensor(("t", "n"), "float32"), w: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("t", "n"), "float32"), R.Tensor(("n",), "float32")):
        t = T.int64()
        n = T.int64()
        outputs = R.call_packed("test.array.new", sinfo_args=R.Object)
        count = R.shape_to_tensor(R.shape([t]))
        last = R.reshape(count, R.shape([]))

        @R.function(pure=False)
        def while_loop(i: R.Tensor((), "int64"), outputs: R.Object, state: R.Tensor((n,), "float32")) -> R.Tuple(R.Object, R.Tensor((n,), "float32")):
            if R.less(i, last):
                row = R.take(x, i, axis=0)
                next_state = R.tanh(R.add(R.multiply(state, w), row))
                more = R.call_packed("test.array.concat", outputs, next_state, sinfo_args=R.Object)
                r = while_loop(R.add(i, R.const(1, "int64")), more, next_state)
            else:
                r = (outputs, state)
            return r

        done = while_loop(R.const(0, "int64"), outputs, w)
        stacked = R.call_packed("test.array.stack", done[0], R.shape([n]), sinfo_args=R.Object)
        rows = R.match_cast(stacked, R.Tensor((t, n), "float32"))
        return (rows, done[1])
"""


def test_tensor_array_as_opaque_object(packed: Any, rng: np.random.Generator) -> None:
    packed("test.array.new", lambda: ())
    packed("test.array.concat", lambda array, value: (*array, value))
    packed("test.array.stack", lambda array, row: np.stack([v.numpy() for v in array]) if array else np.zeros((0, *row), "float32"))
    vm = machine(TENSOR_ARRAY)
    for t, n in ((0, 3), (1, 1), (5, 4)):
        x, w = rng.random((t, n), "float32"), rng.random(n, "float32")
        state, rows = w, []
        for row in x:
            state = np.tanh(state * w + row)
            rows.append(state)
        out, last = vm["main"](x, w)
        np.testing.assert_allclose(out.numpy(), np.array(rows, "float32").reshape(t, n), rtol=1e-4)
        np.testing.assert_allclose(last.numpy(), state, rtol=1e-4)


def test_strings_dtypes_shapes_and_tuples_as_arguments_and_results(packed: Any) -> None:
    vm = machine("""
@I.ir_module
class Module:
    @R.function
    def main(s: R.Object, t: R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Shape(["n", "m"]), R.Prim("int64")))) -> R.Tuple(R.Object, R.Object, R.Object, R.Shape(["m", "n"]), R.Tuple(R.Prim("int64"), R.Tensor(("n",), "float32"))):
        n = T.int64()
        m = T.int64()
        x = t[0]
        inner = t[1]
        return (s, R.str("text"), R.dtype("float16"), R.shape([m, n]), (inner[1], R.add(x, x)))
""")
    s, text, dtype, shape, (number, x) = vm["main"]("in", (np.ones(2, "float32"), ((2, 5), 7)))
    assert (s, text, dtype, tuple(shape), number) == ("in", "text", "float16", (5, 2), 7)
    np.testing.assert_array_equal(x.numpy(), [2, 2])
    with pytest.raises(Exception, match="'t'.*dim 0 must equal n = 2"):
        vm["main"]("in", (np.ones(2, "float32"), ((3, 5), 7)))


LOOP_OF_OBJECTS = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(iterations: R.Tensor((), "int64")) -> R.Object:
        first = R.call_packed("test.token", sinfo_args=R.Object)

        @R.function(pure=False)
        def more(i: R.Tensor((), "int64"), token: R.Object) -> R.Tensor((), "bool"):
            return R.less(i, iterations)

        @R.function(pure=False)
        def body(i: R.Tensor((), "int64"), token: R.Object) -> R.Tuple(R.Tensor((), "int64"), R.Object):
            following = R.call_packed("test.token", sinfo_args=R.Object)
            return (R.add(i, R.const(1, "int64")), following)

        last = R.while_loop(more, body, R.const(0, "int64"), first)
        return last[1]

    @R.function(pure=False)
    def tail(i: R.Tensor((), "int64"), token: R.Object) -> R.Object:
        if R.less(R.const(0, "int64"), i):
            following = R.call_packed("test.token", sinfo_args=R.Object)
            r = Module.tail(R.subtract(i, R.const(1, "int64")), following)
        else:
            r = token
        return r
"""


def test_loop_state_is_released_after_each_iteration(packed: Any) -> None:
    class Token:
        pass

    alive = weakref.WeakSet[Any]()
    most = [0]

    def make() -> Any:
        token = Token()
        alive.add(token)
        most[0] = max(most[0], len(alive))
        return token

    packed("test.token", make)
    vm = machine(LOOP_OF_OBJECTS)
    for iterations in (0, 1, 200):
        most[0] = 0
        last = vm["main"](np.array(iterations))
        assert isinstance(last, Token)
        del last
        # An iteration holds its state and creates the next one; the initial state is released by
        # the second iteration.
        assert most[0] == min(iterations + 1, 2) and len(alive) == 0
        last = vm["tail"](np.array(iterations), make())
        assert isinstance(last, Token)
        del last
        # The caller holds the initial one.
        assert most[0] <= 3 and len(alive) == 0
