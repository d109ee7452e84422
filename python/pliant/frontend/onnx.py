"""Imports ONNX models as modules and keeps all symbolic dims.

>>> from pliant.frontend.onnx import from_onnx
>>> module = from_onnx("model.onnx")
>>> model = pliant.compile(module)

``pliant.compile("model.onnx")`` does both. ``check("model.onnx")`` reports everything that prevents
compilation.
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
from pliant._core import IRModule, NDArray
from pliant.frontend._detached_params import attach_params

__all__ = ["Finding", "Limits", "Report", "check", "from_onnx", "operators"]

Source = str | os.PathLike[str] | bytes | bytearray | memoryview
"""A path, or the bytes of a model. A ``ModelProto`` of the package ``onnx`` is also accepted."""


@dataclass(frozen=True)
class Limits:
    """The resource limits of an import. A file that exceeds a limit is rejected with
    ``CompileError``. The defaults accept every model that fits in memory. A service that accepts
    files that may be hostile should set lower limits.

    Raises ``TypeError`` for a limit that is not a number, and ``ValueError`` for a negative one.
    """

    file_bytes: int | None = None
    """The maximum size of the model file in bytes, without external data."""
    decoded_bytes: int | None = None
    """The maximum size of the decoded messages in bytes, without weights."""
    tensor_bytes: int | None = None
    """The maximum size of one tensor in bytes."""
    rank: int | None = None
    """The maximum rank of a tensor. The default is 64."""
    nodes: int | None = None
    """The maximum number of nodes in all graphs together, after inlining of functions."""
    depth: int | None = None
    """The maximum nesting depth of graphs and functions."""
    seconds: float | None = None
    """The time limit of the import in seconds, checked between nodes. In ``pliant.compile``, the
    limit includes the compilation and is also checked between passes and functions."""

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            if isinstance(value, bool) or not isinstance(value, int | float if name == "seconds" else int):
                raise TypeError(f"Limits: {name} must be a number, got {value!r}")
            if not 0 <= value < 2**63:
                raise ValueError(f"Limits: {name} must be from 0 to 2**63 - 1, got {value}")

    def given(self) -> dict[str, Any]:
        """Returns the limits that were given to the constructor, by name."""
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
    strict: bool = False,
) -> IRModule:
    """Imports an ONNX model. Its graph becomes the function ``main``.

    Named dims become symbols, and none is replaced by a fixed size. ``shape_dict`` overrides the
    declared dims of inputs with numbers, names of symbols, or ``None`` for a symbol without a name.
    ``dtype_dict`` states the element types in which inputs are passed: one type for all inputs, or
    types by name. The model converts inputs to the types that the file declares. With
    ``keep_params_in_input``, the initializers become parameters after the inputs, and
    ``detach_params`` returns them; otherwise they are constants. ``sanitize_input_names`` is
    ignored, because names are always made valid.

    ``dynamic_shapes`` declares individual dims: ``{"x": {0: "batch", 1: ("seq", 1, 4096)}}``, or a
    list with an entry for each dim. An entry is a name, a name with a range, a size, a
    ``torch.export.Dim`` object, or ``None`` for the dim in the file. ``divisible`` maps symbols to
    numbers that divide them. Ranges and divisors are checked when the model runs.

    If the model requires a fixed size for a declared symbol, the import fails. The message names
    the node, the path of the symbol and the origin of the size. With ``allow_specialization=True``,
    this is only a warning. Names of dims in the file (``dim_param``) also declare symbols.

    Violations of the ONNX specification that ONNX Runtime tolerates, such as a negative dim of an input or a wrong shape of an
    intermediate value, are warnings. With ``strict=True``, they are errors.

    Raises ``CompileError`` for a file that violates ONNX's rules or exceeds a limit, and for unknown names of inputs and symbols.
    Raises ``UnsupportedError`` for unsupported features, with all affected nodes. Raises ``TypeError`` or ``ValueError`` for
    other invalid arguments. ``opset`` must not be given.
    """
    if opset is not None:
        raise TypeError("the argument opset is not supported: remove it; the model declares the operator set that it uses")
    del sanitize_input_names  # Names are always made valid.
    options = ImportOptions(
        shape_dict,
        dtype_dict,
        keep_params_in_input,
        limits,
        dynamic_shapes,
        divisible,
        allow_specialization,
        strict,
    )
    return import_model(model, options)[0]


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import, with the names and the meaning of the arguments of :func:`from_onnx`."""

    shape_dict: Mapping[str, Sequence[int | str | None]] | None = None
    dtype_dict: Mapping[str, Any] | str | None = None
    keep_params_in_input: bool = False
    limits: Limits | None = None
    dynamic_shapes: Mapping[str, Any] | None = None
    divisible: Mapping[str, int] | None = None
    allow_specialization: bool = False
    strict: bool = False

    def shapes(self) -> dict[str, list[Any]]:
        """Returns the dims of ``shape_dict``, checked."""
        given = _mapping("shape_dict", self.shape_dict, "dims of inputs by name")
        return {name: _dims(name, dims) for name, dims in given.items()}

    def facts(self) -> dict[str, Any]:
        """Returns the facts about dims, and the flags, as the importer takes them, checked."""
        flags = {"allow_specialization": self.allow_specialization, "strict": self.strict}
        for option, value in flags.items():
            if not isinstance(value, bool):
                raise TypeError(f"{option}: expected True or False, got {value!r}")
        dynamic = _mapping("dynamic_shapes", self.dynamic_shapes, "dims of inputs by name")
        return {
            "dynamic": [(name, declared_dims(name, dims)) for name, dims in dynamic.items()],
            "divisible": list(_divisors(self.divisible).items()),
            **flags,
        }


