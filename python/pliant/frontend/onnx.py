"""ONNX models as modules, every symbolic dimension kept.

>>> from pliant.frontend.onnx import from_onnx
>>> module = from_onnx("model.onnx")
>>> model = pliant.compile(module)

``pliant.compile("model.onnx")`` does both. ``check("model.onnx")`` tells everything that is in the way of it.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pliant import _core
from pliant._core import IRModule
from pliant.frontend._params import hold_params

__all__ = ["Finding", "Limits", "Report", "check", "from_onnx", "operators"]

Source = str | os.PathLike[str] | bytes | bytearray | memoryview
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
    rank: int | None = None
    """Dims of one tensor, 64 unless it is set."""
    nodes: int | None = None
    """Nodes of all graphs together, functions written out."""
    depth: int | None = None
    """Graphs inside graphs, and functions inside functions."""
    seconds: float | None = None
    """How long an import may take, and in ``pliant.compile`` the compilation after it. It is looked at between nodes,
    passes and functions."""

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            if isinstance(value, bool) or not isinstance(value, int | float if name == "seconds" else int):
                raise TypeError(f"Limits: {name} must be a number, got {value!r}")
            if not 0 <= value < 2**63:
                raise ValueError(f"Limits: {name} must be from 0 to 2**63 - 1, got {value}")

    def given(self) -> dict[str, Any]:
        """Those that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def from_onnx(
    model: Source | Any,
    shape_dict: Mapping[str, Sequence[int | str | None]] | None = None,
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
    file declares: numbers, names of symbols, or ``None`` for a symbol without a name. ``dtype_dict`` gives element types in which inputs are fed, one for all
    or by name; they are converted to those that the file declares. With ``keep_params_in_input`` the initializers become
    parameters behind the inputs, and ``detach_params`` tells them; else they are constants. ``limits`` are for files from strangers.

    ``dynamic_shapes`` declares single dims: ``{"x": {0: "batch", 1: ("seq", 1, 4096)}}``, or a list with an entry for
    each dim; entries are names, names with a range, sizes, ``torch.export.Dim`` objects, or ``None`` for what the file
    says. ``divisible`` adds that a number divides a symbol. Ranges and divisors are checked when the model runs. A
    declared symbol that the model fixes fails with the node, the way of the symbol and where the size comes from; with
    ``allow_specialization=True`` it is a warning. The names that the file gives dims (``dim_param``) declare symbols too.

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
    shape_dict: Mapping[str, Sequence[int | str | None]] | None = None,
    dtype_dict: Mapping[str, Any] | str | None = None,
    keep_params_in_input: bool = False,
    limits: Limits | None = None,
    *,
    dynamic_shapes: Mapping[str, Any] | None = None,
    divisible: Mapping[str, int] | None = None,
    allow_specialization: bool = False,
) -> tuple[IRModule, str]:
    """As :func:`from_onnx`, with the text of ``explain_shapes``."""
    source, bounds = source_of(model), _limits(limits)
    if not isinstance(allow_specialization, bool):
        raise TypeError(f"allow_specialization: expected True or False, got {allow_specialization!r}")
    given = _mapping("shape_dict", shape_dict, "dims of inputs by name")
    shapes = {name: _dims(name, dims) for name, dims in given.items()}
    dynamic = _mapping("dynamic_shapes", dynamic_shapes, "dims of inputs by name")
    facts = {
        "dynamic": [(name, declared_dims(name, dims)) for name, dims in dynamic.items()],
        "divisible": list(_divisors(divisible).items()),
        "allow_specialization": allow_specialization,
    }
    dtypes = {} if isinstance(dtype_dict, str) else dict(_mapping("dtype_dict", dtype_dict, "element types by name"))
    if isinstance(dtype_dict, str):
        _, _, inputs, _, _ = _core.import_onnx(source, False, shapes, {}, bounds, facts)
        dtypes = dict.fromkeys(inputs, dtype_dict)
    module, params, _, _, told = _core.import_onnx(source, keep_params_in_input, shapes, dtypes, bounds, facts)
    for text in told[1]:
        warnings.warn(text, stacklevel=3)
    if keep_params_in_input:
        hold_params(module, {"main": list(params.values())})
    return module, told[0]


