"""Tests the tables of ``docs/reference/onnx-operators.md``, which list the supported operators and the conformance tests that
pass.

``PLIANT_BLESS=1`` writes them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import onnx
from conformance import CASES, EXCLUSIONS, exclusion, reason

from pliant.frontend.onnx import operators

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "onnx-operators.md"
BEGIN, END = "<!-- made by tests/python/onnx/test_operator_tables.py -->\n", "<!-- end -->"
FIRST_OPSET = 7


def versions() -> dict[str, list[int]]:
    """Returns the versions of each of ONNX's own operators."""
    found = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not (schema.deprecated and schema.since_version <= FIRST_OPSET):
            found[schema.name].append(schema.since_version)
    return {name: sorted(v) for name, v in found.items()}


def taken(opsets: list[int]) -> str:
    """Returns the versions of an operator to which models of opset 7 or newer can refer."""
    older = [v for v in opsets if v <= FIRST_OPSET]
    return ", ".join(str(v) for v in [*older[-1:], *(v for v in opsets if v > FIRST_OPSET)])


def cases_of() -> dict[str, list[str]]:
    """Returns the node tests of each operator, including the tests of its expansion to a function."""
    found = defaultdict(list)
    operator = {n: c.model.graph.node[0].op_type for (k, n), c in CASES.items() if k == "node" and c.model is not None}
    for name in operator:
        found[operator.get(name.split("_expanded")[0], operator[name])].append(name)
    return found


def operator_rows() -> Iterator[str]:
    known, tests = set(operators()), cases_of()
    yield "| operator | versions | node tests that pass |"
    yield "|---|---|---|"
    for name, opsets in sorted(versions().items()):
        mine = tests.get(name, [])
        passed = sum(exclusion("node", t) is None for t in mine)
        count = f"{passed} of {len(mine)}" if mine else "none exist"
        yield f"| {name} | {taken(opsets)} | {count} |" if name in known else f"| {name} | not supported | {count} |"


def other_rows() -> Iterator[str]:
    names = sorted(name for name in operators() if "." in name)
    yield "Of other domains: " + (", ".join(f"`{n}`" for n in names) if names else "none") + "."


def refusal_rows() -> Iterator[str]:
    yield "| what is refused or differs | node tests |"
    yield "|---|---|"
    count: dict[str, int] = defaultdict(int)
    for kind, name in CASES:
        entry = exclusion(kind, name)
        if entry is not None and kind == "node":
            count[reason(entry)] += 1
    for entry in EXCLUSIONS:
        if count.get(reason(entry)):
            yield f"| {reason(entry)} | {count.pop(reason(entry))} |"


def tables() -> str:
    total = sum(k == "node" for k, _ in CASES)
    passed = sum(k == "node" and exclusion(k, n) is None for k, n in CASES)
    head = f"Of the {total} node tests of `onnx` {onnx.__version__}, {passed} pass. "
    head += "Their inputs are passed at run time, not compiled as constants."
    parts = [head, "\n".join(operator_rows()), "\n".join(other_rows()), "\n".join(refusal_rows())]
    return "\n\n".join(parts) + "\n"


def test_tables_equal_the_importer() -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    if os.environ.get("PLIANT_BLESS"):
        PAGE.write_text(before + BEGIN + tables() + END + after)
        return
    assert old == tables(), "PLIANT_BLESS=1 writes the tables of docs/reference/onnx-operators.md"
