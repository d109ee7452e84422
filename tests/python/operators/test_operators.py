"""Every operator against NumPy: compiled once with all dims symbolic, run at many sizes in any order."""

from __future__ import annotations

import itertools
import re
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
from cases import CASES, Array, Case, Param, Refusal

import pliant
from pliant.script import from_source

TOLERANCE = {"float32": (2e-5, 2e-6), "float64": (1e-12, 1e-12)}
"""Relative and absolute; other types must agree exactly."""

OTHER = {
    # Lowered stages, calls and control: not operators on tensors with a value in NumPy.
    *("assert_op", "print", "null_value", "shape_of", "tensor_to_shape"),
    *("make_closure", "invoke_closure", "invoke_pure_closure", "while_loop"),
}
OTHER_GROUPS = ("call_", "builtin.", "memory.", "vm.")
SYNONYMS = {"dot", "nn.linear", "nn.matmul", "transpose"}


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


def check(got: Any, want: Array, where: str, cancels: bool) -> None:
    array = np.asarray(got)
    assert (array.shape, array.dtype) == (want.shape, want.dtype), where
    if want.dtype.name in TOLERANCE:
        relative, absolute = TOLERANCE[want.dtype.name]
        if cancels:
            absolute *= max(1.0, np.abs(want).max(initial=0.0))
        np.testing.assert_allclose(array, want, relative, absolute, equal_nan=True, err_msg=where)
    else:
        np.testing.assert_array_equal(array, want, err_msg=where)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operator(case: Case) -> None:
    # Every second case runs as native code, the others as bytecode; the filetests run each program in both modes.
    mode = ("bytecode", "compiled")[zlib.crc32(case.name.encode()) % 2]
    model = pliant.compile(from_source(case.script), exec_mode=mode)
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    for sizes in size_sets(case, rng):
        inputs = [draw(param, sizes, rng) for param in case.params]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            want = case.reference(*inputs)
        where = f"{case.name} at {sizes}"
        if isinstance(want, Refusal):
            with pytest.raises(pliant.PliantError, match=re.escape(want.part)):
                model(*inputs)
            continue
        got = model(*inputs)
        wants = list(want) if isinstance(want, list | tuple) else [want]
        gots = list(got) if isinstance(want, list | tuple) else [got]
        assert len(gots) == len(wants), where
        for one, expected in zip(gots, wants, strict=True):
            check(one, np.asarray(expected), where, case.cancels)
    assert model.stats().compilations == 1


def test_every_operator_has_a_case() -> None:
    names = {name.removeprefix("relax.") for name in pliant._core.relax.op_names()}
    tried = set(re.findall(r"\bR\.((?:nn\.)?\w+)\(", " ".join(case.expr for case in CASES)))
    missing = {n for n in names - tried - OTHER - SYNONYMS if not n.startswith(OTHER_GROUPS)}
    assert not missing
    assert len({case.name for case in CASES}) == len(CASES)