def import_model(model: Source | Any, options: ImportOptions) -> tuple[IRModule, str]:
    """Imports an ONNX model. Returns the module and the text that ``Model.explain_shapes`` prints. Warnings of the import are
    Python warnings. Raises the errors of :func:`from_onnx`."""
    imported = import_with_warnings(model, options)
    for text in imported.warnings:
        warnings.warn(text, stacklevel=3)
    if options.keep_params_in_input:
        attach_params(imported.module, {"main": list(imported.params.values())})
    return imported.module, imported.shape_report


@dataclass(frozen=True)
class Imported:
    """An imported model."""

    module: IRModule
    """The module with the function ``main``."""
    params: dict[str, NDArray]
    """The initializers that are parameters, by name, in the order of the parameters after the inputs."""
    shape_report: str
    """The text that ``Model.explain_shapes`` prints."""
    warnings: list[str]
    """Warnings, such as those of symbols that are replaced by fixed sizes."""


def import_with_warnings(model: Source | _core.OnnxFile | Any, options: ImportOptions) -> Imported:
    """Imports an ONNX model and returns its warnings. Raises the errors of :func:`from_onnx`."""
    source, bounds = source_of(model), _limits(options.limits)
    shapes, facts, dtypes = options.shapes(), options.facts(), options.dtype_dict
    if isinstance(dtypes, str):
        _, _, inputs, _, _ = _core.import_onnx(source, False, shapes, {}, bounds, facts)
        dtypes = dict.fromkeys(inputs, dtypes)
    dtypes = dict(_mapping("dtype_dict", dtypes, "element types by name"))
    module, params, _, _, report = _core.import_onnx(
        source, options.keep_params_in_input, shapes, dtypes, bounds, facts
    )
    return Imported(module, params, *report)


def _mapping(argument: str, given: Any, what: str) -> Mapping[str, Any]:
    """Checks an argument that must be a mapping with string keys."""
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
    """Checks the dims of an input in ``shape_dict``."""
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
            raise TypeError(f"divisible: the divisor of symbol '{name}' must be an int, got {number!r}")
        if not 1 <= number <= _MAX_SIZE:
            raise ValueError(f"divisible: the divisor of symbol '{name}' must be from 1 to 2**63 - 1, got {number}")
    return divisors


_MAX_SIZE = 2**63 - 1


def declared_dims(name: str, dims: Any) -> list[tuple[int, str | None, int | None, int | None]]:
    """Converts the declared dims of an input, from ``dynamic_shapes``, to tuples of axis, symbol,
    minimum and maximum size.

    Raises ``TypeError`` or ``ValueError`` for an invalid entry.
    """
    if dims is not None and not isinstance(dims, Mapping | list | tuple):
        raise TypeError(f"dynamic_shapes of '{name}': expected a dict by axis or a list of dims, got {dims!r}")
    entries = dims.items() if isinstance(dims, Mapping) else enumerate(dims or ())
    declared = []
    for axis, entry in entries:
        where = f"dynamic_shapes of '{name}', dim {axis}"
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"{where}: the axis must be an int")
        if not 0 <= axis <= _MAX_SIZE:
            raise ValueError(f"{where}: the axis must be from 0 to 2**63 - 1")
        if entry is None:
            continue
        parsed = _parse_dim(entry)
        if parsed is None:
            expected = "a name, (name, min), (name, min, max), a size or a Dim"
            raise TypeError(f"{where}: expected {expected}, got {entry!r}")
        symbol, min_size, max_size = parsed
        for bound in (min_size, max_size):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise TypeError(f"{where}: a minimum or maximum size must be an int, got {bound!r}")
            if bound is not None and not 0 <= bound <= _MAX_SIZE:
                raise ValueError(f"{where}: a minimum or maximum size must be from 0 to 2**63 - 1, got {bound}")
        if parsed == ("", None, None):
            continue
        if symbol is not None and not _is_size_expression(symbol):
            raise ValueError(f"{where}: {symbol!r} is not a size, a name of a symbol, or an arithmetic expression over names")
        declared.append((axis, symbol, min_size, max_size))
    return declared


