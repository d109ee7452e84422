"""Tests that every operator refuses invalid operands. Ranks, data types, attributes and known sizes are refused at the user's
line. Sizes that turn out not to match at run time are refused with the operator and both symbols.

The tests change one thing at a time in the operators' cases. The lists contain the operators for
which nothing can be refused; they must be exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from split_calls import Call, cases_of, operators, with_param
from cases import Array, Case
from test_operators import draw

import pliant
from pliant.script import from_source

DTYPES = ("float32", "float64", "int8", "int64", "uint8", "bool")
CASES_EACH = 6
"""The number of cases of an operator that are changed until something is refused."""


def mentions(case: Case, symbol: str) -> bool:
    return re.search(rf"\b{symbol}\b", case.expr) is not None


def refused(case: Case, name: str) -> str | None:
    """Returns the error message for an invalid case; `None` if the case is valid. Checks that the error has the line of the call
    and names the operator.
    """
    try:
        from_source(case.script)
    except pliant.PliantError as error:
        text = str(error)
        # A plain number is refused before the operator is checked.
        assert f"relax.{name}" in text or "does not fit" in text, f"{case.script}\n{text}"
        line = next(i for i, source in enumerate(case.script.splitlines(), 1) if "gv = " in source)
        assert getattr(error, "lineno", None) == line, text
        return text
    return None


def first(name: str, variants: Any) -> str | None:
    """Returns the error message for the first refused variant of an operator's cases, or ``None``
    if none is refused.
    """
    for case, call in cases_of(name)[:CASES_EACH]:
        for variant in variants(case, call):
            if any(mentions(case, s) for s in set(case.symbols) - set(variant.symbols)):
                continue
            said = refused(variant, name)
            if said is not None:
                return said
    return None


# ---- rank ----


def other_ranks(case: Case, _: Call) -> Iterator[Case]:
    for p in case.params:
        yield with_param(case, p.name, replace(p, dims=("q_", *p.dims)))
        yield with_param(case, p.name, replace(p, dims=("q_", "r_", "s_", "t_", *p.dims)))
        if p.dims:
            yield with_param(case, p.name, replace(p, dims=p.dims[1:]))
            yield with_param(case, p.name, replace(p, dims=()))


ANY_RANK = {
    *"abs acos acosh add arange asin asinh astype atan atan2 atanh bitcast bitwise_and bitwise_not bitwise_or bitwise_xor".split(),
    *"ceil collapse_sum_to cos cosh divide equal erf ewise_fma exp eye flatten floor floor_divide floor_mod".split(),
    *"full_like greater greater_equal hamming_window isfinite isinf isnan left_shift less less_equal log".split(),
    *"log_add_exp logical_and logical_not logical_or logical_xor maximum minimum mod multiply negative nn.dropout".split(),
    *"nn.gelu nn.gelu_tanh nn.leakyrelu nn.relu nn.relu6 nn.selu nn.silu nn.softplus nonzero not_equal one_hot".split(),
    *"ones ones_like power reshape right_shift round rsqrt shape_to_tensor sigmoid sign sin sinh size sqrt square".split(),
    *"subtract tan tanh tile trunc where wrap_param zeros zeros_like".split(),
}
"""Operators that accept tensors of every rank, or that have no tensor operands."""


@pytest.mark.parametrize("name", operators())
def test_wrong_rank(name: str) -> None:
    assert (first(name, other_ranks) is None) == (name in ANY_RANK)


# ---- data type ----


def other_dtypes(case: Case, _: Call) -> Iterator[Case]:
    for p in case.params:
        for dtype in DTYPES:
            if dtype != p.dtype:
                yield with_param(case, p.name, replace(p, dtype=dtype))


ANY_DTYPE = {
    *"abs arange argmax argmin argsort astype broadcast_to ceil expand_dims eye eye_like flatten flip floor full".split(),
    *"full_like hamming_window image.resize2d image.resize3d isfinite isinf isnan logical_not max".split(),
    *"median meshgrid min nn.batch_flatten nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.pixel_shuffle".split(),
    *"nonzero ones ones_like permute_dims prod repeat reshape round shape_to_tensor size sort split squeeze".split(),
    *"strided_slice sum tile topk tril triu trunc unique wrap_param zeros zeros_like".split(),
}
"""Operators that accept every element type, for one tensor or for several that need not agree. The padding values in the
cases of nn.pad and layout_transform are not values of every type."""


@pytest.mark.parametrize("name", operators())
def test_wrong_data_type(name: str) -> None:
    assert (first(name, other_dtypes) is None) == (name in ANY_DTYPE)


# ---- sizes ----


def shared(case: Case) -> Iterator[tuple[str, str]]:
    """Yields pairs of a symbol and a parameter that uses it, except for the first parameter that
    uses the symbol.
    """
    seen: set[str] = set()
    for p in case.params:
        yield from ((d, p.name) for d in dict.fromkeys(p.dims) if isinstance(d, str) and d in seen)
        seen |= {d for d in p.dims if isinstance(d, str)}


def known_sizes(case: Case, _: Call) -> Iterator[Case]:
    def numbers(dims: tuple[int | str, ...], symbol: str, size: int) -> tuple[int | str, ...]:
        return tuple(size if d == symbol else d for d in dims)

    for symbol, name in shared(case):
        params = (replace(p, dims=numbers(p.dims, symbol, 5 if p.name == name else 3)) for p in case.params)
        if not mentions(case, symbol):
            yield replace(case, params=tuple(params))
    for p in case.params:
        for k, d in enumerate(p.dims):
            if isinstance(d, int):
                for size in (d + 3, 0):
                    yield with_param(case, p.name, replace(p, dims=(*p.dims[:k], size, *p.dims[k + 1 :])))


ANY_SIZES = {
    *"abs acos acosh arange argmax argmin argsort asin asinh astype atan atanh bitcast bitwise_and bitwise_not".split(),
    *"bitwise_or bitwise_xor bucketize ceil clip collapse_sum_to cos cosh cumprod cumsum erf exp expand_dims eye eye_like".split(),
    *"flatten flip floor full full_like hamming_window image.col2im image.resize2d index_tensor isfinite isinf".split(),
    "isnan",
    *"layout_transform log logical_not max mean median meshgrid min negative nn.adaptive_avg_pool1d".split(),
    *"nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.batch_flatten".split(),
    *"nn.dropout nn.gelu nn.gelu_tanh nn.leakyrelu nn.log_softmax nn.max_pool1d nn.max_pool2d nn.max_pool3d".split(),
    *"nn.relu nn.relu6 nn.selu nn.silu nn.softmax nn.softplus nonzero one_hot ones ones_like outer permute_dims".split(),
    *"prod repeat reshape round rsqrt shape_to_tensor sigmoid sign sin sinh size sort split sqrt square std".split(),
    *"strided_slice sum take tan tanh tile tril triu trunc unique variance wrap_param zeros zeros_like".split(),
}
"""Operators with one operand of any sizes, or with several whose sizes need not agree."""


@pytest.mark.parametrize("name", operators())
def test_known_size_mismatches(name: str) -> None:
    assert (first(name, known_sizes) is None) == (name in ANY_SIZES)


def unequal(name: str) -> tuple[Case, str] | None:
    """Returns a case in which two sizes that must agree are different symbols."""
    for case, _ in cases_of(name):
        for symbol, param in shared(case):
            if mentions(case, symbol) or not case.constant:
                continue
            p = next(p for p in case.params if p.name == param)
            other = with_param(case, param, replace(p, dims=tuple(f"{symbol}2" if d == symbol else d for d in p.dims)))
            try:
                from_source(other.script)
            except pliant.PliantError:
                continue
            return other, symbol
    return None


UNEQUAL = [(name, *found) for name in operators() if (found := unequal(name)) is not None]
def outcome(model: Any, inputs: list[Array]) -> str | None:
    """Returns the error message for these inputs; `None` if they are accepted."""
    try:
        model(*inputs)
    except pliant.PliantError as error:
        return str(error)
    return None


AGREE: set[str] = set()
"""Operators whose sizes need not agree, although they do in the first case."""


@pytest.mark.parametrize(("name", "case", "symbol"), UNEQUAL, ids=[name for name, _, _ in UNEQUAL])
def test_run_time_size_mismatches(name: str, case: Case, symbol: str) -> None:
    mode = ("bytecode", "compiled")[len(case.name) % 2]
    model: Any = pliant.compile(from_source(case.script), exec_mode=mode)
    rng = np.random.default_rng(0)

    def inputs(size: int, other: int) -> list[Array]:
        sizes = {s: other if s == f"{symbol}2" else size for s in case.symbols}
        return [draw(p, sizes, rng) for p in case.params]

    good = next(size for size in (3, 4, 5, 6, 8, 2, 1, 0) if outcome(model, inputs(size, size)) is None)
    text = outcome(model, inputs(good, good + 2))
    assert (text is None) == (name in AGREE)
    if text is None:
        return
    assert f"relax.{name}" in text, text
    for word in (symbol, f"{symbol}2"):
        assert word in text.replace("(", " ").replace(",", " ").replace(")", " ").split(), text


# Operators whose cases have no two symbols that must agree: parameters, call, sizes that do not
# match, and message.
MISFITS = {
    "broadcast_to": ({"x": ("n", 3), "y": ("m",)}, "R.broadcast_to(x, (m, 3))", {"n": 2, "m": 4}, r"dims m and n "),
    "image.affine_grid": ({"x": ("n", "k", 3)}, "R.image.affine_grid(x, (4, 4))", {"n": 2, "k": 3}, "k = 3, must be 2"),
    "image.resize3d": ({"x": (1, 1, 1, "n", "m")}, "R.image.resize3d(x, (2, 2, 2))", {"n": 0, "m": 3}, "no elements"),
    "nn.conv2d_transpose": (
        {"x": (1, "c", 4, 4), "w": ("d", 2, 3, 3)}, "R.nn.conv2d_transpose(x, w)", {"c": 2, "d": 3}, "c = 2, must be d = 3",
    ),
    "nn.conv3d": (
        {"x": (1, "c", 4, 4, 4), "w": (2, "d", 3, 3, 3)}, "R.nn.conv3d(x, w)", {"c": 2, "d": 3}, "c = 2, must be d = 3",
    ),
    "nn.conv3d_transpose": (
        {"x": (1, "c", 4, 4, 4), "w": ("d", 2, 3, 3, 3)}, "R.nn.conv3d_transpose(x, w)", {"c": 2, "d": 3}, "c = 2, must be d = 3",
    ),
    "nn.gru": (
        {"x": ("s", "b", "i"), "w": (1, 12, "j"), "r": (1, 12, 4)}, "R.nn.gru(x, w, r)", {"s": 2, "b": 1, "i": 3, "j": 2},
        "j = 2, must be i = 3",
    ),
    "nn.pad": (
        {"x": ("n", "m")}, 'R.nn.pad(x, [2, 2, 2, 2], pad_mode="reflect")', {"n": 2, "m": 3},
        "axis 0 of size n = 2 is too small for its padding: this pad_mode needs a size of at least 3",
    ),
    "nn.pixel_shuffle": ({"x": ("n", "m", 2, 2)}, "R.nn.pixel_shuffle(x, 2)", {"n": 2, "m": 3}, "m = 3, must be a multiple of"),
    "split": ({"x": ("n", "m")}, "R.split(x, [n - 5], 0)", {"n": 2, "m": 3}, "the index -3 in indices_or_sections is negative"),
    "squeeze": ({"x": ("n", "m")}, "R.squeeze(x, [1])", {"n": 2, "m": 3}, "axis 1 has size m = 3, but only axes of size 1"),
    "topk": ({"x": ("n", "m"), "y": ("k",)}, "R.topk(x, k, axis=1)", {"n": 2, "m": 3, "k": 5}, "k is k = 5, but must be at most the size of axis 1, which is m = 3"),
    "vision.get_valid_counts": (
        {"x": ("b", "n", "m")}, "R.vision.get_valid_counts(x, 0.5, score_index=2)", {"b": 2, "n": 3, "m": 2},
        "index 2 is out of range for rows of size 2",
    ),
    "vision.roi_align": (
        {"x": ("n", 3, 8, 8), "r": ("k", "m")}, "R.vision.roi_align(x, r, (2, 2), 1.0)", {"n": 2, "k": 2, "m": 4}, "m = 4, must be 5",
    ),
    "vision.roi_pool": (
        {"x": ("n", 3, 8, 8), "r": ("k", "m")}, "R.vision.roi_pool(x, r, (2, 2), 1.0)", {"n": 2, "k": 2, "m": 4}, "m = 4, must be 5",
    ),
}

KNOWN_ONLY = {
    # The begins, ends and strides are values; the virtual machine compares their number with
    # the rank.
    "dynamic_strided_slice",
    # The last dim determines whether numbers are real or complex, so the compiler must know it.
    *"signal.dft signal.stft".split(),
}
"""Operators without sizes whose mismatch is found only at run time."""


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
@pytest.mark.parametrize("name", MISFITS)
def test_more_run_time_size_mismatches(name: str, mode: str) -> None:
    params, call, sizes, said = MISFITS[name]
    text = ", ".join(f'{p}: R.Tensor(({", ".join(map(repr, dims))},), "float32")' for p, dims in params.items())
    body = "".join(f"    {s} = T.int64()\n" for s in sizes)
    model: Any = pliant.compile(from_source(f"@R.function\ndef main({text}):\n{body}    return {call}\n"), exec_mode=mode)
    arrays = [np.ones([sizes[d] if isinstance(d, str) else d for d in dims], "float32") for dims in params.values()]
    with pytest.raises(pliant.ShapeError, match=said) as failed:
        model(*arrays)
    assert f"relax.{name}: " in str(failed.value) and f"<str>:{3 + len(sizes)}, in main" in str(failed.value)


def test_every_operator_has_run_time_size_mismatches() -> None:
    tried = {name for name, _, _ in UNEQUAL} | set(MISFITS)
    assert set(operators()) - tried - ANY_SIZES == KNOWN_ONLY


# ---- attributes ----


def nonsense(key: str, default: Any) -> list[str]:
    """Returns values that are invalid for an attribute with this name and default."""
    if isinstance(default, bool):
        return ['"nonsense"', "7"]
    if "axis" in key or "axes" in key:
        return ["99", "-99", '"nonsense"', "True"]
    if key in ("strides", "dilation", "pool_size", "groups", "num_groups", "upscale_factor", "pooled_size"):
        return ["0", "-1", '"nonsense"', "True"]
    if key in ("k", "depth", "repeats") and default != 0:
        return ["-2", '"nonsense"', "True"]
    if isinstance(default, int):
        return ['"nonsense"', "True"]
    if isinstance(default, str):
        return ['"nonsense"', "7"]
    return ['"nonsense"']


TAKEN: set[str] = set()
"""Attributes that accept any value, as `operator.attribute=value`."""


def attributes() -> list[tuple[str, str, str]]:
    table = pliant._core.relax
    return [
        (name, key, value)
        for name in operators()
        for key, kind, default in table.get_op(name).parameters
        if kind in ("attr", "required")
        for value in nonsense(key, default)
    ]


@pytest.mark.parametrize(("name", "key", "value"), attributes())
def test_invalid_attribute_values(name: str, key: str, value: str) -> None:
    cases = cases_of(name)
    assert cases, f"no case of {name}"
    case, call = next(((c, a) for c, a in cases if key in dict(a.attrs)), cases[0])
    said = refused(replace(case, expr=call.having(key, value).text), name)
    assert (said is None) == (f"{name}.{key}={value}" in TAKEN), said
