"""ONNX models as modules, every symbolic dimension kept.

>>> from pliant.frontend.onnx import from_onnx
>>> module = from_onnx("model.onnx")
>>> model = pliant.compile(module)

``pliant.compile("model.onnx")`` does both. ``check("model.onnx")`` tells everything that is in the way of it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pliant import _core
from pliant._core import IRModule

__all__ = ["Finding", "Limits", "Report", "check", "from_onnx", "operators"]

Source = str | os.PathLike[str] | bytes
"""A path, or the bytes of a model. A ``ModelProto`` of the package ``onnx`` is taken too."""


@dataclass(frozen=True)
class Limits:
    """How much a file may ask for before it is refused. The defaults let every model through that fits a machine; a
    service that takes files from strangers sets its own."""

    file_bytes: int | None = None
    """Bytes of the model file, external data not counted."""
    decoded_bytes: int | None = None
    """Bytes that the file's messages take once they are decoded, weights not counted."""
    tensor_bytes: int | None = None
    """Bytes of one tensor."""
    nodes: int | None = None
    """Nodes of all graphs together, functions written out."""
    depth: int | None = None
    """Graphs inside graphs, and functions inside functions."""
    seconds: float | None = None
    """How long an import may take."""

    def given(self) -> dict[str, Any]:
        """Those that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def from_onnx(
    model: Source | Any,
    shape_dict: Mapping[str, Sequence[int | str]] | None = None,
    dtype_dict: Mapping[str, Any] | str | None = None,
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
    limits: Limits | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | None = None,
    divisible: Mapping[str, int] | None = None,
    allow_specialization: bool = False,
) -> IRModule:
    """Imports an ONNX model, whose graph becomes the function ``main``.

    Named dims become symbols; nothing is specialised. ``shape_dict`` gives dims of inputs in place of those that the
    file declares: numbers, or names of symbols. ``dtype_dict`` gives element types in which inputs are fed, one for all
    or by name; they are converted to those that the file declares. With ``keep_params_in_input`` the initializers become
    parameters behind the inputs and are found in the function's attribute ``params``, as TVM has it; else they are
    constants. ``limits`` are for files from strangers.

    ``dynamic_shapes`` declares single dims: ``{"x": {0: "batch", 1: ("seq", 1, 4096)}}``, or a list with an entry for
    each dim; entries are names, names with a range, sizes, ``torch.export.Dim`` objects, or ``None`` for what the file
    says. ``divisible`` adds that a number divides a symbol. Ranges and divisors are checked when the model runs. A
    declared symbol that the model fixes fails with the node and where the size comes from; with
    ``allow_specialization`` it is a warning.

    Raises ``CompileError`` for a file that breaks ONNX's rules and ``UnsupportedError`` for what is not supported,
    with every node that is concerned.
    """
    if opset is not None:
        raise TypeError("opset is not taken: the model says which it uses")
    del sanitize_input_names  # Names are made valid always.
    module, _ = import_model(
        model,
        shape_dict,
        dtype_dict,
        keep_params_in_input,
        limits,
        dynamic_shapes=dynamic_shapes,
        divisible=divisible,
        allow_specialization=allow_specialization,
    )
    return module


def import_model(
    model: Source | Any,
    shape_dict: Mapping[str, Sequence[int | str]] | None = None,
    dtype_dict: Mapping[str, Any] | str | None = None,
    keep_params_in_input: bool = False,
    limits: Limits | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | None = None,
    divisible: Mapping[str, int] | None = None,
    allow_specialization: bool = False,
) -> tuple[IRModule, str]:
    """As :func:`from_onnx`, with the text of ``explain_shapes``."""
    source, bounds = source_of(model), (limits or Limits()).given()
    shapes = {name: list(dims) for name, dims in (shape_dict or {}).items()}
    facts = {
        "dynamic": [(name, declared_dims(name, dims)) for name, dims in (dynamic_shapes or {}).items()],
        "divisible": list((divisible or {}).items()),
        "allow_specialization": allow_specialization,
    }
    dtypes = {} if dtype_dict is None or isinstance(dtype_dict, str) else dict(dtype_dict)
    if isinstance(dtype_dict, str):
        _, _, inputs, _, _ = _core.import_onnx(source, False, shapes, {}, bounds, facts)
        dtypes = dict.fromkeys(inputs, dtype_dict)
    module, params, _, _, told = _core.import_onnx(source, keep_params_in_input, shapes, dtypes, bounds, facts)
    for text in told[1]:
        warnings.warn(text, stacklevel=3)
    if keep_params_in_input:
        module["main"] = module["main"].with_attr("params", list(params.values()))
    return module, told[0]


def declared_dims(name: str, dims: Any) -> list[tuple[int, str | None, int | None, int | None]]:
    """Axis, symbol, least and largest size of each dim that is declared."""
    entries = dims.items() if isinstance(dims, Mapping) else enumerate(dims or ())
    declared = []
    for axis, entry in entries:
        if entry is None:
            continue
        given = _declared(entry)
        if given is None:
            wanted = "a name, (name, least, largest), a size or a Dim"
            raise TypeError(f"dynamic_shapes of '{name}', dim {axis}: expected {wanted}, got {entry!r}")
        if given != ("", None, None):
            declared.append((int(axis), *given))
    return declared


def _declared(entry: Any) -> tuple[str | None, int | None, int | None] | None:
    if isinstance(entry, bool):
        return None
    if isinstance(entry, str):
        return entry, None, None
    if isinstance(entry, int):
        return str(entry), None, None
    if isinstance(entry, tuple) and len(entry) == 3 and isinstance(entry[0], str):
        name, least, largest = entry
        return name, least, largest
    # torch.export.Dim.AUTO and DYNAMIC are symbols without a name; STATIC is what the file says.
    hint = getattr(getattr(entry, "type", None), "name", None)
    if hint in ("AUTO", "DYNAMIC"):
        return None, getattr(entry, "min", None), getattr(entry, "max", None)
    if hint == "STATIC":
        return "", None, None
    symbol = getattr(entry, "__name__", None)
    if isinstance(symbol, str):
        largest = getattr(entry, "max", None)
        # Dims without a bound have the largest integer there.
        bounded = isinstance(largest, int) and largest < 2**31
        return symbol, getattr(entry, "min", None), largest if bounded else None
    return None


@dataclass(frozen=True)
class Finding:
    """One thing that keeps a model from being compiled, with all nodes that it concerns."""

    kind: str
    """``"unsupported"``, or ``"invalid"`` where the file breaks a rule of ONNX."""
    operator: str
    """The operator, with its domain where that is not ONNX's own; empty when it is the file or the graph."""
    message: str
    """What is wrong."""
    help: str | None
    """What would work instead."""
    nodes: list[str]
    """The nodes, as ``op_type 'name'``."""


