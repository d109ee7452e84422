"""Small things that programs written for TVM use beside passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pliant as tvm
from pliant import relax, te, topi
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


def test_data_types_are_taken_apart() -> None:
    dtype = tvm.DataType("float16")
    assert (dtype, dtype.type_code, dtype.bits, dtype.lanes, dtype.itemsize) == (
        "float16",
        tvm.DataTypeCode.FLOAT,
        16,
        1,
        2,
    )
    assert tvm.DataType("bool").itemsize == 1 and tvm.DataType("bfloat16").type_code == 4
    assert relax.TensorStructInfo((2,), dtype).dtype == "float16"
    assert tvm.runtime.data_type.DataType("int8").with_lanes(1) == "int8"
    with pytest.raises(ValueError, match="one lane"):
        dtype.with_lanes(4)
    with pytest.raises((ValueError, TypeError), match="float12"):
        tvm.DataType("float12")


def test_lists_and_tuples_are_arrays() -> None:
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    call = relax.op.add(x, x)
    assert isinstance(call.args, tvm.ir.Array) and isinstance({}, tvm.ir.Map) and not isinstance(3, tvm.ir.Array)
    assert tvm.ir.Array([1, 2]) == [1, 2] and tvm.ir.Map({"a": 1}) == {"a": 1}


@I.ir_module
class Module:
    I.module_attrs({"level": 3})

    @T.prim_func(private=True)
    def zeros(A: T.Buffer((2, 3), "int32")):
        for i, j in T.grid(2, 3):
            with T.block("zeros"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = 0

    @R.function
    def main(x: R.Tensor((2, 3), "int32")) -> R.Tensor((2, 3), "int32"):
        cls = Module
        z = R.call_tir_inplace(cls.zeros, (x,), inplace_indices=[0], out_sinfo=R.Tensor((2, 3), "int32"))
        return z


def test_modules_tell_their_attributes() -> None:
    assert Module.get_attrs() == {"level": 3} and Module.get_attr("level") == 3 and Module.global_infos == {}


def test_calls_in_place_print_as_they_are_written() -> None:
    text = Module.script()
    assert "inplace_indices=[0]" in text and 'out_sinfo=R.Tensor((2, 3), dtype="int32")' in text
    assert "sinfo_args" not in text
    for form in (text, text.replace("out_sinfo=", "sinfo_args=")):
        tvm.ir.assert_structural_equal(tvm.script.from_source(form), Module)


def test_a_folded_nan_keeps_its_sign() -> None:
    @I.ir_module
    class Nan:
        @R.function
        def main() -> R.Tensor((), "float32"):
            return R.log(R.const(-1.0, "float32"))

    folded = relax.transform.FoldConstant()(Nan)
    again = tvm.script.from_source(folded.script(show_meta=True))
    tvm.ir.assert_structural_equal(again, folded)
    for sign in (1.0, -1.0):
        constant = relax.const(np.array(math.copysign(math.nan, sign), "float32"))
        func = relax.Function([], constant)
        text = tvm.IRModule({"main": func}).script()
        read = relax.VirtualMachine(relax.build(tvm.script.from_source(text)), tvm.cpu())["main"]().numpy()
        assert np.isnan(read) and np.signbit(read) == (sign < 0)


def test_options_of_builds_and_passes_are_named() -> None:
    with pytest.raises(TypeError, match="relax_pipeline="):
        relax.build(Module, pipeline="nope")
    transform = relax.transform
    for make, words in [
        (lambda: transform.DeadCodeElimination(3), "DeadCodeElimination.*entry_functions"),
        (lambda: transform.FoldConstant("x"), "FoldConstant.*max_elements"),
        (lambda: transform.ConvertToDataflow("x"), "ConvertToDataflow.*min_size"),
        (lambda: transform.BundleModelParams(3), "BundleModelParams.*param_tuple_name"),
        (lambda: transform.TopologicalSort(3), "TopologicalSort.*order"),
        (lambda: transform.EliminateCommonSubexpr("a"), "EliminateCommonSubexpr.*call_only"),
        (lambda: transform.LiftTransformParams(3), "LiftTransformParams.*shared_transform"),
        (lambda: transform.BindParams("main", 3), "BindParams.*params"),
        (lambda: transform.BindSymbolicVars(3), "BindSymbolicVars.*binding_map"),
        (lambda: transform.LegalizeOps(skip_ops=3), "LegalizeOps.*skip_ops"),
    ]:
        with pytest.raises(TypeError, match=words):
            make()


def test_squeeze_of_tensor_expressions() -> None:
    n = te.var("n", "int64")
    x = te.placeholder((1, n, 1, 3), "float32", "x")
    assert [str(d) for d in topi.squeeze(x).shape] == ["n", "3"]
    assert len(topi.squeeze(x, 0).shape) == 3 and len(topi.squeeze(x, [0, -2]).shape) == 2
    with pytest.raises(ValueError, match="dim 3 has the size 3"):
        topi.squeeze(x, 3)
    with pytest.raises(ValueError, match="out of range"):
        topi.squeeze(x, 4)
    func = te.create_prim_func([x, topi.squeeze(x)])
    out = np.zeros((2, 3), "float32")
    data = np.arange(6, dtype="float32").reshape(1, 2, 1, 3)
    result = tvm.nd.array(out)
    tvm.compile(func)(tvm.nd.array(data), result)
    np.testing.assert_array_equal(result.numpy(), data.reshape(2, 3))


def test_fields_of_tuples_become_parameters() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Before
            return cls.func((A, B))

        @R.function(private=True)
        def func(args: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
            return args[0]

    @I.ir_module
    class Expected:
        @R.function
        def main(A: R.Tensor((4,), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Expected
            return cls.func(A, B)

        @R.function(private=True)
        def func(
            args_0: R.Tensor((4,), "float32"), args_1: R.Tensor((4,), "float32")
        ) -> R.Tensor((4,), "float32"):
            return args_0

    tvm.ir.assert_structural_equal(relax.transform.ExpandTupleArguments()(Before), Expected)
