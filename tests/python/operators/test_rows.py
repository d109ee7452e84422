"""Row kernels called directly by programs: their accesses are checked, and the interpreter supports
them too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pliant
import pytest
from pliant.script import from_source
from pliant.testing import interpret


def module(params: str, call: str) -> Any:
    """A module with a loop function that makes one call, and a graph function that calls it."""
    return from_source(
        "@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n"
        f"    def rows({params}):\n"
        '        T.func_attr({"tir.noalias": True})\n'
        f'        T.evaluate(T.call_extern("int64", {call}))\n\n'
        "    @R.function\n"
        '    def main(x: R.Tensor((5,), "float32")):\n        cls = Module\n        with R.dataflow():\n'
        '            y = R.call_tir(cls.rows, (x,), out_sinfo=R.Tensor((1,), "int64"))\n'
        "            R.output(y)\n        return y\n"
    )


PARAMS = 'A: T.Buffer((5,), "float32"), B: T.Buffer((1,), "int64")'
X = np.array([3, 1, 4, 1, 5], "float32")


def place(n: int, first: int = 0, dtype: str = "float32", to: str = "B[0]") -> str:
    return f'"pliant_row_extreme_{dtype}", T.int64({n}), T.int64(1), T.address_of(A[{first}]), T.address_of({to})'


def test_a_part_of_a_row() -> None:
    for n, first, want in ((5, 0, 4), (3, 0, 2), (3, 1, 1), (1, 4, 0)):
        one = module(PARAMS, place(n, first))
        assert pliant.compile(one)(X).numpy() == [want]
        assert interpret(one, X).numpy() == [want]


@pytest.mark.parametrize("call", [place(6), place(5, 1), place(-1), place(1 << 50)])
def test_reach_is_checked(call: str) -> None:
    with pytest.raises(IndexError, match="a kernel of rows reaches outside its buffers"):
        pliant.compile(module(PARAMS, call))(X)


@pytest.mark.parametrize("call", [place(5, dtype="float64"), place(5, to="A[0]"), place(5, dtype="text")])
def test_other_addresses_are_refused(call: str) -> None:
    with pytest.raises(pliant.PliantError):
        pliant.compile(module(PARAMS, call))(X)
