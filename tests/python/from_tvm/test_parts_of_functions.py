"""Tests the script text and the JSON of parts of functions, and the builder by nested `with` statements."""

from __future__ import annotations

from typing import Any

import pytest

import pliant
from pliant import relax, tir
from pliant.script.ir_builder import IRBuilder
from pliant.script.ir_builder import ir as I
from pliant.script.ir_builder import relax as R

n = tir.Var("n", "int64")
x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
y = relax.Var("y", relax.TensorStructInfo((n, 4), "float32"))


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (relax.ShapeStructInfo(ndim=2), "R.Shape(ndim=2)"),
        (relax.ShapeStructInfo([n]), 'n = T.Var("n", "int64")\nR.Shape([n])'),
        (x, 'n = T.Var("n", "int64")\nx: R.Tensor((n, 4), dtype="float32")\nx'),
        (relax.Tuple([x]), 'n = T.Var("n", "int64")\nx: R.Tensor((n, 4), dtype="float32")\n(x,)'),
        (relax.StringImm("a"), 'R.str("a")'),
    ],
)
def test_script_declares_free_variables(node: Any, text: str) -> None:
    assert node.script() == text


def test_script_of_blocks() -> None:
    block = relax.BindingBlock([relax.VarBinding(y, relax.op.exp(x))])
    assert block.script().splitlines()[-1] == 'y: R.Tensor((n, 4), dtype="float32") = R.exp(x)'
    assert relax.SeqExpr([block], y).script().splitlines()[-1] == "y"


def test_options_of_the_printer() -> None:
    func = relax.Function([x], relax.op.exp(x), None)
    assert "Q.function" in func.script(relax_prefix="Q")
    assert "\n  n = T.int64()" in func.script(indent_spaces=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        func.script(color=True)


@pytest.mark.parametrize(
    "node",
    [
        relax.ObjectStructInfo(),
        relax.TensorStructInfo((n, 4), "float32"),
        relax.TupleStructInfo([relax.ShapeStructInfo([n, n + 1])]),
        relax.PrimValue(3),
        relax.op.exp(x),
        relax.VarBinding(y, relax.op.exp(x)),
        relax.BindingBlock([relax.VarBinding(y, relax.op.exp(x))]),
    ],
    ids=lambda node: type(node).__name__,
)
def test_json_of_parts(node: Any) -> None:
    loaded = pliant.ir.load_json(pliant.ir.save_json(node))
    assert type(loaded) is type(node)
    if isinstance(node, relax.StructInfo):
        assert pliant.ir.structural_equal(loaded, node, map_free_vars=True)


def test_json_of_other_objects_is_refused() -> None:
    with pytest.raises(TypeError, match="not int"):
        pliant.ir.save_json(3)


def test_builder_of_functions() -> None:
    with IRBuilder() as builder:
        with R.function():
            R.func_name("main")
            R.func_attr({"num_input": 1})
            a = R.arg("a", relax.TensorStructInfo((4,), "float32"))
            with R.dataflow() as block:
                local = R.emit(R.exp(a))
                result = IRBuilder.name("result", R.emit(R.add(local, a)))
                R.output(result)
            assert block.output_vars == (result,)
            R.func_ret_value(result)
    func = builder.get()
    assert func.attrs["num_input"] == 1
    (block_,) = func.body.blocks
    assert isinstance(block_, relax.DataflowBlock)
    assert isinstance(block_.bindings[0].var, relax.DataflowVar)
    assert not isinstance(block_.bindings[1].var, relax.DataflowVar)
    assert func.body.body.name_hint == "result"


def test_builder_of_modules_and_branches() -> None:
    with IRBuilder() as builder:
        with I.ir_module():
            with R.function():
                R.func_name("main")
                cond = R.arg("cond", relax.TensorStructInfo((), "bool"))
                a = R.arg("a", relax.TensorStructInfo((4,), "float32"))
                with R.If(cond) as branch:
                    with R.Then():
                        R.emit(R.exp(a))
                    with R.Else():
                        R.emit(R.negative(a))
                R.func_ret_value(branch.var)
    module = builder.get()
    import numpy as np

    vm = relax.VirtualMachine(relax.build(module))
    assert np.allclose(vm["main"](np.array(False), np.ones(4, "float32")).numpy(), -1)


def test_builder_errors() -> None:
    with pytest.raises(ValueError, match="no builder is open"):
        R.func_name("main")
    with IRBuilder() as builder, pytest.raises(ValueError, match="has no result"):
        with R.function():
            pass
    with pytest.raises(ValueError, match="nothing was built"):
        builder.get()


def test_blocks_outside_of_functions() -> None:
    builder = relax.BlockBuilder()
    builder._begin_dataflow_block()
    local = builder.emit(relax.op.exp(x))
    result = builder.emit_output(relax.op.add(local, x))
    block = builder._end_block()
    assert isinstance(block, relax.DataflowBlock) and block.bindings[1].var.same_as(result)
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x)))
    assert [var.name_hint for var in builder.get().get_global_vars()] == ["main"]


def test_function_patterns() -> None:
    from pliant.relax.dpl import FunctionPattern, is_op, wildcard

    a, b = wildcard(), wildcard()
    add = FunctionPattern([a, b], is_op("relax.add")(a, b))
    assert add.match(relax.Function([x, y], relax.op.add(x, y), None))
    assert not add.match(relax.Function([x, y], relax.op.multiply(x, y), None))
    assert not add.match(relax.op.add(x, y))


def test_fma_passes() -> None:
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        with builder.dataflow():
            product = builder.emit(relax.op.multiply(x, y))
            result = builder.emit_output(relax.op.add(product, y))
        builder.emit_func_output(result)
    after = relax.transform.RewriteFMA()(builder.get())
    assert after["main"].body.blocks[0].bindings[1].value.op.name == "relax.ewise_fma"
    assert "ewise_fma_fused" in relax.transform.FuseFMA()(builder.get())
