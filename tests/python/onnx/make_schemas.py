"""Writes ``crates/pliant-onnx/src/generated/schemas.txt``, which lists for each version of each
supported operator its inputs, outputs and attributes: ``python tests/python/onnx/make_schemas.py``.

A line is ``domain name since inputs outputs types attributes...``; the domain is ``-`` for ONNX's
own. Numbers of inputs and outputs are ``least-most``, where ``most`` is ``*`` if there is no limit.
Required attributes end with ``!``. If the operator is removed in its last version, ``gone``
replaces the rest of that line. The first lines contain the newest version of each domain. Operators
of ``com.microsoft`` come from the package ``onnxruntime``, if it is installed; otherwise their
lines are kept.

The types are those of the inputs, separated by commas, or ``-`` if there are no inputs. Each
element type that an input accepts is a letter; ``a`` is the first of ``TensorProto.DataType``. An
input that is not always a tensor has no letters. Inputs that must have the same type begin with the
same ``NAME=``; a variadic input ends with ``*``, an optional one with ``?``.
"""

from __future__ import annotations

import string
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from pliant.frontend.onnx import operators

FILE = Path(__file__).resolve().parents[3] / "crates/pliant-onnx/src/generated/schemas.txt"
MANY = 2**31 - 1
LETTERS = string.ascii_lowercase + string.ascii_uppercase
CONTRIB = "com.microsoft"


def types(schema: Any) -> str:
    """Returns the text for the types of an operator's inputs."""
    names = [getattr(i, "type_str", None) or i.typeStr for i in schema.inputs]
    options = [i.option.name for i in schema.inputs]
    ends = [option == "Variadic" for option in options]
    same = [getattr(i, "is_homogeneous", getattr(i, "isHomogeneous", True)) for i in schema.inputs]
    counts = Counter(names)

    def word(k: int) -> str:
        texts = schema.inputs[k].types
        plain = [t[len("tensor(") : -1].upper() for t in texts if t.startswith("tensor(")]
        # The converter of the operator checks inputs that also accept sequences or optionals.
        taken = sorted(onnx.TensorProto.DataType.Value(t) for t in plain) if len(plain) == len(texts) else []
        letters = "".join(LETTERS[code - 1] for code in taken)
        shared = same[k] and (counts[names[k]] > 1 or ends[k]) and not names[k].startswith("tensor(")
        end = {"Variadic": "*", "Optional": "?"}.get(options[k], "")
        return f"{names[k]}={letters}" * shared + letters * (not shared) + end

    return ",".join(map(word, range(len(names)))) or "-"


def line(schema: Any, is_last: bool) -> str:
    head = f"{schema.domain or '-'} {schema.name} {schema.since_version}"
    # An earlier version that is deprecated is still run.
    if schema.deprecated and is_last:
        return f"{head} gone"

    def count(least: int, most: int) -> str:
        return f"{least}-{'*' if most >= MANY else most}"

    attributes = sorted(f"{name}!" if a.required else name for name, a in schema.attributes.items())
    inputs = count(schema.min_input, schema.max_input)
    outputs = count(schema.min_output, schema.max_output)
    return " ".join([head, inputs, outputs, types(schema), *attributes])


def contrib() -> list[Any] | None:
    """Returns the schemas of ONNX Runtime's own operators, or `None` if it is not installed."""
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
    last = {(s.domain, s.name): s for s in rows}
    written = [line(s, last[s.domain, s.name] is s) for s in rows]
    return [*head, *written, *[k for k in kept if k != f"{CONTRIB} 1"]]


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
