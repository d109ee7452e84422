"""Tests every operator with every element type that its type rule accepts, also with extreme values.

The types are found by querying the rule, and `docs/reference/data-types.md` lists them; `PLIANT_BLESS=1` updates that list. The
results of a program are compared with those of the interpreter. They are also compared with the case's NumPy formula if it is
defined for the type. Formulas on floats are computed in float64. Formulas on integers apply only if NumPy's result has the same
type as the program's.

By default three types of each operator are tested; `PLIANT_ALL_TYPES=1` tests all.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from split_calls import Call, cases_of, operators
from cases import Array, Case, Param, Refusal
from test_operators import draw, size_sets
from test_random_programs import close

import pliant
from pliant.script import from_source
from pliant.testing import interpret

FLOATS = ("float16", "bfloat16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DTYPES = (*FLOATS, *SIGNED, *UNSIGNED, "bool")
ALL = bool(os.environ.get("PLIANT_ALL_TYPES"))
DOC = Path(__file__).parents[3] / "docs" / "reference" / "data-types.md"
BEGIN, END = "<!-- operators -->\n", "<!-- end of operators -->"


def of_dtype(case: Case, dtype: str) -> Case:
    """Returns the case with `dtype` as the data type of its data parameters. These are all parameters that have the same type as
    the first float parameter or, without float parameters, the same type as the first parameter.
    """
    kinds = [p.dtype for p in case.params]
    data = next((d for d in kinds if d.startswith("float")), kinds[0] if kinds else "")
    return replace(case, params=tuple(replace(p, dtype=dtype) if p.dtype == data else p for p in case.params))


def script_of(case: Case) -> str:
    """Returns the script of the case in which parameters of type bfloat16, which NumPy does not have, are float32 and are
    converted to bfloat16 first.
    """
    narrow = [p.name for p in case.params if p.dtype == "bfloat16"]
    plain = replace(case, params=tuple(replace(p, dtype="float32") if p.name in narrow else p for p in case.params))
    casts = "".join(f'            {n} = R.astype({n}, dtype="bfloat16")\n' for n in narrow)
    return plain.script.replace("            gv = ", f"{casts}            gv = ")


def accepted(case: Case) -> bool:
    try:
        from_source(case.script)
    except pliant.PliantError:
        return False
    return True


@cache
def table() -> dict[str, tuple[tuple[Case, Call], tuple[str, ...]]]:
    """Returns for each operator the case that accepts the most types, and these types."""
    found: dict[str, tuple[tuple[Case, Call], tuple[str, ...]]] = {}
    for name in operators():
        best: tuple[tuple[Case, Call], tuple[str, ...]] | None = None
        for case, call in cases_of(name)[:4]:
            if not case.params or not case.constant:
                continue
            types = tuple(d for d in DTYPES if accepted(of_dtype(case, d)))
            if best is None or len(types) > len(best[1]):
                best = ((case, call), types)
        if best is not None:
            found[name] = best
    return found


def class_of(types: tuple[str, ...]) -> str:
    """Returns a short text for a set of types, such as `floats, integers`."""
    groups = {"floats": FLOATS, "signed integers": SIGNED, "unsigned integers": UNSIGNED, "bool": ("bool",)}
    words = [word for word, group in groups.items() if set(group) <= set(types)]
    rest = [d for d in types if not any(d in groups[w] for w in words)]
    words = ["integers" if w == "signed integers" else w for w in words if w != "unsigned integers" or "signed integers" not in words]
    return ", ".join([*words, *(f"`{d}`" for d in rest)])


def document() -> str:
    rows = [f"| `{name}` | {class_of(types)} |" for name, (_, types) in table().items()]
    return "\n".join(["| operator | elements |", "|---|---|", *rows, ""])


def test_type_list_is_complete() -> None:
    text = DOC.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if os.environ.get("PLIANT_BLESS"):
        DOC.write_text(text[:begin] + document() + text[end:])
        return
    assert text[begin:end] == document(), "PLIANT_BLESS=1 writes the list anew"


# ---- values ----


def extreme(dtype: str) -> Callable[[np.random.Generator, tuple[int, ...]], Array]:
    """Draws values of a type, including its extremes and special values."""

    def draws(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        if dtype == "bool":
            return rng.random(shape) < 0.5
        if dtype.startswith(("int", "uint")):
            info = np.iinfo(dtype)
            plain, ends = rng.integers(max(info.min, -9), 10, shape), np.array([info.min, info.max, 0, 1], dtype)
            return np.where(rng.random(shape) < 0.3, ends[rng.integers(0, 4, shape)], plain.astype(dtype))
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 6e-8, 1.0])
        plain = rng.standard_normal(shape) * 2
        return np.where(rng.random(shape) < 0.1, special[rng.integers(0, len(special), shape)], plain)

    return draws


def inputs_of(case: Case, sizes: dict[str, int], rng: np.random.Generator, wild: bool) -> list[Array]:
    def one(p: Param) -> Array:
        if p.dtype == "bfloat16":
            plain = draw(replace(p, dtype="float32", draw=p.draw or (extreme("float32") if wild else None)), sizes, rng)
            return (plain.view("uint32") & np.uint32(0xFFFF0000)).view("float32")
        if p.dtype.startswith("uint") and p.draw is None and not wild:
            return np.abs(draw(replace(p, dtype="int8"), sizes, rng)).astype(p.dtype)
        return draw(replace(p, draw=p.draw or (extreme(p.dtype) if wild else None)), sizes, rng)

    with np.errstate(all="ignore"):
        return [one(p) for p in case.params]


def outcome(run: Callable[..., Any], inputs: list[Array]) -> list[Any] | str:
    try:
        result = run(*inputs)
    except pliant.InternalError:
        raise
    except pliant.PliantError as error:
        return str(error)
    return list(result) if isinstance(result, list | tuple) else [result]


def formula(case: Case, inputs: list[Array], dtype: str) -> list[Array] | None:
    """Returns the results of the case's NumPy formula, or `None` if it does not apply."""
    wide = dtype in ("float16", "bfloat16")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = case.reference(*(a.astype("float64") if wide and a.dtype.kind == "f" else a for a in inputs))
        except (OverflowError, TypeError, ValueError):
            # For example negative powers of integers, or an infinite initial value of a maximum.
            return None
    if isinstance(want, Refusal):
        return None
    return [np.asarray(w) for w in (want if isinstance(want, list | tuple) else [want])]


