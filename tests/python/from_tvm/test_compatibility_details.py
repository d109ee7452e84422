"""Tests details of TVM's interface, apart from passes, that programs written for TVM use: data types, attributes, names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pliant as tvm
from pliant import relax, te, topi
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


def test_data_type_components() -> None:
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


def test_lists_and_tuples_as_arrays() -> None:
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


def test_module_attributes() -> None:
    assert Module.get_attrs() == {"level": 3} and Module.get_attr("level") == 3 and Module.global_infos == {}


def test_in_place_calls_round_trip() -> None:
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


def test_default_attributes_of_calls_outside_functions() -> None:
    x = relax.Var("x", R.Tensor((1, 3, 8, 8), "float32"))
    w = relax.Var("w", R.Tensor((4, 3, 3, 3), "float32"))
    attrs = relax.op.nn.conv2d(x, w, strides=(2, 2), padding=1).attrs
    assert (list(attrs.strides), list(attrs.dilation), attrs.groups, attrs.data_layout) == ([2, 2], [1, 1], 1, "NCHW")
    assert relax.op.permute_dims(w).attrs.axes is None
    info = x.struct_info
    assert relax.TensorStructInfo(info.shape, "int8", info.vdevice).vdevice is None
    assert relax.op.nn.softmax(w).attrs.axis == -1
    total = relax.op.sum(w)
    assert (total.attrs.axis, total.attrs.keepdims) == (None, False)
    again = relax.Call(total.op, total.args, {**total.attrs, "keepdims": True})
    assert again.attrs == {"axis": None, "keepdims": True}


def test_unknown_data_types_are_written_by_name() -> None:
    builder = relax.BlockBuilder()
    with builder.function("main", [], pure=False):
        shape = relax.ShapeExpr([2, 3])
        builder.emit_func_output(builder.emit(relax.op.builtin.alloc_tensor(shape, "int8", runtime_device_index=0)))
    out = relax.VirtualMachine(relax.build(builder.get()))["main"]()
    assert (out.shape, out.dtype) == ((2, 3), "int8")
    storage = relax.op.memory.alloc_storage(relax.ShapeExpr([24]), 0, "global", "uint8")
    assert isinstance(storage.args[3], relax.DataTypeImm)
    with pytest.raises(tvm.error.DTypeError, match="alloc_tensor: operand 'dtype'.*int7"):
        relax.op.builtin.alloc_tensor(relax.ShapeExpr([2]), "int7", 0)


def test_attributes_of_loop_functions_are_typed_scalars_or_values_of_the_program() -> None:
    name, notes = "fill", [1, 2]

    @T.prim_func
    def fill(A: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": T.bool(True), "n": T.int64(3), "f": T.float32(1), "kernel": name + "_4", "notes": notes})
        for i in T.serial(4, annotations={"pragma": T.int32(1), "of": name}):
            A[i] = T.float32(0)

    assert fill.attrs == {"global_symbol": "fill", "tir.noalias": True, "n": 3, "f": 1.0, "kernel": "fill_4", "notes": [1, 2]}
    assert fill.body.annotations == {"pragma": 1, "of": "fill"}

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        R.func_attr({"relax.force_pure": T.bool(True), "n": T.int64(3)})
        return x

    assert main.attrs["relax.force_pure"] is True
    assert main.attrs["n"] == 3
    with pytest.raises(tvm.error.ScriptError, match="key must be a string and each value a constant"):

        @T.prim_func
        def wrong(A: T.Buffer((4,), "float32")):
            T.func_attr({"x": pytest})
            A[0] = T.float32(0)


def test_names_of_fused_loop_functions() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def dequantize(A: T.Buffer((4,), "int8"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = T.cast(A[i], "float32")

        @T.prim_func(private=True)
        def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = A[i] * T.float32(2)

        @R.function
        def main(x: R.Tensor((4,), "int8")) -> R.Tensor((4,), "float32"):
            cls = Module
            with R.dataflow():
                a = R.call_tir(cls.dequantize, (x,), out_sinfo=R.Tensor((4,), "float32"))
                b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((4,), "float32"))
                c = R.exp(b)
                R.output(c)
            return c

    call = relax.dpl.is_op("relax.call_tir")
    inner = call(relax.dpl.GlobalVarPattern(), relax.dpl.TuplePattern([relax.dpl.wildcard()]), add_constraint=False)
    pattern = relax.dpl.is_op("relax.exp")(
        call(relax.dpl.GlobalVarPattern(), relax.dpl.TuplePattern([inner]), add_constraint=False)
    )
    fused = relax.transform.FuseOpsByPattern([("mine.all", pattern)])(Module)
    assert "fused_dequantize_double_relax_exp" in [gv.name_hint for gv in fused.get_global_vars()]


def test_results_of_unspecified_tuple_type() -> None:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tuple:
        return (x, (x, x))

    assert len(main.ret_struct_info.fields) == 2
    tvm.ir.assert_structural_equal(main, tvm.script.from_source(main.script()))
    with pytest.raises(tvm.error.ScriptError, match="declared to return"):

        @R.function
        def other(x: R.Tensor((2,), "float32")) -> R.Tuple:
            return x


def test_patterns_distinguish_dataflow_variables() -> None:
    own, other = relax.DataflowVar("x", R.Tensor((3,), "float32")), relax.Var("x", R.Tensor((3,), "float32"))
    assert relax.dpl.is_dfv("x").match(own)
    assert not relax.dpl.is_dfv("x").match(other)
    assert not relax.dpl.is_dfv("y").match(own)
    assert relax.dpl.is_var("x").match(other)
