"""Tests that the attention kernel and generated loops agree for masks and scores at the limits of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor(("b", "n", 4), "{dtype}"), k: R.Tensor(("b", "m", 4), "{dtype}"), v: R.Tensor(("b", "m", 4), "{dtype}"){more}):
        b = T.int64()
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            s = R.matmul(q, R.permute_dims(k, [0, 2, 1]))
            {body}
            R.output(z)
        return z
"""
LEAST = float(np.finfo("float32").min)
MASK = ', f: R.Tensor(("b", 1, "m"), "float32")'
SEEN = ', c: R.Tensor(("b", 1, "m"), "bool")'


def program(body: list[str], more: str = "", dtype: str = "float32") -> pliant.IRModule:
    return from_source(PROGRAM.format(dtype=dtype, more=more, body=("\n" + " " * 12).join(body)))


def same(module: pliant.IRModule, feeds: list[Any], fused: bool | None = True, tol: float = 1e-4) -> np.ndarray:
    """Compares the results of the attention kernel with those of generated loops."""
    if fused is not None:
        assert ('T.call_kernel("attention"' in relax.get_pipeline("zero")(module).script()) == fused
    got, want = (np.asarray(pliant.compile(module, kernels=k)(*feeds)).astype("float32") for k in ("on", "off"))
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)
    return got


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype("float32")


def operands(dtype: str = "float32", n: int = 3, m: int = 5) -> list[Any]:
    made = [random(2, n, 4), random(2, m, 4, seed=1), random(2, m, 4, seed=2)]
    return [a.astype(dtype) for a in made]


def guards(dtype: str) -> dict[str, list[str]]:
    zero, none = (f'R.const({x}, "{dtype}")' for x in ("0.0", 'float("-inf")'))
    softmax, last = "w = R.nn.softmax(e, axis=-1)", "z = R.matmul(g, v)"
    return {
        "nothing": [softmax, "z = R.matmul(w, v)"],
        "NaN": [softmax, f"g = R.where(R.isnan(w), {zero}, w)", last],
        "sum": [
            softmax,
            f"g = R.where(R.equal(R.max(h, axis=[-1], keepdims=True), {none}), {zero}, w)",
            last,
        ],
    }


@pytest.mark.parametrize("guard", ["nothing", "NaN", "sum"])
@pytest.mark.parametrize("number", [LEAST, -1e9, -np.inf, -3000.3])
def test_masks_rounded_before_addition(number: float, guard: str) -> None:
    body = ['h = R.astype(f, "float16")', "e = R.add(s, h)", *guards("float16")[guard]]
    mask = np.zeros((2, 1, 5), "float32")
    mask[0, 0, 3:] = mask[1] = number
    got = same(program(body, MASK, "float16"), [*operands("float16"), mask], tol=2e-3 if abs(number) > 1e4 else 2)
    blind = "zeros" if guard != "nothing" else "NaN"
    if abs(number) > 1e4:
        assert (got[1] == 0).all() if blind == "zeros" else np.isnan(got[1]).all()


@pytest.mark.parametrize("guard", ["nothing", "NaN"])
@pytest.mark.parametrize("number", [LEAST, -1e9])
def test_scores_rounded_after_masking(number: float, guard: str) -> None:
    hidden = f'e = R.astype(R.where(c, R.astype(s, "float32"), R.const({number!r}, "float32")), "float16")'
    seen = np.array([[[1, 0, 1, 1, 0]], [[0] * 5]], bool)
    same(program([hidden, *guards("float16")[guard]], SEEN, "float16"), [*operands("float16"), seen], tol=2e-3)


@pytest.mark.parametrize("guard", ["nothing", "NaN"])
def test_rounded_score_sums(guard: str) -> None:
    mask = np.zeros((2, 1, 5), "float32")
    mask[0, 0, 3:] = mask[1] = -1e9
    body = ['e = R.astype(R.add(R.astype(s, "float32"), f), "float16")', *guards("float16")[guard]]
    same(program(body, MASK, "float16"), [*operands("float16"), mask], tol=2e-3)
    # A condition that is computed inside the mask.
    body[0] = f'h = R.where(c, R.const(0.0, "float32"), R.const({LEAST!r}, "float32"))'
    body.insert(1, 'e = R.add(s, R.astype(h, "float16"))')
    seen = np.array([[[1, 0, 1, 1, 0]], [[0] * 5]], bool)
    same(program(body, SEEN, "float16"), [*operands("float16"), seen], tol=2e-3)


def test_fully_masked_row_check_reads_rounded_mask() -> None:
    """Tests a check for fully masked rows that reads a copy of the mask rounded to float16, in which -1e9 is minus infinity. The
    mask that is added to the scores is not rounded, so the attention must not become one kernel call.
    """
    mask = np.zeros((2, 1, 5), "float32")
    mask[1] = -1e9
    body = ["h = R.astype(f, 'float16')", "e = R.add(s, f)", *guards("float32")["sum"]]
    body[-2] = body[-2].replace("-inf\"), \"float32\"", "-inf\"), \"float16\"")
    same(program(body, MASK), [*operands(), mask], fused=False)


