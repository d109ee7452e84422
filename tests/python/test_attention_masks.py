"""Tests attention with scores masked by `where`, as exporters write it. It must become one kernel call, whose results agree
with those of generated loops."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor(("b", 2, "n", 4), "float32"), k: R.Tensor(("b", 2, "m", 4), "float32"), v: R.Tensor(("b", 2, "m", 3), "float32"), mask: R.Tensor({mask}, "bool"), bias: R.Tensor(("b", 1, 1, "m"), "float32")):
        b = T.int64()
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            p = R.divide(R.matmul(q, R.permute_dims(k, [0, 1, 3, 2])), R.const(2.0, "float32"))
            {body}
            z = R.matmul(R.nn.softmax(s, axis=-1), v)
            R.output(z)
        return z
"""
HIDDEN = {"inf": -np.inf, "large": -1e9, "least": float(np.finfo("float32").min), "small": 0.25}
BODIES = {
    "kept": "s = R.where(mask, p, {none})",
    "filled": "s = R.where(mask, {none}, p)",
    "bias before": "s = R.where(mask, R.add(p, bias), {none})",
    "bias after": "s = R.add(R.where(mask, p, {none}), bias)",
    "bias after, first": "s = R.add(bias, R.where(mask, {none}, p))",
    "scaled": "s = R.where(mask, R.multiply(p, R.const(0.5, 'float32')), {none})",
}
PLACES = {
    "all": '("b", 2, "n", "m")',
    "padding": '("b", 1, 1, "m")',
    "places": '("n", "m")',
    "queries": '(1, "n", 1)',
}


def program(body: str, mask: str = "all", hidden: str = "inf") -> pliant.IRModule:
    number = f"R.const(float('{HIDDEN[hidden]}'), 'float32')"
    return from_source(PROGRAM.format(mask=PLACES[mask], body=body.format(none=number)))


def feed(mask: str, b: int, n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(b * 10000 + n * 100 + m)
    sizes = {"all": (b, 2, n, m), "padding": (b, 1, 1, m), "places": (n, m), "queries": (1, n, 1)}[mask]
    seen = rng.random(sizes) < 0.6
    if seen.size > 2 and mask != "padding":
        # One row sees nothing, and one row everything.
        seen.reshape(-1, sizes[-1])[0], seen.reshape(-1, sizes[-1])[-1] = False, True
    of = [rng.standard_normal(shape).astype("float32") for shape in ((b, 2, n, 4), (b, 2, m, 4), (b, 2, m, 3), (b, 1, 1, m))]
    return [*of[:3], seen, of[3]]


SIZES = [(0, 2, 3), (1, 0, 3), (1, 1, 1), (2, 3, 5), (1, 7, 33), (2, 33, 16), (1, 65, 130), (1, 2, 4500)]


def same(module: pliant.IRModule, feeds: list[list[np.ndarray]]) -> None:
    """Compares the attention kernel, compiled and interpreted, with generated loops."""
    script = relax.get_pipeline("zero")(module).script()
    assert 'T.call_kernel("attention"' in script and "softmax" not in script
    loops, kernels = pliant.compile(module, kernels="off"), pliant.compile(module)
    for operands in feeds:
        want = np.asarray(loops(*operands))
        np.testing.assert_allclose(np.asarray(kernels(*operands)), want, rtol=2e-4, atol=2e-5)
        if sum(a.size for a in operands) < 400:
            np.testing.assert_allclose(interpret(module, *operands).numpy(), want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("body", BODIES)
def test_where_masks_are_kernel_operands(body: str, hidden: str) -> None:
    same(program(BODIES[body], hidden=hidden), [feed("all", *sizes) for sizes in SIZES])


def test_two_where_masks_are_combined() -> None:
    body = "s = R.where(R.logical_not(mask), {none}, R.where(R.greater(bias, R.const(-1.0, 'float32')), p, {none}))"
    same(program(body), [feed("all", *sizes) for sizes in SIZES])


@pytest.mark.parametrize("mask", PLACES)
def test_masks_broadcast(mask: str) -> None:
    same(program(BODIES["kept"], mask), [feed(mask, *sizes) for sizes in SIZES])


def test_masked_scores_may_be_nan_or_infinite() -> None:
    operands = feed("all", 2, 5, 9)
    operands[1][1, 0, 3] = np.nan
    operands[1][0, 1, 2] = np.inf
    operands[3][:, :, :, 2:4] = False
    same(program(BODIES["kept"]), [operands])


CAUSAL = {
    "compared": "seen = R.less_equal(R.reshape(R.arange(0, m), (1, m)), R.reshape(R.arange(m - n, m), (n, 1)))",
    "triangle": "seen = R.astype(R.tril(R.ones((n, m), 'float32')), 'bool')",
    "turned": "seen = R.logical_not(R.astype(R.triu(R.ones((n, m), 'float32'), 1), 'bool'))",
}


@pytest.mark.parametrize("form", CAUSAL)
def test_positional_masks(form: str) -> None:
    body = CAUSAL[form] + "\n            s = R.where(seen, p, {none})"
    same(program(body), [feed("all", *sizes) for sizes in [(1, 1, 1), (1, 5, 5), (2, 3, 9), (1, 40, 70)]])


@pytest.mark.parametrize(
    "body",
    [
        "s = R.where(mask, p, R.const(float('inf'), 'float32'))",
        "s = R.where(mask, p, R.multiply(p, p))",
        # Two mask values, but the kernel supports one.
        "s = R.where(mask, R.add(R.where(mask, R.const(0.25, 'float32'), p), bias), {none})",
        # An outer mask with a finite value must not be replaced by the minus infinity of a
        # positional mask.
        "s = R.where(mask, R.where(R.tril(R.ones((n, m), 'bool')), p, {none}), R.const(-9.0, 'float32'))",
    ],
)
def test_other_uses_of_where_stay_loops(body: str) -> None:
    module = program(body)
    assert 'T.call_kernel("attention"' not in relax.get_pipeline("zero")(module).script()
    operands = feed("all", 2, 3, 5)
    want = np.asarray(pliant.compile(module, kernels="off")(*operands))
    np.testing.assert_allclose(np.asarray(pliant.compile(module)(*operands)), want, rtol=2e-4, atol=2e-5)
