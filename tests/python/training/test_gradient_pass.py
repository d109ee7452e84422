"""The pass ``Gradient``: its structure, symbolic sizes, control flow, calls, checkpoints, and its errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pliant import IRModule, relax, te
from pliant.error import CompileError
from pliant.ir import assert_structural_equal
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


def _gradients(mod: IRModule, *arrays: np.ndarray, name: str = "main", **options: Any) -> list[np.ndarray]:
    """The gradients of a function at the given arguments."""
    mod = relax.transform.Gradient(name, **options)(mod)
    vm = relax.VirtualMachine(relax.build(mod))
    return [g.numpy() for g in vm[f"{name}_adjoint"](*arrays)[1]]


def _check(mod: IRModule, *arrays: np.ndarray, step: float = 1e-6) -> None:
    """Compares the gradients of ``main`` with finite differences in float64."""
    gradients = _gradients(mod, *arrays)
    run = relax.VirtualMachine(relax.build(mod))["main"]
    for k, gradient in enumerate(gradients):
        expected = np.zeros(arrays[k].shape)
        for i in np.ndindex(*arrays[k].shape):
            values = []
            for sign in (1, -1):
                moved = arrays[k].copy()
                moved[i] += sign * step
                values.append(float(run(*arrays[:k], moved, *arrays[k + 1 :]).numpy()))
            expected[i] = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)


def test_the_adjoint_function_returns_the_result_and_the_gradients() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                lv = R.multiply(x, y)
                gv = R.sum(lv)
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @R.function
        def main_adjoint(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                lv = R.multiply(x, y)
                gv = R.sum(lv)
                gv_adjoint = R.ones(R.shape([]), dtype="float32")
                lv_adjoint = R.broadcast_to(gv_adjoint, R.shape([3, 3]))
                x_adjoint = R.multiply(lv_adjoint, y)
                y_adjoint = R.multiply(lv_adjoint, x)
                R.output(gv, x_adjoint, y_adjoint)
            return (gv, (x_adjoint, y_adjoint))

    after = relax.transform.Gradient("main")(Before)
    assert_structural_equal(after["main"], Before["main"])
    assert_structural_equal(after["main_adjoint"], Expected["main_adjoint"])


def test_require_grads_selects_parameters_and_target_index_a_result() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float64"), y: R.Tensor((2,), "float64")):
            with R.dataflow():
                a = R.sum(x)
                b = R.sum(R.multiply(x, R.multiply(y, y)))
                R.output(a, b)
            return (a, b)

    x, y = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    (gradient,) = _gradients(Module, x, y, require_grads=[Module["main"].params[1]], target_index=1)
    np.testing.assert_allclose(gradient, 2 * x * y)


@pytest.mark.parametrize(("n", "m"), [(3, 3), (1, 3), (3, 1), (1, 1), (0, 0), (0, 1)])
def test_gradients_of_symbolic_broadcasts_are_reduced_at_run_time(n: int, m: int) -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 2), "float64"), y: R.Tensor(("m", 2), "float64")):
            with R.dataflow():
                gv = R.sum(R.exp(R.multiply(x, y)))
                R.output(gv)
            return gv

    rng = np.random.default_rng(0)
    _check(Module, rng.random((n, 2)), rng.random((m, 2)))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_one_compilation_differentiates_every_batch_size(n: int) -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 3), "float64"), w: R.Tensor((3, 2), "float64"), b: R.Tensor((2,), "float64")):
            with R.dataflow():
                h = R.tanh(R.add(R.matmul(x, w), b))
                p = R.nn.softmax(R.concat((h, h), axis=1))
                gv = R.sum(R.square(R.subtract(p, R.mean(p, axis=1, keepdims=True))))
                R.output(gv)
            return gv

    rng = np.random.default_rng(1)
    _check(Module, rng.random((n, 3)), rng.random((3, 2)), rng.random(2))


def test_a_variable_with_several_uses_gets_the_sum_of_the_adjoints() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float64")):
            with R.dataflow():
                y = R.multiply(x, x)
                t = (y, (x, y))
                u = t[1]
                gv = R.sum(R.multiply(R.multiply(u[0], t[0]), u[1]))
                R.output(gv)
            return gv

    _check(Module, np.array([0.5, -0.7]))


def test_unused_fields_of_tuples_have_no_adjoint() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float64")):
            with R.dataflow():
                parts = R.split(x, 2)
                gv = R.sum(R.square(parts[1]))
                R.output(gv)
            return gv

    np.testing.assert_allclose(_gradients(Module, np.arange(4.0))[0], [0, 0, 4, 6])


@pytest.mark.parametrize("flag", [True, False])
def test_conditionals_are_differentiated(flag: bool) -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float64"), y: R.Tensor((3,), "float64")):
            if c:
                a = R.multiply(x, y)
                r = R.exp(a)
            else:
                r = R.multiply(R.sin(x), x)
            gv = R.sum(R.multiply(r, y))
            return gv

    x, y = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7])
    gradients = _gradients(Module, np.array(flag), x, y, require_grads=["x", "y"])
    if flag:
        expected = [np.exp(x * y) * y * y, np.exp(x * y) * (1 + x * y)]
    else:
        expected = [(np.sin(x) + x * np.cos(x)) * y, np.sin(x) * x]
    for gradient, value in zip(gradients, expected):
        np.testing.assert_allclose(gradient, value)


def test_calls_of_functions_are_differentiated() -> None:
    @I.ir_module
    class Module:
        @R.function
        def square_sum(x: R.Tensor(("n",), "float64"), y: R.Tensor(("n",), "float64")):
            with R.dataflow():
                a = R.multiply(x, y)
                r = R.exp(a)
                R.output(a, r)
            return (a, r)

        @R.function
        def main(x: R.Tensor((3,), "float64"), y: R.Tensor((3,), "float64")):
            cls = Module
            p = cls.square_sum(x, y)
            q = cls.square_sum(p[1], p[1])
            gv = R.sum(R.add(q[0], p[0]))
            return gv

    _check(Module, np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7]))


def test_recursive_functions_are_differentiated() -> None:
    @I.ir_module
    class Module:
        @R.function
        def power(x: R.Tensor((2,), "float64"), n: R.Tensor((), "int64")) -> R.Tensor((2,), "float64"):
            cls = Module
            done = R.less(n, R.const(1, "int64"))
            if done:
                r = R.ones_like(x)
            else:
                rest = cls.power(x, R.subtract(n, R.const(1, "int64")))
                r = R.multiply(rest, x)
            return r

        @R.function
        def main(x: R.Tensor((2,), "float64"), n: R.Tensor((), "int64")):
            cls = Module
            p = cls.power(x, n)
            gv = R.sum(p)
            return gv

    x = np.array([2.0, 3.0])
    (gradient,) = _gradients(Module, x, np.array(4), require_grads="x")
    np.testing.assert_allclose(gradient, 4 * x**3)


def test_no_grad_stops_the_gradient() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float64")):
            with R.dataflow():
                y = R.grad.no_grad(R.multiply(x, x))
                gv = R.sum(R.multiply(x, y))
                R.output(gv)
            return gv

    x = np.array([2.0, 3.0])
    np.testing.assert_allclose(_gradients(Module, x)[0], x * x)


def test_values_between_checkpoints_are_computed_again() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float64")):
            with R.dataflow():
                a = R.grad.start_checkpoint(x)
                b = R.exp(a)
                c = R.sin(b)
                d = R.grad.end_checkpoint(c)
                gv = R.sum(R.multiply(d, d))
                R.output(gv)
            return gv

    x = np.array([0.2, 0.3])
    gradient = _gradients(Module, x)[0]
    np.testing.assert_allclose(gradient, 2 * np.sin(np.exp(x)) * np.cos(np.exp(x)) * np.exp(x))
    text = relax.transform.Gradient("main")(Module)["main_adjoint"].script()
    assert text.count("R.exp(") == 2
    assert "start_checkpoint" in text and "end_checkpoint" not in text


def test_gradients_of_loop_functions_are_registered_by_name() -> None:
    @relax.training.utils.register_te_gradient("scaled_square_gradient")
    def gradient(dy: Any, x: Any, *, factor: float) -> Any:
        return [te.compute(x.shape, lambda i: dy[i] * x[i] * 2.0 * factor)]

    @I.ir_module
    class Module:
        @T.prim_func
        def scaled_square(x: T.Buffer((4,), "float64"), y: T.Buffer((4,), "float64")):
            for i in range(4):
                with T.block("square"):
                    vi = T.axis.spatial(4, i)
                    y[vi] = x[vi] * x[vi] * T.float64(3)

        @R.function
        def main(x: R.Tensor((4,), "float64")):
            cls = Module
            with R.dataflow():
                y = R.call_tir_with_grad(
                    cls.scaled_square,
                    (x,),
                    out_sinfo=R.Tensor((4,), "float64"),
                    te_grad_name="scaled_square_gradient",
                    te_grad_kwargs={"factor": 3.0},
                )
                gv = R.sum(y)
                R.output(gv)
            return gv

    x = np.arange(4.0)
    np.testing.assert_allclose(_gradients(Module, x)[0], 6 * x)
    np.testing.assert_allclose(relax.VirtualMachine(relax.build(Module))["main"](x).numpy(), (3 * x * x).sum())


def test_user_operators_derive_their_gradient_from_the_tensor_expression() -> None:
    @relax.op.register_op("test.softmax_product")
    def softmax_product(x, y):  # type: ignore[no-untyped-def]
        n, m = x.shape
        k = te.reduce_axis((0, m), "k")
        top = te.compute((n,), lambda i: te.max(x[i, k], axis=k))
        e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]))
        k2 = te.reduce_axis((0, m), "k")
        total = te.compute((n,), lambda i: te.sum(e[i, k2], axis=k2))
        return te.compute((n, m), lambda i, j: e[i, j] / total[i] * y[j])

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3, 4), "float64"))
    y = relax.Var("y", relax.TensorStructInfo((4,), "float64"))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            gv = builder.emit_output(relax.op.sum(relax.op.square(relax.op.test.softmax_product(x, y))))
        builder.emit_func_output(gv)
    rng = np.random.default_rng(2)
    _check(builder.get(), rng.random((3, 4)), rng.random(4))


# ---- errors ----


def test_all_operators_without_a_gradient_are_reported_with_their_lines() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.unique(x)
                b = R.signal.dft(R.reshape(x, R.shape([4, 1])), axis=0)
                c = R.add(R.sum(a), R.sum(b))
                R.output(c)
            return c

    with pytest.raises(CompileError) as error:
        relax.transform.Gradient("main")(Module)
    text = str(error.value)
    assert "relax.unique has no gradient" in text and "relax.signal.dft has no gradient" in text
    assert text.count("test_gradient_pass.py") >= 2


def test_a_result_that_is_no_scalar_is_an_error() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                gv = R.exp(x)
                R.output(gv)
            return gv

    with pytest.raises(CompileError, match="must be a float tensor of rank 0"):
        relax.transform.Gradient("main")(Module)


def test_an_integer_result_is_an_error() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                gv = R.sum(R.astype(x, "int64"))
                R.output(gv)
            return gv

    with pytest.raises(CompileError, match="must be a float tensor of rank 0"):
        relax.transform.Gradient("main")(Module)


def test_a_parameter_behind_an_integer_has_a_zero_gradient_and_a_warning() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float64"), y: R.Tensor((3,), "float64")):
            with R.dataflow():
                i = R.astype(R.astype(x, "int64"), "float64")
                gv = R.sum(R.multiply(i, y))
                R.output(gv)
            return gv

    with pytest.warns(UserWarning, match="does not depend on the parameter 'x'"):
        gradients = _gradients(Module, np.array([1.0, 2.0, 3.0]), np.ones(3))
    np.testing.assert_array_equal(gradients[0], np.zeros(3))
    np.testing.assert_array_equal(gradients[1], [1, 2, 3])


def test_differentiation_with_respect_to_what_is_used_does_not_warn() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float64")):
            with R.dataflow():
                gv = R.sum(x)
                R.output(gv)
            return gv

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        relax.transform.Gradient("main")(Module)


def test_integer_parameters_must_be_excluded_with_require_grads() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float32"), i: R.Tensor((2,), "int64")):
            with R.dataflow():
                gv = R.sum(R.take(x, i))
                R.output(gv)
            return gv

    with pytest.raises(CompileError, match="the parameter 'i' has no gradient"):
        relax.transform.Gradient("main")(Module)
    with pytest.raises(CompileError, match="the parameter 'i' has no gradient"):
        relax.transform.Gradient("main", ["i"])(Module)


def test_unknown_and_repeated_parameters_are_errors() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                gv = R.sum(x)
                R.output(gv)
            return gv

    with pytest.raises(CompileError, match="'z', which is not a parameter"):
        relax.transform.Gradient("main", ["z"])(Module)
    with pytest.raises(CompileError, match="'x' twice"):
        relax.transform.Gradient("main", ["x", "x"])(Module)
    with pytest.raises(CompileError, match="target_index is 2"):
        relax.transform.Gradient("main", target_index=2)(Module)
    with pytest.raises(CompileError, match="missing"):
        relax.transform.Gradient("missing")(Module)


def test_packed_functions_on_the_path_are_errors() -> None:
    @I.ir_module
    class Module:
        @R.function(pure=False)
        def main(x: R.Tensor((3,), "float32")):
            y = R.call_packed("my.packed", x, sinfo_args=R.Tensor((3,), "float32"))
            gv = R.sum(y)
            return gv

    with pytest.raises(CompileError, match="the packed function 'my.packed'"):
        relax.transform.Gradient("main")(Module)


def test_side_effects_in_branches_are_errors() -> None:
    @I.ir_module
    class Module:
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
            if c:
                _ = R.print(x, format="{}")
                r = R.exp(x)
            else:
                r = x
            gv = R.sum(r)
            return gv

    with pytest.raises(CompileError, match="side effects"):
        relax.transform.Gradient("main", ["x"])(Module)


def test_side_effects_off_the_path_are_executed_once(capfd: pytest.CaptureFixture[str]) -> None:
    @I.ir_module
    class Module:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float64")):
            y = R.exp(x)
            _ = R.print(y, format="value {}")
            gv = R.sum(y)
            return gv

    x = np.array([0.0, 1.0])
    np.testing.assert_allclose(_gradients(Module, x)[0], np.exp(x))
    assert capfd.readouterr().out.count("value") == 1
