"""Tests scaling factors of attention. If float32 can represent the product of all factors, the kernel applies the product
as one factor. The results must agree with those of generated loops."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor(("b", 2, "n", 4), "float32"), k: R.Tensor(("b", 2, "m", 4), "float32")) -> R.Tensor(("b", 2, "n", 4), "float32"):
        with R.dataflow():
            p = R.multiply(q, R.const({queries}, "float32"))
            kt = R.multiply(R.permute_dims(k, [0, 1, 3, 2]), R.const({keys}, "float32"))
            s = R.{op}(R.multiply(R.matmul(p, kt), R.const({first}, "float32")), R.const({last}, "float32"))
            z = R.matmul(R.nn.softmax(s, axis=-1), k)
            R.output(z)
        return z
"""


@pytest.mark.parametrize(
    ("queries", "keys", "op", "first", "last", "fused"),
    [
        (0.5, 2.0, "multiply", 0.25, 4.0, True),
        (0.5, 2.0, "divide", 0.25, 4.0, True),
        (1.0, 1.0, "multiply", 0.0, 1.0, True),
        (1e-15, 1e-15, "multiply", 1e20, 1e20, False),
        (1.0, 1.0, "multiply", 0.0, 1e30, False),
        (1e-18, 1e-18, "divide", 1.0, 1e-39, False),
    ],
)
def test_scale_factors_agree_with_loops(
    queries: float, keys: float, op: str, first: float, last: float, fused: bool
) -> None:
    program = from_source(PROGRAM.format(queries=queries, keys=keys, op=op, first=first, last=last))
    rng = np.random.default_rng(5)
    q, k = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 2, 3, 4), (2, 2, 5, 4)))
    want = np.asarray(pliant.compile(program, kernels="off")(q, k))
    assert np.isfinite(want).all()
    np.testing.assert_allclose(np.asarray(pliant.compile(program)(q, k)), want, rtol=1e-4, atol=1e-5)
    assert ('T.call_kernel("attention"' in relax.get_pipeline("zero")(program).script()) == fused
