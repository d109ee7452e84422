"""Compares every operator with NumPy. Each is compiled once with all dims symbolic, and runs with many sizes in random
order."""

from __future__ import annotations

import itertools
import re
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from split_calls import APART, operators
from cases import CASES, REFUSED, Array, Case, Param, Refusal, Refused

import pliant
from pliant.script import from_source
from pliant.testing import interpret

TOLERANCE = {"float16": (2e-3, 1e-3), "float32": (2e-5, 2e-6), "float64": (1e-12, 1e-12)}
"""Relative and absolute tolerances; results of other types must be equal."""

def draw(param: Param, sizes: dict[str, int], rng: np.random.Generator) -> Array:
    shape = tuple(sizes[d] if isinstance(d, str) else d for d in param.dims)
    if param.draw is not None:
        values = param.draw(rng, shape)
    elif param.dtype == "bool":
        values = rng.random(shape) < 0.5
    elif param.dtype.startswith("float"):
        values = rng.standard_normal(shape) * 2
    else:
        values = rng.integers(-9, 10, shape)
    return np.asarray(values).astype(param.dtype)


def size_sets(case: Case, rng: np.random.Generator) -> list[dict[str, int]]:
    symbols = case.symbols
    if not symbols:
        return [{}]
    combinations = list(itertools.product(case.sizes, repeat=len(symbols)))
    order = rng.permutation(len(combinations))[: case.runs]
    return [dict(zip(symbols, combinations[i], strict=True)) for i in order]


def check(got: Any, want: Array, where: str, case: Case) -> None:
    array = np.asarray(got)
    assert (array.shape, array.dtype) == (want.shape, want.dtype), where
    if want.dtype.name in TOLERANCE:
        relative, absolute = (t * case.tolerance for t in TOLERANCE[want.dtype.name])
        if case.cancels:
            absolute *= max(1.0, np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(array, want, relative, absolute, equal_nan=True, err_msg=where)
    else:
        np.testing.assert_array_equal(array, want, err_msg=where)


def judge(case: Case, run: Callable[..., Any], sizes: dict[str, int], rng: np.random.Generator, how: str) -> None:
    """Runs a case with these sizes and compares the results with NumPy."""
    inputs = [draw(param, sizes, rng) for param in case.params]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        want = case.reference(*inputs)
    where = f"{case.name} at {sizes}, {how}"
    if isinstance(want, Refusal):
        with pytest.raises(pliant.PliantError, match=want.pattern):
            run(*inputs)
        return
    got = run(*inputs)
    wants = list(want) if isinstance(want, list | tuple) else [want]
    gots = list(got) if isinstance(want, list | tuple) else [got]
    assert len(gots) == len(wants), where
    for one, expected in zip(gots, wants, strict=True):
        check(one, np.asarray(expected), where, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator(case: Case) -> None:
    # About half of the cases run as native code, the others as bytecode; the filetests run each
    # program in both modes.
    seed = zlib.crc32(case.name.encode())
    mode, other = ("bytecode", "compiled")[:: 1 if seed % 2 == 0 else -1]
    module = from_source(case.script)
    model = pliant.compile(module, exec_mode=mode)
    rng = np.random.default_rng(seed)
    chosen = size_sets(case, rng)
    for sizes in chosen:
        judge(case, model, sizes, rng, mode)
    strided = lambda *inputs: model(*map(apart_in_memory, inputs))  # noqa: E731
    judge(case, strided, chosen[-1], rng, f"{mode}, strided and read-only")
    assert model.stats().compilations == 1
    if not case.constant:
        return
    # The interpreter, the oracle of all other tests, is itself tested with sizes for which it is
    # fast enough.
    for sizes in sorted(chosen, key=lambda s: sum(s.values()))[:3]:
        judge(case, lambda *inputs: interpret(module, *inputs), sizes, rng, "interpreted")


@pytest.mark.parametrize("case", [c for c in CASES if c.symbols and c.constant], ids=lambda case: case.name)
def test_operator_of_constant_sizes(case: Case) -> None:
    seed = zlib.crc32(case.name.encode())
    rng = np.random.default_rng(seed + 1)
    sizes = size_sets(case, rng)[0]
    try:
        module = from_source(case.static(sizes))
    except pliant.PliantError:
        # Sizes that do not match are refused here already; the program with symbols refuses them at
        # run time.
        inputs = [draw(param, sizes, rng) for param in case.params]
        with np.errstate(all="ignore"):
            assert isinstance(case.reference(*inputs), Refusal), case.static(sizes)
        return
    judge(case, pliant.compile(module, exec_mode=("compiled", "bytecode")[seed % 2]), sizes, rng, "constant sizes")


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_rejected_when_written(case: Refused) -> None:
    with pytest.raises(pliant.ScriptError, match=re.escape(case.part)) as caught:
        from_source(case.script)
    line = next(i for i, text in enumerate(case.script.splitlines(), 1) if "gv = " in text)
    assert caught.value.lineno == line


def apart_in_memory(array: Array) -> Array:
    """Returns an array with the same elements, but read-only and with other strides: every second
    element of a larger array, from its end.
    """
    if array.ndim == 0:
        strided = array.copy()
    else:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        strided = wide[..., ::-2]
        strided[...] = array
        assert strided.size < 2 or not strided.flags.c_contiguous
    strided.flags.writeable = False
    return strided


def test_every_operator_has_a_case() -> None:
    tried = {call.name for _, call in APART}
    assert not set(operators()) - tried
    assert len({case.name for case in CASES}) == len(CASES)
