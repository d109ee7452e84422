"""Compares every operator with NumPy, for operands whose types are unknown before run time."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, Refusal
from test_operators import judge, size_sets

import pliant
from pliant.script import from_source


def script(case: Case) -> str:
    """Returns the script of the case with parameters of unknown types. The sizes are passed as a
    shape.
    """
    sizes = ", ".join(f'"{s}"' for s in case.symbols)
    params = ", ".join([f"sizes_: R.Shape([{sizes}])", *(f"{p.name}: R.Tensor" for p in case.params)])
    symbols = "".join(f"        {s} = T.int64()\n" for s in case.symbols)
    return (
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({params}) -> R.Object:\n{symbols}"
        f"        with R.dataflow():\n            gv = {case.expr}\n            R.output(gv)\n"
        "        return gv\n"
    )


def named(case: Case) -> Case:
    """Returns the case with weaker error checks: a message must name the operator, but not the symbols, since the types of the
    operands are unknown.
    """

    def reference(*inputs: Any) -> Any:
        want = case.reference(*inputs)
        return Refusal("relax.", written=want.part) if isinstance(want, Refusal) else want

    return replace(case, reference=reference)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator_on_unknown_types(case: Case) -> None:
    mode = ("compiled", "bytecode")[zlib.crc32(case.name.encode()) % 2]
    model = pliant.compile(from_source(script(case)), exec_mode=mode)
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    for sizes in size_sets(case, rng)[:4]:
        shape = pliant.runtime.ShapeTuple([sizes[s] for s in case.symbols])
        judge(named(case), lambda *inputs, shape=shape: model(shape, *inputs), sizes, rng, f"unknown types, {mode}")
