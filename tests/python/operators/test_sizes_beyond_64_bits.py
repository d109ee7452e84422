"""Tests that a size that exceeds 64 bits is an error, also in programs that allocate no tensor of this size. Loops must
never run over a size that wrapped around."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.script import from_source
from pliant.testing import interpret

PROGRAMS = {
    "max": 'R.max(R.zeros((n * 2**61,), "float32"))',
    "sum": 'R.sum(R.exp(R.full((n * 2**61, 3), R.const(2.0, "float32"))), axis=0)',
    "eye": "R.sum(R.eye(n * 2**62))",
    "broadcast": 'R.max(R.broadcast_to(R.const([1.0], "float32"), (n * 2**62,)))',
    "powers": 'R.sum(R.zeros((n * n * n * 2**57,), "float32"))',
}


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_sizes_beyond_64_bits_are_reported(name: str, mode: str) -> None:
    func = from_source(f"""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    y = {PROGRAMS[name]}
    return y
""")
    run = relax.VirtualMachine(relax.build(pliant.IRModule({"main": func}), exec_mode=mode))["main"]
    with pytest.raises(pliant.PliantError, match="does not fit 64 bits"):
        run(np.ones(4, "float32"))


def test_sizes_of_allocated_tensors_are_not_checked() -> None:
    func = from_source("""
@R.function
def main(x: R.Tensor(("n", "m", 8), "float32")):
    n, m = T.int64(), T.int64()
    y = R.sum(R.reshape(x, (n * m * 8,)))
    z = R.sum(R.reshape(x, (n, m * 8)), axis=1)
    return (y, z)
""")
    legal = relax.transform.LegalizeOps()(pliant.IRModule({"main": func}))
    assert "64 bits" not in legal.script()


CANCELLED = {
    "(n - m) * (n - m)": ("(n * 2**40 - m * 2**39) * (n * 2**40 - m * 2**39) + 3", (3,)),
    "min": ("T.min(n * 2**40, 2**35 + 2) - T.min(n * 2**40, 2**35), T.min(n * 2**40, 2**35 + 3) - T.min(n * 2**40, 2**35)", (2, 3)),
}


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("name", CANCELLED)
def test_terms_beyond_64_bits_of_a_size_that_fits(name: str, mode: str) -> None:
    dims, shape = CANCELLED[name]
    func = from_source(f"""
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
    n, m = T.int64(), T.int64()
    return R.zeros(({dims},), "float32")
""")
    module = pliant.IRModule({"main": func})
    x, y = np.ones(2, "float32"), np.ones(4, "float32")
    assert pliant.compile(module, exec_mode=mode)(x, y).numpy().shape == shape
    assert interpret(module, x, y).numpy().shape == shape
    if name != "min":
        with pytest.raises(pliant.PliantError, match="64 bits.* n = 2, m = 3"):
            pliant.compile(module, exec_mode=mode)(x, y[:3])


def test_terms_beyond_exact_floats_are_reported() -> None:
    func = from_source("""
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
    n, m = T.int64(), T.int64()
    return R.zeros((n * 2**62 - m * 2**62 + 1, n * 2**62 - m * 2**62 + 1), "float32")
""")
    run = pliant.compile(pliant.IRModule({"main": func}))
    with pytest.raises(pliant.PliantError, match="does not fit 64 bits"):
        run(np.ones(5, "float32"), np.ones(5, "float32"))