@dataclass(frozen=True)
class Report:
    """What :func:`check` found; as text it is what ``pliant check`` prints."""

    findings: list[Finding]
    """What keeps the model from being compiled; empty when nothing does."""
    operators: dict[str, int]
    """How often each operator occurs."""
    text: str = field(repr=False)
    """The whole report, for people."""
    reduced: list[Path] = field(default_factory=list)
    """The models that show single findings, where they were asked for."""

    @property
    def ok(self) -> bool:
        """Whether nothing keeps the model from being compiled."""
        return not self.findings

    def __str__(self) -> str:
        return self.text


def check(
    model: Source | Any, reduce: str | os.PathLike[str] | None = None, limits: Limits | None = None
) -> Report:
    """Everything that keeps a model from being compiled, in one report: unsupported operators, attributes and element
    types with their nodes, and rules of ONNX that the file breaks.

    Nodes behind one that fails are checked as far as the file says what types they read. With ``reduce``, a directory,
    a model is written for each finding that shows it alone.

    Raises ``CompileError`` for what is no ONNX model at all.
    """
    found, counts, text, files = _core.check_onnx(source_of(model), reduce, (limits or Limits()).given())
    return Report([Finding(*f) for f in found], counts, text, [Path(f) for f in files])


def operators() -> list[str]:
    """The operators that can be imported; those that are not ONNX's own with their domain. ``docs/onnx.md`` lists them
    with the versions that are taken."""
    return sorted(f"{domain}.{name}" if domain else name for domain, name in _core.onnx_operators())


def source_of(model: Source | Any) -> str | bytes:
    """What the importer reads: a path or bytes."""
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return data
    raise TypeError(f"expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}")
