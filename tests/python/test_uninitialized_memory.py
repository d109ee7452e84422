"""Tests that elements that a loop function does not write are zero, never stale data from recycled memory."""

import numpy as np
import pytest

import pliant
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

N = 4096


def leave_secrets() -> None:
    """Runs and drops a model all of whose tensors hold 7, so that a later read of its freed memory is detected."""

    @I.ir_module
    class Secret:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            with R.dataflow():
                a = R.cumsum(x, axis=0)
                b = R.multiply(a, R.const(0.0, "float32"))
                c = R.cumsum(R.add(b, x), axis=0)
                d = R.add(R.multiply(c, R.const(0.0, "float32")), x)
                R.output(d)
            return d

    model = pliant.compile(Secret)
    for _ in range(3):
        assert (np.asarray(model(np.full(N, 7, "float32"))) == 7).all()


@I.ir_module
class WritesNothing:
    @T.prim_func
    def fill(var_o: T.handle):
        n = T.int64()
        o = T.match_buffer(var_o, (n,), "float32")
        T.evaluate(0)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = WritesNothing
        return R.call_tir(cls.fill, (), out_sinfo=R.Tensor((n,), "float32"))


@I.ir_module
class WritesAHalf:
    @T.prim_func
    def fill(var_a: T.handle, var_o: T.handle):
        n = T.int64()
        a = T.match_buffer(var_a, (n,), "float32")
        o = T.match_buffer(var_o, (n,), "float32")
        for i in range(n // 2):
            with T.block("o"):
                v = T.axis.spatial(n // 2, i)
                o[v] = a[v]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = WritesAHalf
        return R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor((n,), "float32"))


@I.ir_module
class ReadsItsOutput:
    @T.prim_func
    def fill(var_a: T.handle, var_o: T.handle):
        n = T.int64()
        a = T.match_buffer(var_a, (n,), "float32")
        o = T.match_buffer(var_o, (n,), "float32")
        for i in range(n):
            with T.block("o"):
                v = T.axis.spatial(n, i)
                o[v] = o[v] + a[v] * T.float32(0.0)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = ReadsItsOutput
        return R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor((n,), "float32"))


@I.ir_module
class ReadsScratch:
    @T.prim_func
    def fill(var_a: T.handle, var_o: T.handle):
        n = T.int64()
        a = T.match_buffer(var_a, (n,), "float32")
        o = T.match_buffer(var_o, (n,), "float32")
        scratch = T.alloc_buffer((n,), "float32")
        small = T.alloc_buffer((64,), "float32")
        for i in range(n // 2):
            scratch[i] = a[i] * T.float32(0.0)
        for i in range(n):
            o[i] = scratch[i] + small[i % 64]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = ReadsScratch
        return R.call_tir(cls.fill, (x,), out_sinfo=R.Tensor((n,), "float32"))


@I.ir_module
class StartsAtNoPoint:
    @T.prim_func
    def fill(var_o: T.handle):
        n = T.int64()
        o = T.match_buffer(var_o, (n,), "float32")
        for i in range(n):
            with T.block("o"):
                v = T.axis.spatial(n, i)
                r = T.axis.reduce(8, 3)
                with T.init():
                    o[v] = T.float32(0)
                o[v] = o[v] + T.float32(0)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = StartsAtNoPoint
        return R.call_tir(cls.fill, (), out_sinfo=R.Tensor((n,), "float32"))


@I.ir_module
class OnlyAllocates:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        out: R.Tensor((n,), "float32") = R.builtin.alloc_tensor(
            R.shape([n]), R.dtype("float32"), R.prim_value(0)
        )
        return out


@I.ir_module
class CallsAPackedFunction:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        return R.call_dps_packed("tests.writes_nothing", (x,), out_sinfo=R.Tensor((n,), "float32"))


PROGRAMS = [
    (WritesNothing, 0),
    (WritesAHalf, N // 2),
    (ReadsItsOutput, 0),
    (ReadsScratch, 0),
    (StartsAtNoPoint, 0),
    (OnlyAllocates, 0),
    (CallsAPackedFunction, 0),
]


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("program, written", PROGRAMS, ids=lambda p: getattr(p, "__name__", None))
def test_unwritten_elements_are_zero(program, written, exec_mode):
    pliant.register_func("tests.writes_nothing", lambda x, out: None, override=True)
    model = pliant.compile(program, exec_mode=exec_mode)
    for _ in range(3):
        leave_secrets()
        out = np.asarray(model(np.full(N, 5, "float32")))
        assert (out[:written] == 5).all()
        assert (out[written:] == 0).all()
        del out


def test_elements_of_an_earlier_run_are_not_visible():
    model = pliant.compile(WritesAHalf)
    for _ in range(4):
        out = np.asarray(model(np.full(N, 5, "float32")))
        assert (out[N // 2 :] == 0).all()
        out[:] = 9
        del out


@I.ir_module
class CallsTheAllocator:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        s = R.cumsum(R.add(x, R.const(41.0, "float32")), axis=0)
        t = R.sum(s)
        u = R.call_packed(
            "vm.builtin.alloc_tensor_with_storage",
            R.prim_value(4000),
            R.shape([1000]),
            R.dtype("float32"),
            sinfo_args=R.Object,
        )
        return (t, u)


def test_a_tensor_of_the_allocators_builtin_is_zero() -> None:
    """Checks that a program that calls the allocation builtin by its name gets no stale data
    either.
    """
    model = pliant.compile(CallsTheAllocator)
    for _ in range(3):
        assert (np.asarray(model(np.ones(1000, "float32"))[1]) == 0).all()
