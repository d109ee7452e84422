"""Tests operators that describe a tensor, read its memory as another tensor, or call Python."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T
from pliant.testing import interpret


def run(module: pliant.IRModule, *args: object) -> list[object]:
    """Returns the results of ``main`` in the interpreter, as bytecode and as native code."""
    results: list[object] = []
    for mode in ("bytecode", "compiled"):
        vm = relax.VirtualMachine(relax.build(module, exec_mode=mode), pliant.cpu())
        results.append(vm["main"](*args))
    results.append(interpret(module, *args))
    pliant.ir.assert_structural_equal(pliant.script.from_source(module.script(show_meta=True)), module)
    return results


def test_tensor_properties() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float16"), y: R.Tensor):
            a = R.inspect.tensor_shape_i(x, 0)
            b = R.inspect.tensor_stride_i(x, 0)
            c = R.inspect.tensor_ndim(y)
            d = R.inspect.tensor_dtype_code(y)
            e = R.inspect.tensor_dtype_bits(x)
            f = R.inspect.tensor_dtype_lanes(x)
            g = R.inspect.tensor_byte_offset(x)
            h = R.inspect.tensor_elem_offset(x)
            i = R.inspect.tensor_shape_i(y, 1)
            return (a, b, c, d, e, f, g, h, i)

    infos = {b.var.name_hint: b.var.struct_info for block in Module["main"].body.blocks for b in block.bindings}
    assert str(infos["a"]) == "R.Prim(value=n)" and int(infos["e"].value) == 16
    assert infos["i"] == relax.PrimStructInfo("int64") and infos["g"] == relax.PrimStructInfo("uint64")
    for result in run(Module, np.ones((5, 4), "float16"), np.ones((2, 3, 4), "int32")):
        assert list(result) == [5, 4, 3, 0, 16, 1, 0, 0, 3]


def test_inspecting_a_missing_dim_is_rejected() -> None:
    with pytest.raises(pliant.error.ScriptError, match="axis is 2, but the tensor has 2 dims"):

        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            return R.inspect.tensor_shape_i(x, 2)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(dtype="float32")):
            return R.inspect.tensor_shape_i(x, 2)

    vm = relax.VirtualMachine(relax.build(Module), pliant.cpu())
    with pytest.raises(pliant.error.VMError, match="axis is 2, but the tensor has 1 dims"):
        vm["main"](np.ones(3, "float32"))


def test_views_of_tensor_memory() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            a = R.memory.view(x, R.shape([n * 2, 2]))
            b = R.memory.view(x, dtype=R.dtype("int32"))
            c = R.memory.view(x, R.shape([2]), R.dtype("uint8"), R.prim_value(4))
            d = R.memory.ensure_zero_offset(x)
            e = R.memory.view(x)
            return (a, b, c, d, e)

    x = np.arange(8, dtype="float32").reshape(2, 4)
    want = [x.reshape(4, 2), x.view("int32"), x.view("uint8").ravel()[4:6], x, x]
    for result in run(Module, x):
        for have, expected in zip(result, want, strict=True):
            np.testing.assert_array_equal(have.numpy() if hasattr(have, "numpy") else have, expected)


def test_invalid_views_are_rejected() -> None:
    with pytest.raises(pliant.error.ScriptError, match="the view needs 40 bytes, but the operand data has only 16 bytes"):

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.memory.view(x, R.shape([10]))

    with pytest.raises(pliant.error.ScriptError, match="differ in size"):

        @R.function
        def second(x: R.Tensor((4,), "float32")):
            return R.memory.view(x, dtype=R.dtype("float64"))

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            return R.memory.view(x, R.shape([2]), R.dtype("float32"), R.prim_value(8))

    vm = relax.VirtualMachine(relax.build(Module), pliant.cpu())
    np.testing.assert_array_equal(vm["main"](np.arange(4, dtype="float32")).numpy(), [2, 3])
    with pytest.raises(pliant.error.PliantError, match="8"):
        vm["main"](np.arange(3, dtype="float32"))


def test_calls_of_python_functions() -> None:
    pliant.register_func("test.inspect.softplus", lambda x: np.log1p(np.exp(x.numpy())), override=True)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()
            with R.dataflow():
                y = R.call_py_func("test.inspect.softplus", (x,), out_sinfo=R.Tensor((n,), "float32"))
                z = R.add(y, y)
                R.output(z)
            return z

    x = np.array([-1, 0, 2], "float32")
    for result in run(Module, x):
        np.testing.assert_allclose(np.asarray(result.numpy()), 2 * np.log1p(np.exp(x)), rtol=1e-5)
    var = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    call = relax.op.call_py_func("test.inspect.softplus", (var,), relax.TensorStructInfo((3,), "float32"))
    assert call.struct_info == relax.TensorStructInfo((3,), "float32")


def test_stop_lift_params() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                a = R.exp(w)
                b = R.builtin.stop_lift_params(a)
                c = R.sqrt(b)
                d = R.add(x, c)
                R.output(d)
            return d

    lifted = relax.transform.LiftTransformParams()(Module)
    transform = lifted["main_transform_params"].script()
    assert "R.exp" in transform and "R.sqrt" not in transform
    x, w = np.arange(4, dtype="float32"), np.linspace(0, 1, 4, dtype="float32")
    for result in run(Module, x, w):
        np.testing.assert_allclose(np.asarray(result.numpy()), x + np.sqrt(np.exp(w)), rtol=1e-6)
