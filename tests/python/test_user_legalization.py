"""Tests user-defined legalization of operators, passed to ``LegalizeOps``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            R.output(b)
        return b


def as_product(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    return bb.call_te(lambda a, b: te.compute(a.shape, lambda i, j: a[i, j] * b[i, j], name="product"), *call.args)


def as_sum(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    return relax.op.add(call.args[0], call.args[0])


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_calls_are_replaced(rows: int, rng: np.random.Generator) -> None:
    mod = relax.transform.LegalizeOps({"relax.add": as_product, "relax.exp": as_sum})(Module)
    assert "product[v_i, v_j] = A[v_i, v_j] * B[v_i, v_j]" in mod.script() and "R.exp" not in mod.script()
    x, y = rng.random((rows, 4), "float32"), rng.random((rows, 4), "float32")
    np.testing.assert_allclose(pliant.compile(mod)(x, y).numpy(), 2 * (x * y), rtol=1e-6)


def test_unchanged_calls_are_legalized_by_the_library() -> None:
    seen: list[str] = []

    def look(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        seen.append(call.op.name)
        return call

    made = relax.transform.LegalizeOps({"relax.add": look})(Module)
    assert seen == ["relax.add"]
    pliant.ir.assert_structural_equal(made, relax.transform.LegalizeOps()(Module))


def test_skipped_operators_are_kept() -> None:
    mod = relax.transform.LegalizeOps({"relax.add": as_product}, skip_ops=["relax.add"])(Module)
    assert "R.add(x, y)" in mod.script()


def test_unknown_operators_are_rejected() -> None:
    with pytest.raises(ValueError, match="there is no operator 'relax.ad'"):
        relax.transform.LegalizeOps({"relax.ad": as_product})


def test_non_expression_results_are_rejected() -> None:
    def nothing(bb: relax.BlockBuilder, call: relax.Call) -> Any:
        return None

    with pytest.raises(TypeError, match="the legalization function for operator relax.add returned NoneType, not an expression"):
        relax.transform.LegalizeOps({"relax.add": nothing})(Module)
