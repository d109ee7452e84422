"""Every operator on operands of which nothing is known before the program runs, against NumPy."""

from __future__ import annotations

import re
import warnings
import zlib

import numpy as np
import pytest
from cases import CASES, Case, Refusal
from test_operators import check, draw, size_sets

import pliant
from pliant.script import from_source


def script(case: Case) -> str:
    """The case with parameters of unknown types; the sizes come as a shape."""
    params = ", ".join(["sizes: R.Shape([" + ", ".join(f'"{s}"' for s in case.symbols) + "])"] + [f"{p.name}: R.Tensor" for p in case.params])
    symbols = "".join(f"        {s} = T.int64()\n" for s in case.symbols)
    return (
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({params}) -> R.Object:\n{symbols}"
        f"        with R.dataflow():\n            gv = {case.expr}\n            R.output(gv)\n"
        "        return gv\n"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator_on_unknown_types(case: Case) -> None:
    mode = ("compiled", "bytecode")[zlib.crc32(case.name.encode()) % 2]
    model = pliant.compile(from_source(script(case)), exec_mode=mode)
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    for sizes in size_sets(case, rng)[:4]:
        inputs = [draw(param, sizes, rng) for param in case.params]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            want = case.reference(*inputs)
        where = f"{case.name} at {sizes}"
        shape = tuple(sizes[s] for s in case.symbols)
        if isinstance(want, Refusal):
            with pytest.raises(pliant.PliantError, match=rf"{re.escape(want.part)}|relax\.\w+: "):
                model(shape, *inputs)
            continue
        got = model(shape, *inputs)
        wants = list(want) if isinstance(want, list | tuple) else [want]
        gots = list(got) if isinstance(want, list | tuple) else [got]
        assert len(gots) == len(wants), where
        for one, expected in zip(gots, wants, strict=True):
            check(one, np.asarray(expected), where, case.cancels)