@cache
def widening() -> Any:
    """Returns a program that converts bfloat16 to float32, since NumPy has no bfloat16."""
    return pliant.compile(
        from_source(
            "@I.ir_module\nclass Module:\n    @R.function\n"
            '    def main(x: R.Tensor(dtype="bfloat16")):\n        a = R.astype(x, dtype="float32")\n        return a\n'
        )
    )


def comparable(name: str, dtype: str, inputs: list[Array]) -> bool:
    """Whether the NumPy formula is exact enough for these inputs. The formulas of the cases compute with floats, which cannot
    represent large integers."""
    if dtype in FLOATS:
        return True
    # Integers that are converted from floats may be slightly too small.
    if dtype == "bool" or name.startswith("image.resize"):
        return False
    return all(a.dtype.kind == "f" or a.size == 0 or abs(int(a.max())) < 2**53 for a in inputs)


def as_arrays(values: list[Any]) -> list[Array]:
    """Converts the results to arrays. bfloat16 is converted to float32."""
    return [np.asarray(widening()(v) if str(v.dtype) == "bfloat16" else v) for v in values]


def tried(name: str, types: tuple[str, ...]) -> tuple[str, ...]:
    """Returns those types of an operator that are tested."""
    if ALL:
        return types
    turn = zlib.crc32(name.encode())
    groups = [[d for d in types if d in group] for group in (("float16", "bfloat16"), ("float64",), (*SIGNED, *UNSIGNED))]
    return tuple(group[turn % len(group)] for group in groups if group)


@pytest.mark.parametrize("name", operators())
def test_operator_on_data_types(name: str) -> None:
    (original, _), types = table()[name]
    seed = zlib.crc32(name.encode())
    for dtype in tried(name, types):
        case = of_dtype(original, dtype)
        source = script_of(case)
        module = from_source(source)
        model = pliant.compile(module, exec_mode=("bytecode", "compiled")[seed % 2])
        rng = np.random.default_rng(seed)
        for k, sizes in enumerate(size_sets(case, rng)[:4]):
            # With infinite inputs, the order of the sums of a Fourier transform decides between NaN
            # and infinity. In attention, hidden values affect the result only in loops, and in
            # convolutions, weights of taps that read padding; only float64 uses loops (docs/reference/numerics.md).
            differs = case.expr.startswith("R.signal.") or (
                case.expr.startswith(("R.nn.attention", "R.nn.conv")) and dtype != "float64"
            )
            inputs = inputs_of(case, sizes, rng, wild=k % 2 == 1 and not differs)
            where = f"{case.expr} of {dtype} at {sizes}: {inputs}"
            got, want = outcome(model, inputs), outcome(lambda *a, m=module: interpret(m, *a), inputs)
            if isinstance(got, str) or isinstance(want, str):
                assert isinstance(got, str) and isinstance(want, str), f"{where}\n{got}\n{want}"
                continue
            arrays, wants = as_arrays(got), as_arrays(want)
            kinds = [str(v.dtype) for v in got]
            numpy = formula(case, inputs, dtype) if k % 2 == 0 and comparable(name, dtype, inputs) else None
            for i, (one, other, kind) in enumerate(zip(arrays, wants, kinds, strict=True)):
                assert one.shape == other.shape, where
                assert close(one, other, kind, 4 * case.tolerance), f"{where}\ngot {one}\ninterpreter {other}"
                if numpy is None:
                    continue
                plain = numpy[i]
                if kind in FLOATS or plain.dtype == one.dtype:
                    near = kind if kind in ("float16", "bfloat16", "float32") or one.dtype == plain.dtype else "float32"
                    assert close(one, plain, near, 8 * case.tolerance), f"{where}\ngot {one}\nNumPy {plain}"
