"""Collects the test cases of all operators by name."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

from onnx import NodeProto

from . import (
    data_movement_operators,
    elementwise_operators,
    fixed_dim_cases,
    matmul_convolution_operators,
    quantized_operators,
    rare_operators,
    reduction_operators,
    vision_and_recurrent_operators,
)
from .benchmark_case import Case, OperatorCase

TABLES = (
    elementwise_operators,
    reduction_operators,
    data_movement_operators,
    matmul_convolution_operators,
    vision_and_recurrent_operators,
    quantized_operators,
    rare_operators,
)


def rows() -> Iterator[OperatorCase]:
    """Yields the test cases of all operators."""
    for table in TABLES:
        yield from table.rows()


def fixed_rows() -> Iterator[OperatorCase]:
    """Yields the test cases of all operators, with some or all dims fixed by the model."""
    for row in rows():
        yield from fixed_dim_cases.variants(row)


def cases(pattern: str = "*", fixed: bool = False) -> dict[str, Case]:
    """Returns the cases whose name or operator matches a glob pattern. With `fixed`, returns the
    variants with fixed dims.
    """
    found: dict[str, Case] = {}
    for row in fixed_rows() if fixed else rows():
        name = row.name()
        if not any(fnmatch.fnmatchcase(x, pattern) for x in (row.op, name)):
            continue
        if name in found:
            raise ValueError(f"two rows of the operator tables have the same name {name!r}")
        found[name] = row.case()
    return found


def missing() -> list[str]:
    """Returns the operators that Pliant imports and that no test case uses."""
    from pliant.frontend.onnx import operators

    used = {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for row in rows() for n in nodes_of(row)}
    return sorted(set(operators()) - used)


def nodes_of(row: OperatorCase) -> Iterator[NodeProto]:
    """Yields all nodes of a graph, including nodes of subgraphs."""
    pending = list(row.model().graph.node)
    while pending:
        node = pending.pop()
        yield node
        pending += [n for a in node.attribute for n in a.g.node]
