"""Tests `pliant.testing.interpret`: arguments, results, and what it does not support."""

from typing import Any

import numpy as np
import pliant
import pytest
from pliant import relax
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T
from pliant.testing import interpret


@I.ir_module
class Module:
    @R.function(pure=False)
    def apply(f: R.Object, x: R.Tensor(("n",), "float32")) -> R.Object:
        return R.call_packed("interpreter.apply", f, x, sinfo_args=R.Object)

    @R.function(pure=False)
    def call(f: R.Callable((R.Object,), R.Object), x: R.Object) -> R.Object:
        return f(x)

    @R.function
    def scaled(w: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()

        @R.function
        def scale(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.multiply(x, w)

        return scale

    @R.function(pure=False)
    def show(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        _ = R.print(x, R.shape([2, 3]), format="x is {}, the shape {1} {{}}")
        return x

    @R.function(pure=False)
    def check(c: R.Tensor((), "bool"), x: R.Tensor((2,), "int64")) -> R.Tensor((), "bool"):
        _ = R.assert_op(c, x, format="x is {}")
        return c


@pytest.fixture(autouse=True)
def _functions() -> None:
    pliant.register_func("interpreter.apply", lambda f, x: f(x), override=True)


def test_functions_as_arguments_and_results() -> None:
    def double(x: Any) -> Any:
        return x.numpy() * 2

    x = np.array([1, 2], "float32")
    np.testing.assert_array_equal(interpret(Module, double, x, func="apply").numpy(), x * 2)
    assert interpret(Module, lambda x: (x, 1), 7, func="call") == (7, 1)
    # The same object is returned.
    assert interpret(Module, lambda f: f, double, func="call") is double


def test_interpreter_closures_are_called_from_python() -> None:
    w = np.array([3, 4], "float32")
    scale = interpret(Module, w, func="scaled")
    np.testing.assert_array_equal(scale(w).numpy(), w * w)
    with pytest.raises(pliant.VMError, match="must be|must equal"):
        scale(np.ones(3, "float32"))
    # Also from another run.
    np.testing.assert_array_equal(interpret(Module, scale, w, func="apply").numpy(), w * w)


def test_python_exceptions_fail_the_run() -> None:
    def fail(_x: Any) -> Any:
        raise ValueError("not today")

    with pytest.raises(pliant.VMError, match="packed function 'fail' failed: .*not today"):
        interpret(Module, fail, np.ones(2, "float32"), func="call")


def test_print_formats_equal_the_vm(capfd: Any) -> None:
    x = np.array([1, 2.5], "float32")
    interpret(Module, x, func="show")
    interpreted = capfd.readouterr().out
    relax.VirtualMachine(relax.build(Module), pliant.cpu())["show"](x)
    assert interpreted == capfd.readouterr().out == "x is [1.0, 2.5], the shape (2, 3) {}\n"
    with pytest.raises(pliant.VMError, match=r"an assertion of the program failed: x is \[1, 2\]"):
        interpret(Module, np.array(False), np.array([1, 2]), func="check")


def test_backend_library_functions() -> None:
    @I.ir_module
    class Product:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32"), b: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.matmul(x, w)
                z = R.add(y, b)
                r = R.nn.relu(z)
                R.output(r)
            return r

    module = relax.backend.gemm.offload_gemm(Product)
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype("float32") for s in ((2, 3), (3, 4), (4,)))
    want = np.maximum(x @ w + b, 0)
    np.testing.assert_allclose(interpret(module, x, w, b).numpy(), want, rtol=1e-5)


def test_registered_symbols_are_rejected() -> None:
    @I.ir_module
    class Extern:
        @T.prim_func(private=True)
        def k(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
            for i in range(2):
                B[i] = T.call_extern("float32", "my_library_sin", A[i])

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Extern
            return R.call_tir(cls.k, (x,), out_sinfo=R.Tensor((2,), "float32"))

    text = "'my_library_sin' called by T.call_extern is machine code, which the interpreter does not run"
    with pytest.raises(pliant.VMError, match=text):
        interpret(Extern, np.ones(2, "float32"))


def test_nested_runs_terminate() -> None:
    held: dict[str, Any] = {}
    turns: list[int] = []
    pliant.register_func("interpreter.hold", lambda f: held.update(f=f) or 0, override=True)
    pliant.register_func("interpreter.again", lambda y: turns.append(1) or held["f"](y), override=True)

    @R.function(pure=False)
    def main(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        @R.function(pure=False)
        def f(y: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            r = R.call_packed("interpreter.again", y, sinfo_args=R.Tensor((), "float32"))
            return r

        R.call_packed("interpreter.hold", f, sinfo_args=R.Object)
        return f(x)

    module = pliant.IRModule({"main": main})
    with pytest.raises(pliant.PliantError, match="nested too deeply"):
        interpret(module, np.array(1, "float32"))
    assert len(turns) < 100
