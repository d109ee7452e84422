"""Tests that operators that would be fused into one kernel stay separate if a call works in place between them."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

RAISE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def raise_all(a: T.handle):
        n, m, k, l = T.int64(), T.int64(), T.int64(), T.int64()
        A = T.match_buffer(a, (n, m, k, l), "float32")
        for i, j, p, q in T.grid(n, m, k, l):
            A[i, j, p, q] = A[i, j, p, q] * T.float32(-2) + T.float32(3)

    @R.function
    def main({params}):
        cls = Module
        n = T.int64()
        with R.dataflow():
            {before}
            w = R.call_tir_inplace(cls.raise_all, ({written},), [0], R.Tensor({shape}, "float32"))
            {after}
            R.output(w, z)
        return (w, z)
"""

FIRST, LAST = '("n", 8, 3, 4)', '("n", 3, 4, 8)'
CONV = "R.nn.conv2d(x, W)"
CONV_LAST = 'R.nn.conv2d(x, W, data_layout="NHWC")'
KEYS = "t = R.permute_dims(y, axes=[0, 1, 3, 2])"
ATTENTION = "R.matmul(R.nn.softmax({}, axis=-1), x)"

# A description, the dims, the code before the write, the written value and its dims, the code
# after it.
PROGRAMS = [
    ("result", FIRST, f"c = {CONV}", "c", FIRST, "z = R.nn.relu(c)"),
    ("sum", FIRST, f"c = {CONV}", "c", FIRST, f"z = R.add(c, {CONV})"),
    ("mean", FIRST, f"c = {CONV}", "c", FIRST, "z = R.mean(c, axis=[2, 3])"),
    ("data", LAST, f"c = {CONV_LAST}", "x", LAST, "z = R.nn.relu(c)"),
    ("residual", LAST, f"c = R.add({CONV_LAST}, y)", "y", LAST, "z = R.nn.relu(c)"),
    ("keys", '("n", 2, 5, 4)', KEYS, "y", '("n", 2, 5, 4)', f"z = {ATTENTION.format('R.matmul(x, t)')}"),
    (
        "scale",
        '("n", 2, 5, 4)',
        f'{KEYS}; c = R.const(np.full((1, 1, 1, 1), 0.5, "float32"))',
        "c",
        "(1, 1, 1, 1)",
        f"z = {ATTENTION.format('R.multiply(R.matmul(x, t), c)')}",
    ),
]


def program(dims: str, before: str, written: str, shape: str, after: str) -> pliant.IRModule:
    params = ", ".join(f'{v}: R.Tensor({dims}, "float32")' for v in "xy")
    weights = (np.arange(64, dtype="float32").reshape(8, 8, 1, 1) - 30) / 100
    text = RAISE.format(params=params, before=before, written=written, shape=shape.replace('"', ""), after=after)
    return from_source(text, {"W": relax.const(weights), "np": np})


@pytest.mark.parametrize(("dims", "before", "written", "shape", "after"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_reads_stay_before_or_after_the_write(dims: str, before: str, written: str, shape: str, after: str, mode: str) -> None:
    module = program(dims, before, written, shape, after)
    model = pliant.compile(module, exec_mode=mode)
    for n in (0, 1, 3):
        size = [n, *(int(d) for d in dims.strip("()").split(",")[1:])]
        rng = np.random.default_rng(n)
        x, y = (rng.standard_normal(size).astype("float32") for _ in "xy")
        wanted = [np.asarray(v) for v in interpret(module, x.copy(), y.copy())]
        given = [np.asarray(v) for v in model(x.copy(), y.copy())]
        for a, b in zip(given, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_permutation_stays_before_the_write() -> None:
    before, after = "t = R.permute_dims(x); u = R.permute_dims(y)", "z = R.concat([t, u], axis=0)"
    module = program(FIRST, before, "x", FIRST, after)
    moved = relax.transform.ReorderPermuteDimsAfterConcat()(module)
    x, y = (np.full((2, 8, 3, 4), v, "float32") for v in (1, 2))
    for a, b in zip(interpret(moved, x.copy(), y), interpret(module, x.copy(), y), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
