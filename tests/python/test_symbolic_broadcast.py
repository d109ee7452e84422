"""Tests broadcasting of sizes that may be 1: programs are compiled once, run at random shapes with 1s and 0s, and compared
with NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pliant
from pliant.script import from_source

RANK = 3
SIZES = st.sampled_from([0, 1, 1, 2, 5, 17])
Array = np.ndarray[Any, np.dtype[Any]]


def script(known: bool, dtypes: tuple[str, str, str]) -> str:
    """Returns a chain of operators over three tensors. Either all their dims are different symbols,
    or their types are unknown.
    """

    def tensor(name: str, dtype: str) -> str:
        dims = ", ".join(f'"{name}{i}"' for i in range(RANK))
        return f'{name}: R.Tensor(({dims}), "{dtype}")' if known else f"{name}: R.Tensor"

    params = ", ".join(map(tensor, "xyc", dtypes))
    return f"""
@I.ir_module
class Module:
    @R.function
    def main({params}) -> R.Object:
        with R.dataflow():
            total = R.add(x, y)
            product = R.multiply(total, y)
            chosen = R.where(c, product, x)
            less = R.less(chosen, total)
            R.output(total, chosen, less)
        return (total, chosen, less)
"""


@functools.cache
def model(known: bool, dtype: str, mode: str) -> Any:
    return pliant.compile(from_source(script(known, (dtype, dtype, "bool"))), exec_mode=mode)


def reference(x: Array, y: Array, c: Array) -> tuple[Array, ...]:
    total = x + y
    chosen = np.where(c, total * y, x)
    return total, chosen, chosen < total


@st.composite
def shapes(draw: Any) -> list[tuple[int, ...]]:
    """Draws three shapes, most of which can be broadcast together."""
    target = [draw(SIZES) for _ in range(RANK)]
    odd = draw(st.integers(0, 9)) == 0
    return [
        tuple(draw(SIZES) if odd and draw(st.booleans()) else draw(st.sampled_from([t, t, 1])) for t in target)
        for _ in range(RANK)
    ]


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("known", [True, False], ids=["symbols", "unknown"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_chains_agree_with_numpy(dtype: str, known: bool, mode: str) -> None:
    compiled = model(known, dtype, mode)

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(shapes(), st.integers(0, 2**32 - 1))
    def run(three: list[tuple[int, ...]], seed: int) -> None:
        rng = np.random.default_rng(seed)
        x, y = (rng.integers(-9, 10, shape).astype(dtype) for shape in three[:2])
        c = rng.random(three[2]) < 0.5
        try:
            want = reference(x, y, c)
        except ValueError:
            with pytest.raises(pliant.ShapeError, match=r"relax\.\w+: dims .* cannot be broadcast together"):
                compiled(x, y, c)
            return
        for got, expected in zip(compiled(x, y, c), want, strict=True):
            assert np.asarray(got).shape == expected.shape
            np.testing.assert_array_equal(np.asarray(got), expected)

    run()
    # Operators on operands of unknown rank are compiled at run time, once each, since all operands have the same rank.
    assert compiled.stats().compilations <= (1 if known else 1 + 4)


SHAPES = [(a, b, c, d) for a in (0, 1, 3) for b in (1, 3) for c in (0, 1, 2) for d in (1, 4)]


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_batched_matmul(mode: str) -> None:
    product = pliant.compile(
        from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("a", "b", "p", 4), "float32"), y: R.Tensor(("c", "d", 4, "q"), "float32")) -> R.Object:
        return R.matmul(x, y)
"""),
        exec_mode=mode,
    )
    rng = np.random.default_rng(7)
    for a, b, c, d in SHAPES:
        x = rng.standard_normal((a, b, 3, 4)).astype("float32")
        y = rng.standard_normal((c, d, 4, 2)).astype("float32")
        try:
            want = x @ y
        except ValueError:
            with pytest.raises(pliant.ShapeError, match="relax.matmul: dims"):
                product(x, y)
            continue
        np.testing.assert_allclose(np.asarray(product(x, y)), want, rtol=1e-5, atol=1e-6)
    assert product.stats().compilations == 1


def test_only_the_operand_of_broadcast_to_is_stretched() -> None:
    stretch = pliant.compile(
        from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), s: R.Shape(["m", "k"])) -> R.Object:
        m, k = T.int64(), T.int64()
        return R.broadcast_to(x, R.shape([m, k]))
""")
    )
    for n, m, k in [(1, 3, 5), (5, 3, 5), (1, 0, 0), (0, 2, 0), (1, 1, 1)]:
        x = np.arange(n, dtype="float32")
        np.testing.assert_array_equal(np.asarray(stretch(x, (m, k))), np.broadcast_to(x, (m, k)))
    for n, m, k in [(5, 3, 1), (2, 1, 3), (0, 1, 1)]:
        with pytest.raises(pliant.ShapeError, match=r"relax.broadcast_to: dims k and n|relax.broadcast_to: dims n and k"):
            stretch(np.zeros(n, "float32"), (m, k))


def test_errors_name_symbols_and_operands() -> None:
    with pytest.raises(pliant.ShapeError, match=r"relax.add: dims x1 and y1 \(axis -2\).*x1 is .*x2 is"):
        model(True, "float32", "bytecode")(*(np.zeros(s, t) for s, t in [((1, 2, 3), "f4"), ((1, 4, 3), "f4"), ((1, 1, 1), "?")]))
