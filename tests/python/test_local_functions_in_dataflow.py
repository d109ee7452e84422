"""Tests local functions that scripts and blocks define in dataflow blocks: they are moved in front of the block."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import relax as R


@R.function
def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
    with R.dataflow():
        lv = R.add(x, x)

        @R.function
        def double(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            with R.dataflow():
                gv = R.add(y, y)
                R.output(gv)
            return gv

        out = double(lv)
        R.output(out)
    return out


def test_the_function_runs() -> None:
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(pliant.compile(main)(x).numpy(), 4 * x)


def test_the_function_is_in_front_of_the_block() -> None:
    functions, block = main.body.blocks
    assert not isinstance(functions, relax.DataflowBlock) and isinstance(block, relax.DataflowBlock)
    assert [isinstance(b.value, relax.Function) for b in functions.bindings] == [True]
    assert len(block.bindings) == 2


def test_blocks_built_in_python() -> None:
    scalar = relax.TensorStructInfo((), "int32")
    f = relax.DataflowVar("f", relax.FuncStructInfo([], scalar))
    out, one = relax.Var("out", scalar), relax.const(1, "int32")
    inner = relax.Function([], relax.SeqExpr([], one), scalar)
    block = relax.DataflowBlock([relax.VarBinding(f, inner), relax.VarBinding(out, relax.Call(f, []))])
    module = pliant.IRModule({"main": relax.Function([], relax.SeqExpr([block], out), scalar)})
    assert relax.analysis.well_formed(module)


def test_functions_that_read_variables_of_the_block_are_rejected() -> None:
    with pytest.raises(pliant.error.ScriptError, match="reads 'lv', a variable of the dataflow block"):

        @R.function
        def bad(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            with R.dataflow():
                lv = R.add(x, x)

                @R.function
                def inner(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                    return R.add(y, lv)

                out = inner(lv)
                R.output(out)
            return out