def _mapping(argument: str, given: Any, what: str) -> Mapping[str, Any]:
    """An argument that must be a mapping from names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{argument}: expected a dict with {what}, got {given!r}")
    return given


def _limits(limits: Limits | None) -> dict[str, Any]:
    if limits is None:
        return {}
    if not isinstance(limits, Limits):
        raise TypeError(f"limits: expected Limits(seconds=10, nodes=20_000, ...), got {limits!r}")
    return limits.given()


def _dims(name: str, dims: Any) -> list[Any]:
    """The dims that ``shape_dict`` gives an input."""
    if isinstance(dims, str) or not isinstance(dims, Sequence):
        raise TypeError(f"shape_dict of '{name}': expected a list of sizes and names, got {dims!r}")
    for axis, dim in enumerate(dims):
        if isinstance(dim, bool | float):
            raise TypeError(f"shape_dict of '{name}', dim {axis}: expected a size, a name or None, got {dim!r}")
    return list(dims)


def _divisors(divisible: Any) -> Mapping[str, int]:
    divisors = _mapping("divisible", divisible, "numbers by symbol")
    for name, number in divisors.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"divisible: expected a number for '{name}', got {number!r}")
        if not 1 <= number <= _LARGEST:
            raise ValueError(f"divisible: '{name}' cannot be divisible by {number}")
    return divisors


_LARGEST = 2**63 - 1


def declared_dims(name: str, dims: Any) -> list[tuple[int, str | None, int | None, int | None]]:
    """Axis, symbol, least and largest size of each dim that is declared."""
    if dims is not None and not isinstance(dims, Mapping | list | tuple):
        raise TypeError(f"dynamic_shapes of '{name}': expected a dict by axis or a list of dims, got {dims!r}")
    entries = dims.items() if isinstance(dims, Mapping) else enumerate(dims or ())
    declared = []
    for axis, entry in entries:
        where = f"dynamic_shapes of '{name}', dim {axis}"
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"{where}: an axis must be a number")
        if not 0 <= axis <= _LARGEST:
            raise ValueError(f"{where}: axes count from 0")
        if entry is None:
            continue
        given = _declared(entry)
        if given is None:
            wanted = "a name, (name, least), (name, least, largest), a size or a Dim"
            raise TypeError(f"{where}: expected {wanted}, got {entry!r}")
        symbol, least, largest = given
        for bound in (least, largest):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise TypeError(f"{where}: expected a size, got {bound!r}")
            if bound is not None and not 0 <= bound <= _LARGEST:
                raise ValueError(f"{where}: {bound} is no size: sizes are from 0 to 2**63 - 1")
        if given == ("", None, None):
            continue
        if symbol is not None and not _is_size(symbol):
            raise ValueError(f"{where}: {symbol!r} is no size, no name of a symbol, and no arithmetic over such names")
        declared.append((axis, symbol, least, largest))
    return declared


def _is_size(text: str) -> bool:
    """Whether a text is a size, a name, or arithmetic over names."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    open_nodes: list[ast.expr] = [tree]
    while open_nodes:
        match open_nodes.pop():
            case ast.BinOp(_, ast.Div() | ast.FloorDiv() | ast.Mod(), ast.Constant(0)):
                return False
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod(), right):
                open_nodes += [left, right]
            case ast.Constant(int(value)) if not isinstance(value, bool) and 0 <= value <= _LARGEST:
                pass
            case ast.Name():
                pass
            case _:
                return False
    return True


def _declared(entry: Any) -> tuple[str | None, int | None, int | None] | None:
    if isinstance(entry, bool):
        return None
    if isinstance(entry, str):
        return entry or " ", None, None
    if isinstance(entry, int):
        return str(entry), None, None
    if isinstance(entry, tuple) and 1 <= len(entry) <= 3 and isinstance(entry[0], str):
        name, least, largest = (*entry, None, None)[:3]
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
    model: Source | Any,
    reduce: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    *,
    allow_specialization: bool = False,
) -> Report:
    """Everything that keeps a model from being compiled, in one report: unsupported operators, attributes and element
    types with their nodes, and rules of ONNX that the file breaks.

    Nodes behind one that fails are checked as far as the file says what types they read. With ``reduce``, a directory,
    a model is written for each finding that shows it alone. That the model fixes a symbol which it declares is a finding,
    and with ``allow_specialization=True`` a note in the text.

    Raises ``CompileError`` for what is no ONNX model at all.
    """
    found, counts, text, files = _core.check_onnx(source_of(model), reduce, _limits(limits), allow_specialization)
    return Report([Finding(*f) for f in found], counts, text, [Path(f) for f in files])


def operators() -> list[str]:
    """The operators that can be imported; those that are not ONNX's own with their domain. ``docs/onnx.md`` lists them
    with the versions that are taken."""
    return sorted(f"{domain}.{name}" if domain else name for domain, name in _core.onnx_operators())


def source_of(model: Source | Any) -> str | bytes:
    """What the importer reads: a path or bytes."""
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model)
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return data
    raise TypeError(f"expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}")