def test_values_that_overflow_bfloat16() -> None:
    pytest.importorskip("ml_dtypes")
    for number, blind in ((LEAST, True), (-1e9, False)):
        hidden = f'e = R.astype(R.where(c, R.astype(s, "float32"), R.const({number!r}, "float32")), "bfloat16")'
        body = [hidden, 'z0 = R.matmul(R.nn.softmax(e, axis=-1), v)', 'z = R.astype(z0, "float32")']
        seen = np.array([[[1, 0, 1, 1, 0]], [[0] * 5]], bool)
        got = same(program(body, SEEN, "bfloat16"), [*operands("bfloat16"), seen], tol=5e-2)
        assert np.isnan(got[1]).all() == blind


def test_mask_values_near_the_float_limit() -> None:
    body = [
        'e = R.multiply(R.tanh(R.multiply(s, R.const(2.0, "float32"))), R.const({}, "float32"))',
        "z = R.matmul(R.nn.softmax(e, axis=-1), v)",
    ]
    for cap, fused in (("1e35", True), ("1e37", True), ("1e38", False)):
        same(program([body[0].format(cap), body[1]]), operands(), fused)


@pytest.mark.parametrize("hidden", ["bias", "nothing"])
def test_bias_masks_nan_for_fully_masked_queries(hidden: str) -> None:
    body = ["h = R.add(f, R.const(0.0, 'float32'))", "e = R.add(s, h)", *guards("float32")["sum"]]
    q, k, v = operands()
    k[1], v[1] = np.nan, np.inf
    mask = np.zeros((2, 1, 5), "float32")
    if hidden == "bias":
        mask[1] = -np.inf
    module = program(body, MASK)
    assert 'T.call_kernel("attention"' in relax.get_pipeline("zero")(module).script()
    got = np.asarray(pliant.compile(module)(q, k, v, mask))
    assert np.isfinite(got[0]).all()
    assert (got[1] == 0).all() if hidden == "bias" else np.isnan(got[1]).all()


@pytest.mark.parametrize(
    ("queries", "keys"),
    [
        # The last of 12 positions exceeds 32 bits, or 64.
        ('R.add(R.astype(R.arange(0, {n}), "int32"), R.const(2147483640, "int32"))',) * 2,
        ('R.astype(R.add(R.arange(0, {n}), R.const(2147483640, "int64")), "int32")',) * 2,
        ('R.add(R.arange(0, {n}), R.const(9223372036854775800, "int64"))',) * 2,
        # The difference of the addends exceeds them.
        (
            'R.add(R.arange(0, {n}), R.const(9223372036854775800, "int64"))',
            'R.subtract(R.arange(0, {n}), R.const(9223372036854775800, "int64"))',
        ),
        # Sums of numbers far from the limit exceed them.
        (
            'R.add(R.add(R.astype(R.arange(0, {n}), "int32"), R.const(1073741820, "int32")), R.const(1073741820, "int32"))',
            'R.astype(R.arange(0, {n}), "int32")',
        ),
        # Steps exceed them, but not their difference.
        (
            'R.astype(R.arange(0, {n} * 536870912, 536870912), "int32")',
            'R.astype(R.subtract(R.arange(0, {n} * 536870912, 536870912), R.arange(0, {n})), "int32")',
        ),
    ],
)
def test_positional_mask_indices_wrap_around(queries: str, keys: str) -> None:
    body = [
        f"i = R.expand_dims({queries.format(n='n')}, 1)",
        f"j = {keys.format(n='m')}",
        'e = R.where(R.greater_equal(i, j), s, R.const(float("-inf"), "float32"))',
        "z = R.matmul(R.nn.softmax(e, axis=-1), v)",
    ]
    same(program(body), operands(n=12, m=12), None)


@pytest.mark.parametrize("window", [False, True])
def test_positional_masks_far_from_all_keys(window: bool) -> None:
    body = [
        "i = R.expand_dims(R.add(R.arange(0, n), R.shape_to_tensor(R.shape([p]))), 1)",
        "j = R.arange(0, m)",
        "last = R.less_equal(j, i)",
        'seen = R.logical_and(last, R.greater(j, R.subtract(i, R.const(3, "int64"))))' if window else "seen = last",
        'e = R.where(seen, s, R.const(float("-inf"), "float32"))',
        "z = R.matmul(R.nn.softmax(e, axis=-1), v)",
    ]
    text = PROGRAM.format(dtype="float32", more=', o: R.Shape(["p"])', body=("\n" + " " * 12).join(body))
    module = from_source(text.replace("m = T.int64()", "m = T.int64()\n        p = T.int64()"))
    for first in (0, 3, 7, 12, 1 << 33, 1 << 60):
        same(module, [*operands(), (first,)])
