"""Tests the precision of inferred types in programs that import TVM, and what else differs if ``import tvm`` is Pliant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pliant
import pliant.tvm
from pliant import relax, tir
from pliant.ir import assert_structural_equal, structural_equal
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

n, m = tir.Var("n", "int64"), tir.Var("m", "int64")


def tensor(shape: object = None, dtype: str | None = "float32", ndim: int = -1) -> relax.Var:
    return relax.Var("x", relax.TensorStructInfo(shape, dtype, ndim=ndim))


@pytest.fixture
def installed() -> Iterator[None]:
    pliant.tvm.install()
    yield
    pliant.tvm.uninstall()


@pytest.fixture
def builder() -> relax.BlockBuilder:
    builder = relax.BlockBuilder()
    builder.tvm_precision = True
    return builder


def test_precision_follows_the_import(installed: None) -> None:
    assert relax.BlockBuilder().tvm_precision


def test_pliant_derives_broadcast_sizes() -> None:
    builder = relax.BlockBuilder()
    assert not builder.tvm_precision
    found = builder.normalize(relax.op.add(tensor((n,)), tensor((m,)))).struct_info
    assert found.shape is not None


def test_unproved_broadcasts_have_unknown_sizes(builder: relax.BlockBuilder) -> None:
    found = builder.normalize(relax.op.add(tensor((n, 2)), tensor((m, 2)))).struct_info
    assert_structural_equal(found, relax.TensorStructInfo(ndim=2, dtype="float32"))
    found = builder.normalize(relax.op.add(tensor((n, 2)), tensor((1, 2)))).struct_info
    assert_structural_equal(found, relax.TensorStructInfo((n, 2), "float32"))


def test_unknown_operand_types_make_the_result_type_unknown(builder: relax.BlockBuilder) -> None:
    found = builder.normalize(relax.op.concat([tensor((n, 2)), tensor((n, 3), None)], axis=1)).struct_info
    assert_structural_equal(found, relax.TensorStructInfo((n, 5), dtype=""))


def test_shape_variables_are_opaque(builder: relax.BlockBuilder) -> None:
    shape = relax.Var("s", relax.ShapeStructInfo((2, 3)))
    found = builder.normalize(relax.op.zeros(shape, "float32")).struct_info
    assert_structural_equal(found, relax.TensorStructInfo(shape, "float32"))
    found = builder.normalize(relax.op.permute_dims(tensor(shape))).struct_info
    assert_structural_equal(found, relax.TensorStructInfo(ndim=2, dtype="float32"))


def test_provable_errors_are_reported_in_spite_of_opaque_variables(builder: relax.BlockBuilder) -> None:
    x = tensor(relax.Var("s", relax.ShapeStructInfo((2, 3))))
    with pytest.raises(pliant.error.CompileError, match="elements"):
        builder.normalize(relax.op.reshape(x, (4, 4)))


def test_functions_keep_the_types_of_pliant(installed: None) -> None:
    builder = relax.BlockBuilder()
    x, y = tensor((n,)), tensor((m,))
    with builder.function("main", [x, y]):
        found = builder.emit(relax.op.add(x, y))
        assert found.struct_info.shape is not None
        builder.emit_func_output(found)


def test_sizes_are_equal_if_this_is_proved() -> None:
    assert structural_equal(relax.TensorStructInfo(((n + 2) // 3,)), relax.TensorStructInfo(((n - 1) // 3 + 1,)))
    assert not structural_equal(relax.TensorStructInfo((n // 3,)), relax.TensorStructInfo(((n + 1) // 3,)))


@pytest.mark.parametrize("scalar_shape", [(), None])
def test_a_flattened_scalar_has_one_element(scalar_shape: tuple[()] | None) -> None:
    x = tensor(scalar_shape, ndim=-1 if scalar_shape is not None else 0)
    found = relax.BlockBuilder().normalize(relax.op.flatten(x)).struct_info
    assert_structural_equal(found, relax.TensorStructInfo((1,), "float32"))


def test_reductions_over_all_axes_have_known_shapes() -> None:
    found = relax.BlockBuilder().normalize(relax.op.sum(tensor(ndim=2), keepdims=True)).struct_info
    assert_structural_equal(found, relax.TensorStructInfo((1, 1), "float32"))


def test_broadcast_to_fewer_dims_is_rejected() -> None:
    shape = relax.Var("s", relax.ShapeStructInfo(ndim=1))
    with pytest.raises(pliant.error.CompileError, match="more dims"):
        relax.BlockBuilder().normalize(relax.op.broadcast_to(tensor(ndim=2), shape))


def test_names_of_private_functions_have_no_meaning(installed: None) -> None:
    @I.ir_module
    class Left:
        @R.function(private=True)
        def first(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.exp(x)

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            cls = Left
            return cls.first(x)

    @I.ir_module
    class Right:
        @R.function(private=True)
        def second(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.exp(x)

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            cls = Right
            return cls.second(x)

    assert_structural_equal(Left, Right)
    pliant.tvm.uninstall()
    assert not structural_equal(Left, Right)
    pliant.tvm.install()


def test_the_body_refines_declared_result_types(installed: None) -> None:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor("float32", ndim=2):
        return x

    assert_structural_equal(main.ret_struct_info, relax.TensorStructInfo((2, 3), "float32"))
    x = tensor((2, 3))
    func = relax.Function([x], relax.SeqExpr([], x), relax.ObjectStructInfo())
    module = pliant.IRModule({"main": func})
    assert_structural_equal(module["main"].ret_struct_info, relax.TensorStructInfo((2, 3), "float32"))


def test_fuse_tir_merges_public_primitive_functions_and_removes_their_parts() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("exp"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = T.exp(A[vi])

        @R.function
        def group(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Primitive": 1})
            cls = Module
            with R.dataflow():
                a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
                b = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(b)
            return b

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Module
            return cls.group(x)

    found = relax.transform.FuseTIR()(Module)
    assert {var.name_hint for var in found.get_global_vars()} == {"group", "main"}
    assert isinstance(found["group"], tir.PrimFunc)


def test_functions_that_are_not_in_normal_form(installed: None) -> None:
    x, y = tensor((2,)), tensor((2,))
    nested = relax.BindingBlock([relax.VarBinding(y, relax.op.add(x, relax.op.add(x, x)))])
    module = pliant.IRModule({"main": relax.Function([x], relax.SeqExpr([nested], y), relax.TensorStructInfo((2,), "float32"))})
    assert not relax.analysis.well_formed(module)
    assert relax.analysis.well_formed(module, check="pliant")
    assert relax.analysis.well_formed(relax.transform.Normalize()(module))


def test_modules_of_invalid_functions(installed: None) -> None:
    x, y = tensor((2,)), tensor((2,))
    block = relax.BindingBlock([relax.VarBinding(y, relax.op.add(x, tensor((2,))))])
    func = relax.Function([x], relax.SeqExpr([block], y), relax.TensorStructInfo((2,), "float32"))
    module = pliant.IRModule({"main": func})
    assert not relax.analysis.well_formed(module)
    with pytest.raises(ValueError, match="neither a parameter"):
        relax.transform.Normalize()(module)
    with pytest.raises(ValueError, match="neither a parameter"):
        pliant.compile(module)


def test_invalid_functions_are_rejected_by_pliant() -> None:
    x, y = tensor((2,)), tensor((2,))
    block = relax.BindingBlock([relax.VarBinding(y, relax.op.add(x, tensor((2,))))])
    func = relax.Function([x], relax.SeqExpr([block], y), relax.TensorStructInfo((2,), "float32"))
    with pytest.raises(ValueError, match="neither a parameter"):
        pliant.IRModule({"main": func})


def test_unused_results_are_rejected(installed: None) -> None:
    with pytest.raises(pliant.error.ScriptError, match="the result of this call is not used"):

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            R.add(x, x)
            return x


def test_output_ends_a_dataflow_block(installed: None) -> None:
    with pytest.raises(pliant.error.ScriptError, match="must be the last statement"):

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                gv = R.add(x, x)
                R.output(gv)
                lv = R.add(gv, x)
            return gv


def test_outputs_are_variables_of_their_block(installed: None) -> None:
    with pytest.raises(pliant.error.ScriptError, match="'y' is not a variable of this dataflow block"):

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.add(x, x)
            with R.dataflow():
                gv = R.add(y, x)
                R.output(y, gv)
            return gv


def test_types_of_tensors_have_the_data_type_float32_by_default() -> None:
    assert relax.TensorStructInfo((2,)).dtype == ""
    pliant.tvm.install()
    try:
        assert relax.TensorStructInfo((2,)).dtype == "float32"
        assert relax.TensorStructInfo((2,), None).dtype == "" and R.Tensor((2,)).dtype == ""
    finally:
        pliant.tvm.uninstall()


def test_index_maps_are_python_functions() -> None:
    def swap(i: int, j: int) -> tuple[int, int]:
        return (j, i)

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((3, 2), "float32"):
        return R.layout_transform(x, index_map=swap)

    assert_structural_equal(main.ret_struct_info, relax.TensorStructInfo((3, 2), "float32"))
