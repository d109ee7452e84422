"""Tests constant folding of large constants. A value of at most the size of the constants that it replaces is always
folded; other values are folded only up to a limit."""

from __future__ import annotations

import numpy as np
import pliant
from pliant import relax

# More than the 2**24 elements that other values may have.
SIDE = 4100


def folded(build) -> str:
    """Returns the script of a function that only computes with constants, after constant
    folding.
    """
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        with bb.dataflow():
            y = bb.emit_output(build(bb))
        bb.emit_func_output(y)
    return pliant.relax.transform.FoldConstant()(bb.get()).script()


def weight() -> relax.Constant:
    return relax.const(np.ones((SIDE, SIDE), "int8"))


def test_a_transposed_or_cast_weight_is_folded():
    assert "R.permute_dims" not in folded(lambda bb: relax.op.permute_dims(weight()))
    assert "R.astype" not in folded(lambda bb: relax.op.astype(weight(), "int32"))
    assert "R.subtract" not in folded(lambda bb: relax.op.subtract(weight(), relax.const(np.ones(SIDE, "int8"))))


def test_a_value_with_more_elements_than_its_operands_is_kept():
    row = relax.const(np.ones((1, SIDE), "int8"))
    assert "R.broadcast_to" in folded(lambda bb: relax.op.broadcast_to(row, (SIDE, SIDE)))


def test_a_limit_of_the_context_holds_for_all_values():
    with pliant.transform.PassContext(config={"relax.FoldConstant.max_elements": 1 << 20}):
        assert "R.permute_dims" in folded(lambda bb: relax.op.permute_dims(weight()))
