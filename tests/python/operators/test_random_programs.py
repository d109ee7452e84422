"""Tests random programs, which are compiled once with symbolic sizes and run with many shapes in both execution modes. The
results are compared with the interpreter and NumPy.

One compiled program returns every value. The result of each step is compared with those of the
interpreter and of NumPy for the same operands, so that errors do not accumulate. Another program
returns only the last values, as users' programs do, so that fusion applies; its results must agree
with those of the first.

`PLIANT_PROGRAMS=500` tests that many programs; `PLIANT_PROGRAMS_SEED=3` selects the seed.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import numpy as np
import pytest
from cases import Array, Refusal
from random_programs import Program, Step, Value, compose, tensor
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from test_operators import TOLERANCE, draw

import pliant
from pliant.script import from_source
from pliant.testing import interpret

COUNT = int(os.environ.get("PLIANT_PROGRAMS", "12"))
SEED = int(os.environ.get("PLIANT_PROGRAMS_SEED", "0"))
SIZES = (0, 1, 2, 3, 5, 7, 8, 13, 17, 33)
RUNS = 5
WORK = 20_000
"""The number of elements in a step up to which the interpreter is fast enough."""
TAME = 1e4
"""With larger values, equivalent formulas overflow and cancel in different ways."""


@st.composite
def programs(draw_: Any) -> tuple[Program, int]:
    program = compose(lambda n: int(draw_(st.integers(0, n - 1))), int(draw_(st.integers(1, 7))))
    return program, int(draw_(st.integers(0, 2**16)))


def sizes_of(program: Program, rng: np.random.Generator, run: int) -> dict[str, int]:
    sizes = {s: int(SIZES[rng.integers(0, len(SIZES) if len(program.symbols) < 3 else 7)]) for s in program.symbols}
    # Operators may require equal sizes, which random sizes rarely are. So every other run uses one size for all symbols.
    if run % 2 == 0 and sizes:
        sizes = dict.fromkeys(sizes, next(iter(sizes.values())))
    return sizes


def tame(arrays: list[Array]) -> bool:
    floats = [a for a in arrays if a.dtype.kind == "f" and a.size]
    return all(bool(np.isfinite(a).all() and np.abs(a).max() <= TAME) for a in floats)


def close(got: Array, want: Array, dtype: str, factor: float) -> bool:
    if dtype not in TOLERANCE and dtype != "bfloat16":
        return bool(np.array_equal(got, want))
    relative, absolute = TOLERANCE.get(dtype, (2e-2, 1e-2))
    wide = want.astype("float64")
    scale = float(np.abs(wide[np.isfinite(wide)]).max(initial=1.0))
    with np.errstate(all="ignore"):
        return np.allclose(
            got.astype("float64"), wide, relative * factor, absolute * factor * scale, equal_nan=True
        )


def alone(step: Step, types: dict[str, Value], values: dict[str, Array], sizes: dict[str, int]) -> Any:
    """Returns the interpreter's result of one step for these operands. Unknown sizes remain
    symbols.
    """
    params = []
    for name in step.operands:
        known = types[name].dims or ("",) * values[name].ndim
        dims = [size if text.isdigit() else repr(f"s{size}") for text, size in zip(known, values[name].shape, strict=True)]
        params.append(f"{name}_: {tensor(dims, values[name].dtype.name)}")
    lines = [f'            {name} = R.astype({name}_, dtype="{types[name].dtype}")\n' for name in step.operands]
    text = re.sub(r"\bn\d+\b", lambda m: str(sizes.get(m[0], m[0])), step.text)
    outs = [f"gv[{k}]" for k in range(len(step.outputs))] if "_" in step.outputs[0].name else ["gv"]
    lines += [f"            gv = {text}\n"]
    lines += [
        f'            out{k} = R.astype({o}, dtype="{"float32" if v.dtype == "bfloat16" else v.dtype}")\n'
        for k, (o, v) in enumerate(zip(outs, step.outputs, strict=True))
    ]
    results = ", ".join(f"out{k}" for k in range(len(outs)))
    source = (
        "@I.ir_module\nclass Module:\n    @R.function\n"
        f"    def main({', '.join(params)}):\n        with R.dataflow():\n{''.join(lines)}"
        f"            R.output({results})\n        return ({results},)\n"
    )
    return interpret(from_source(source), *(values[name] for name in step.operands))


def judge_step(
    step: Step, types: dict[str, Value], values: dict[str, Array], sizes: dict[str, int], where: str
) -> None:
    """Compares the results of a step with the interpreter's and NumPy's for the same operands."""
    gots = [values[v.name] for v in step.outputs]
    operands = [values[name] for name in step.operands]
    if sum(a.size for a in [*gots, *operands]) > WORK or not tame([*gots, *operands]):
        return
    wants = alone(step, types, values, sizes)
    for got, want, value in zip(gots, wants, step.outputs, strict=True):
        want = np.asarray(want)
        assert (got.shape, got.dtype) == (want.shape, want.dtype), f"{where}: {got.shape} for {want.shape}"
        assert close(got, want, value.dtype, 8), f"{where}: against the interpreter\n{got}\n{want}"
    if step.case is None or "bfloat16" in (v.dtype for v in step.outputs):
        return
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = step.case.reference(*(values[name] for name in step.order))
    assert not isinstance(want, Refusal), f"{where}: NumPy refuses what ran"
    for got, one in zip(gots, want if isinstance(want, list | tuple) else [want], strict=True):
        factor = 8 * step.case.tolerance
        assert close(got, np.asarray(one), got.dtype.name, factor), f"{where}: against NumPy\n{got}\n{one}"


def outcome(model: Any, inputs: list[Array]) -> list[Array] | str:
    """Returns the results of a program, or the error message."""
    try:
        return [np.asarray(value) for value in model(*inputs)]
    except pliant.InternalError:
        raise
    except pliant.PliantError as error:
        return str(error)


def nudged(inputs: list[Array]) -> list[Array]:
    return [a * (1 + 1e-5 * (a.dtype != "float64")) if a.dtype.kind == "f" else a for a in map(np.asarray, inputs)]


def agree(got: list[Array], want: list[Array], near: list[Array] | str, where: str) -> None:
    """Compares the results of a fused program, `got`, with those of the unfused program, `want`. `near` contains the results of
    the unfused program for slightly changed inputs. A difference is accepted only if `near` differs from `want` too, that is,
    if the result depends strongly on rounding. `where` describes the case in errors."""
    for k, (one, other) in enumerate(zip(got, want, strict=True)):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), where
        if close(one, other, one.dtype.name, 16):
            continue
        moved = isinstance(near, str) or near[k].shape != other.shape or not close(near[k], other, one.dtype.name, 16)
        assert moved, f"{where}: result {k} alone and among all\n{one}\n{other}"


def check(program: Program, number: int) -> None:
    if not program.steps:
        return
    names = [v.name for v in program.pool if not v.name.startswith("in")]
    leaves = program.leaves()
    every: Any = pliant.compile(from_source(program.script(names)), exec_mode=("bytecode", "compiled")[number % 2])
    source = program.script(leaves)
    last = {mode: pliant.compile(from_source(source), exec_mode=mode) for mode in ("bytecode", "compiled")}
    types = {v.name: v for v in program.pool}
    rng = np.random.default_rng(number)
    for run in range(RUNS):
        sizes = sizes_of(program, rng, run)
        inputs = [draw(p, sizes, rng) for p in program.inputs]
        where = f"at {sizes}, number {number}\n{program.script(names)}"
        result = outcome(every, inputs)
        again = {mode: outcome(model, inputs) for mode, model in last.items()}
        if isinstance(result, str):
            assert all(isinstance(other, str) for other in again.values()), f"{where}\n{result}"
            continue
        values = dict(zip(names, result, strict=True))
        values |= {p.name: a for p, a in zip(program.inputs, inputs, strict=True)}
        for step in program.steps:
            judge_step(step, types, values, sizes, f"{step.text} {where}")
        want, near = [values[name] for name in leaves], outcome(every, nudged(inputs))
        near = near if isinstance(near, str) else [near[names.index(name)] for name in leaves]
        for mode, other in again.items():
            assert not isinstance(other, str), f"{mode}: {other} {where}"
            agree(other, want, near, f"{mode} {where}")
    for model in [every, *last.values()]:
        assert model.stats().compilations == 1


@seed(SEED)
@settings(
    max_examples=COUNT,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
@given(programs())
def test_random_programs(drawn: tuple[Program, int]) -> None:
    check(*drawn)


def test_programs_use_many_operators() -> None:
    """Checks that random programs use the whole operator table, not a fixed list."""
    rng = np.random.default_rng(1)
    seen: set[str] = set()
    for _ in range(25):
        seen |= {step.op for step in compose(lambda n: int(rng.integers(0, n)), 6).steps}
    assert len(seen) > 40, pytest.fail(f"only {sorted(seen)}")
