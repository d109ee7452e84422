"""Tests in-place calls with programs modelled on TVM's tests."""

from __future__ import annotations

import numpy as np
import pytest

import pliant as tvm
from pliant import relax
from pliant.relax.transform import DataflowUseInplaceCalls
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class EndToEndTest:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((1, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            z = R.add(x, y)  # x and y belong to the caller
            a = R.add(z, y)
            q = R.multiply(a, y)
            r = R.subtract(y, y)
            s = R.subtract(r, r)  # both operands are the same tensor
            m = R.multiply(q, s)
            R.output(m)
        return m


def overwriting(module: tvm.IRModule) -> list[str]:
    """Lists the in-place calls of a module: the name of each result, with the names of the operands that it overwrites."""
    found = []
    for func in module.functions.values():
        if not isinstance(func, relax.Function):
            continue
        for block in func.body.blocks:
            for binding in block.bindings:
                value = binding.value
                if isinstance(value, relax.Call) and value.op.name == "relax.call_tir_inplace":
                    at = value.attrs["inplace_indices"][0]
                    found.append(f"{binding.var.name_hint} over {value.args[1].fields[at].name_hint}")
    return found


def test_end_to_end() -> None:
    after = DataflowUseInplaceCalls()(EndToEndTest)
    assert overwriting(after) == ["a over z", "q over a", "m over q"]
    x, y = np.random.default_rng(0).random((2, 3), "float32"), np.random.default_rng(1).random((1, 3), "float32")
    kept = x.copy(), y.copy()
    for mode in ("bytecode", "compiled"):
        vm = relax.VirtualMachine(relax.build(after, exec_mode=mode), tvm.cpu())
        np.testing.assert_array_equal(vm["main"](x, y).numpy(), np.zeros((2, 3), "float32"))
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(y, kept[1])


@I.ir_module
class DynamicTest:
    @R.function
    def main(
        x: R.Tensor(("a", "b"), "float32"), y: R.Tensor(("a", "b"), "float32")
    ) -> R.Tensor(("a", "b"), "float32"):
        with R.dataflow():
            z = R.add(x, y)
            q = R.multiply(z, y)
            r = R.nn.relu(q)
            p = R.add(r, r)
            R.output(p)
        return p


def test_dynamic_sizes() -> None:
    after = DataflowUseInplaceCalls()(DynamicTest)
    assert overwriting(after) == ["q over z", "r over q"]
    # After legalization the pass sees calls of loop functions.
    later = DataflowUseInplaceCalls()(relax.transform.LegalizeOps()(DynamicTest))
    assert overwriting(later) == ["q over z", "r over q"]
    for module in (after, later, relax.get_pipeline("zero")(after)):
        vm = relax.VirtualMachine(relax.build(module), tvm.cpu())
        for shape in ((0, 3), (1, 1), (5, 4)):
            x, y = np.ones(shape, "float32"), np.full(shape, 2, "float32")
            np.testing.assert_array_equal(vm["main"](x, y).numpy(), (x + y) * y * 2)
            assert (x == 1).all() and (y == 2).all()


AFTER = ["CanonicalizeBindings", "EliminateCommonSubexpr", "TopologicalSort", "FoldConstant", "ToNonDataflow", "zero"]


@pytest.mark.parametrize("name", AFTER)
def test_later_passes_keep_the_order(name: str) -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.sin(a)
                c = R.sqrt(a)
                d = R.exp(x)
                e = R.negative(d)
                R.output(b, c, e)
            return (R.add(b, e), c)

    after = DataflowUseInplaceCalls()(Module)
    assert overwriting(after) == ["c over a", "e over d"]
    after = relax.get_pipeline(name)(after) if name == "zero" else getattr(relax.transform, name)()(after)
    x = np.linspace(0, 1, 4, dtype="float32")
    first, second = relax.VirtualMachine(relax.build(after), tvm.cpu())["main"](x)
    np.testing.assert_allclose(first.numpy(), np.sin(np.exp(x)) - np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(second.numpy(), np.sqrt(np.exp(x)), rtol=1e-6)


def test_overwritten_values_are_recomputed_for_each_call() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                a = R.exp(w)
                b = R.add(a, x)
                R.output(b)
            return b

    after = relax.transform.LiftTransformParams()(DataflowUseInplaceCalls()(Module))
    vm = relax.VirtualMachine(relax.build(after), tvm.cpu())
    x, w = np.ones(4, "float32"), np.arange(4, dtype="float32")
    params = list(vm["main_transform_params"]([w])) if "main_transform_params" in after else [w]
    for _ in range(3):
        np.testing.assert_allclose(vm["main"](x, *params).numpy(), x + np.exp(w), rtol=1e-6)


def test_branches_and_loops_around_blocks() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            y = x
            for i in R.range(k):
                with R.dataflow():
                    a = R.add(y, x)
                    b = R.multiply(a, R.const(0.5, "float32"))
                    R.output(b)
                y = b
            return y

    after = DataflowUseInplaceCalls()(Module)
    assert "multiply_inplace" in {g.name_hint for g in after.get_global_vars()}
    vm = relax.VirtualMachine(relax.build(after), tvm.cpu())
    x = np.arange(3, dtype="float32")
    for k in range(4):
        want = x
        for _ in range(k):
            want = (want + x) * np.float32(0.5)
        np.testing.assert_allclose(vm["main"](x, k).numpy(), want)
    np.testing.assert_array_equal(x, np.arange(3))