def _is_size_expression(text: str) -> bool:
    """Whether a text is an integer, a name, or an arithmetic expression over names."""
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
            case ast.Constant(int(value)) if not isinstance(value, bool) and 0 <= value <= _MAX_SIZE:
                pass
            case ast.Name():
                pass
            case _:
                return False
    return True


def _parse_dim(entry: Any) -> tuple[str | None, int | None, int | None] | None:
    """Converts an entry of ``dynamic_shapes`` to a tuple of symbol, minimum and maximum size. Bounds
    that the entry does not state are ``None``. The symbol ``None`` stands for a new symbol without
    a name, and ``""`` keeps the dim of the file. Returns ``None`` instead of a tuple if the entry
    has an invalid type.
    """
    if isinstance(entry, bool):
        return None
    if isinstance(entry, str):
        return entry or " ", None, None
    if isinstance(entry, int):
        return str(entry), None, None
    if isinstance(entry, tuple) and 1 <= len(entry) <= 3 and isinstance(entry[0], str):
        name, min_size, max_size = (*entry, None, None)[:3]
        return name, min_size, max_size
    # torch.export.Dim.AUTO and DYNAMIC are symbols without a name; STATIC keeps the dim of the
    # file.
    hint = getattr(getattr(entry, "type", None), "name", None)
    if hint in ("AUTO", "DYNAMIC"):
        return None, getattr(entry, "min", None), getattr(entry, "max", None)
    if hint == "STATIC":
        return "", None, None
    symbol = getattr(entry, "__name__", None)
    if isinstance(symbol, str):
        max_size = getattr(entry, "max", None)
        # Unbounded dims have a huge maximum.
        bounded = isinstance(max_size, int) and max_size < 2**31
        return symbol, getattr(entry, "min", None), max_size if bounded else None
    return None


@dataclass(frozen=True)
class Finding:
    """A problem that prevents the compilation of a model, with all affected nodes."""

    kind: str
    """``"unsupported"``, or ``"invalid"`` if the file violates a rule of ONNX."""
    operator: str
    """The operator, with its domain unless that is ONNX's own. Empty if the problem concerns the
    file or the graph."""
    message: str
    """The problem."""
    help: str | None
    """A change that would solve the problem, if one is known."""
    nodes: list[str]
    """The nodes, as ``op_type 'name'``."""


@dataclass(frozen=True)
class Report:
    """The result of :func:`check`. ``str(report)`` is the output of ``pliant check``."""

    findings: list[Finding]
    """The problems that prevent compilation. Empty if there are none."""
    operators: dict[str, int]
    """The number of occurrences of each operator."""
    text: str = field(repr=False)
    """The whole report as text."""
    reduced: list[Path] = field(default_factory=list)
    """The reduced models for individual findings, if they were requested."""

    @property
    def ok(self) -> bool:
        """Whether nothing prevents the compilation of the model."""
        return not self.findings

    def __str__(self) -> str:
        return self.text


def check(
    model: Source | Any,
    reduce: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    *,
    allow_specialization: bool = False,
    strict: bool = False,
) -> Report:
    """Reports everything that prevents the compilation of a model: unsupported operators,
    attributes and element types with their nodes, and violations of ONNX's rules.

    Nodes after a failing node are checked as far as the file declares the types of their inputs. ``reduce`` may be a directory,
    into which a minimal model is written for each finding. A declared symbol for which the model requires a fixed size is a
    finding. With ``allow_specialization=True``, it is only a warning in the text. With ``strict=True``, violations of the ONNX
    specification that ONNX Runtime tolerates are findings, too; otherwise they are warnings in the text.

    Raises ``CompileError`` if the file cannot be read, is not an ONNX model or exceeds a limit.
    """
    found, counts, text, files = _core.check_onnx(source_of(model), reduce, _limits(limits), allow_specialization, strict)
    return Report([Finding(*f) for f in found], counts, text, [Path(f) for f in files])


def operators() -> list[str]:
    """Returns the operators that can be imported. Operators outside ONNX's own domain are listed
    with their domain. ``docs/reference/onnx-operators.md`` lists them with the supported
    versions."""
    return sorted(f"{domain}.{name}" if domain else name for domain, name in _core.onnx_operators())


def source_of(model: Source | _core.OnnxFile | Any) -> str | bytes | _core.OnnxFile:
    """Converts a model to the input of the importer: a path, bytes or a decoded file.

    Raises ``TypeError`` for other objects.
    """
    if isinstance(model, _core.OnnxFile):
        return model
    if isinstance(model, bytes | bytearray | memoryview):
        return bytes(model)
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return data
    raise TypeError(f"the model must be a path, bytes or an onnx.ModelProto, got {type(model).__name__}")
