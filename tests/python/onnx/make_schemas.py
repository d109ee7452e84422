"""Writes ``crates/pliant-onnx/src/generated/schemas.txt``: what the operators that are imported may be given, version by
version: ``python tests/python/onnx/make_schemas.py``.

A line is ``domain name since inputs outputs attributes...``, the domain ``-`` for ONNX's own. Numbers of inputs are
``least-most``, most ``*`` where there is no end; attributes that must be given end with ``!``; a version from which on the
operator is gone has ``gone`` in place of the rest. Before them stand the newest versions of the domains. Operators of
``com.microsoft`` are those of the package ``onnxruntime``, where that is installed; else their lines stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from pliant.frontend.onnx import operators

FILE = Path(__file__).resolve().parents[3] / "crates/pliant-onnx/src/generated/schemas.txt"
MANY = 2**31 - 1
CONTRIB = "com.microsoft"


def line(schema: Any) -> str:
    head = f"{schema.domain or '-'} {schema.name} {schema.since_version}"
    if schema.deprecated:
        return f"{head} gone"

    def count(least: int, most: int) -> str:
        return f"{least}-{'*' if most >= MANY else most}"

    attributes = sorted(f"{name}!" if a.required else name for name, a in schema.attributes.items())
    inputs = count(schema.min_input, schema.max_input)
    outputs = count(schema.min_output, schema.max_output)
    return " ".join([head, inputs, outputs, *attributes])


def contrib() -> list[Any] | None:
    """The schemas of ONNX Runtime's own operators."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:
        return None
    return [s for s in get_all_operator_schema() if s.domain == CONTRIB]


def lines() -> list[str]:
    known = set(operators())
    schemas = list(onnx.defs.get_all_schemas_with_history())
    newest: dict[str, int] = {}
    for schema in schemas:
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    newest[""] = onnx.defs.onnx_opset_version()
    others = contrib()
    kept = [] if others is not None else [k for k in FILE.read_text().splitlines() if k.startswith(CONTRIB)]

    def is_known(schema: Any) -> bool:
        return (f"{schema.domain}.{schema.name}" if schema.domain else schema.name) in known

    rows = [s for s in [*schemas, *(others or [])] if is_known(s)]
    rows.sort(key=lambda s: (s.domain, s.name, s.since_version))
    domains = sorted({s.domain for s in rows} - {CONTRIB})
    head = [f"{domain or '-'} {newest[domain]}" for domain in domains] + [f"{CONTRIB} 1"]
    return [*head, *map(line, rows), *[k for k in kept if k != f"{CONTRIB} 1"]]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
