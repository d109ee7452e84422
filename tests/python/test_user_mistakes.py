"""Tests common mistakes of users: keywords, functions without a module, negative sizes, Ctrl-C in a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pliant
from pliant import relax, te
from pliant.script import ir as I, relax as R, tir as T


@R.function
def difference(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
    with R.dataflow():
        z = R.subtract(x, y)
        R.output(z)
    return z


@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i] * T.float32(2)


def test_models_accept_keyword_arguments() -> None:
    model = pliant.compile(difference)
    x, y = np.float32([5, 6]), np.float32([1, 2])
    assert model(y=y, x=x).numpy().tolist() == [4, 4]
    assert model(x, y=y).numpy().tolist() == [4, 4]


@pytest.mark.parametrize(
    ("positional", "keywords", "problems"),
    [
        (2, ["z"], "there is no parameter 'z'"),
        (2, ["x"], "'x' is passed twice"),
        (1, ["v"], "there is no parameter 'v', 'y' is missing"),
        (1, ["x"], "'x' is passed twice, 'y' is missing"),
        (0, ["y"], "'x' is missing"),
        (0, ["x", "yy"], r"there is no parameter 'yy' \(did you mean 'y'\?\), 'y' is missing"),
        (3, ["z"], "there are 3 positional arguments, there is no parameter 'z'"),
    ],
)
def test_wrong_and_missing_arguments_are_named(positional: int, keywords: list[str], problems: str) -> None:
    x = np.float32([5, 6])
    message = rf"the call of difference\(x, y\) does not match its parameters: {problems}$"
    with pytest.raises(TypeError, match=message):
        pliant.compile(difference)(*[x] * positional, **dict.fromkeys(keywords, x))


def test_missing_arguments_are_named() -> None:
    with pytest.raises(pliant.CallError, match=r"takes 2 arguments, but 0 were given \(missing: 'x', 'y'\)"):
        pliant.compile(difference)()


def test_single_loop_functions_are_called_with_all_tensors() -> None:
    model = pliant.compile(double)
    x, out = pliant.nd.array(np.arange(4, dtype="float32")), pliant.nd.empty((4,))
    model(x, out)
    assert out.numpy().tolist() == [0, 2, 4, 6]
    with pytest.raises(pliant.ShapeError, match="double: 'B' dim 0 must equal 4, but is 3"):
        model(x, pliant.nd.empty((3,)))


def test_modules_without_public_functions_are_rejected() -> None:
    with pytest.raises(pliant.CompileError, match="no graph function to call .help: .* R.call_tir"):
        pliant.compile(pliant.IRModule({}))


def test_negative_sizes_are_rejected_by_name() -> None:
    @R.function
    def zeros(s: R.Shape(["n", "m"])):
        n, m = T.int64(), T.int64()
        return R.zeros((n, m), "float32")

    model = pliant.compile(zeros)
    assert model(pliant.runtime.ShapeTuple([2, 0])).shape == (2, 0)
    with pytest.raises(pliant.ShapeError, match="zeros: 's' dim 1 must not be negative, but is -3"):
        model(pliant.runtime.ShapeTuple([2, -3]))


def test_sizes_that_become_negative_are_rejected() -> None:
    @R.function
    def shrink(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        return R.zeros((n - 5,), "float32")

    model = pliant.compile(shrink)
    assert model(np.zeros(7, np.float32)).shape == (2,)
    with pytest.raises(pliant.ShapeError, match="the size n - 5 = -2 is negative"):
        model(np.zeros(3, np.float32))


def test_a_te_function_equals_its_script() -> None:
    @T.prim_func
    def element_wise(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (128, 128))
        B = T.match_buffer(b, (128, 128))
        with T.block([128, 128], "B") as [i, j]:
            B[i, j] = A[i, j] * 2.0

    A = te.placeholder((128, 128), name="A")
    B = te.compute((128, 128), lambda x, y: A[x, y] * 2.0, name="B")
    pliant.ir.assert_structural_equal(te.create_prim_func([A, B]), element_wise)


@pytest.mark.parametrize("name", ["KillAfterLastUse", "VMShapeLower", "LowerRuntimeBuiltin"])
def test_each_lowering_pass_runs_separately(name: str) -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 2), "float32")):
            n = T.int64()
            with R.dataflow():
                y = R.exp(x)
                z = R.reshape(y, (n * 2,))
                R.output(z)
            return z

    after = getattr(relax.transform, name)()(Module)
    again = pliant.script.from_source(after.script(show_meta=True))
    x = np.ones((3, 2), np.float32)
    np.testing.assert_allclose(pliant.compile(again)(x).numpy(), np.full(6, np.e, np.float32), rtol=1e-6)


@pytest.mark.skipif(os.name != "posix", reason="signals of this kind are POSIX's")
@pytest.mark.parametrize(
    "body",
    [
        "while B[0] < T.float32(1): B[0] = T.float32(0)",
        "while True: T.evaluate(0)",
        "for i, j, k in T.grid(4, 1 << 20, 1 << 30): B[i] = B[i] + A[i]",
        "for i, j in T.grid(1, 1 << 40): B[j % 4] = A[j % 3]",
    ],
)
def test_ctrl_c_stops_a_kernel(body: str) -> None:
    program = textwrap.dedent(
        f"""
        import os, signal, threading
        import numpy as np, pliant
        module = pliant.script.from_source('''
        @I.ir_module
        class Module:
            @T.prim_func
            def spin(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
                B[0] = T.float32(0)
                {body}
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                cls = Module
                return R.call_tir(cls.spin, (x,), out_sinfo=R.Tensor((4,), "float32"))
        ''')
        model = pliant.compile(module)
        # A process started in the background may ignore Ctrl-C from birth.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            model(np.zeros(4, np.float32))
        except KeyboardInterrupt:
            print("stopped")
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped\n", done.stderr
    assert done.returncode == 0
