"""Variants of test cases whose models have constant dims instead of symbols: a batch of 1, or all dims constant."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping

from .benchmark_case import Operand, OperatorCase


def variants(row: OperatorCase) -> Iterator[OperatorCase]:
    """Yields the test case with a batch of 1, if the first dim of its first input is a symbol, and
    the test case with all dims fixed to the largest size.
    """
    symbols = {s for operand in row.inputs.values() for s in re.findall(r"[a-z]\w*", operand.dims)}
    if not symbols:
        return
    leading = next(iter(row.inputs.values())).dims.split()[:1]
    if leading and leading[0] in symbols and len(symbols) > 1:
        sizes = [{**s, leading[0]: 1} for s in row.sizes[1:]]
        yield fix(row, "batch of 1", {leading[0]: 1}, sizes)
    yield fix(row, "fixed dims", dict(row.sizes[-1]), row.sizes[-1:])


def fix(row: OperatorCase, what: str, values: Mapping[str, int], sizes: list[Mapping[str, int]]) -> OperatorCase:
    """Returns the test case with the given symbols replaced by numbers."""
    inputs = {name: dataclasses.replace(operand, dims=fixed(operand, values)) for name, operand in row.inputs.items()}
    return dataclasses.replace(row, inputs=inputs, sizes=sizes, variant=f"{row.variant} ({what})".strip())


def fixed(operand: Operand, values: Mapping[str, int]) -> str:
    """Returns the dims with symbols replaced by numbers. A dim without remaining symbols becomes an
    integer.
    """
    dims = []
    for dim in operand.dims.split():
        text = re.sub(r"[a-z]\w*", lambda m: str(values.get(m[0], m[0])), dim)
        dims.append(text if re.search(r"[a-z]", text) else str(int(eval(text, {"__builtins__": {}}))))
    return " ".join(dims)
