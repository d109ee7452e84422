"""Modules, global variables and structural equality. Instruments of passes are in
:mod:`pliant.ir.instrument`."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from pliant import _core
from pliant._absent import absent_attribute
from pliant._core import IRModule, PrimExpr, Range
from pliant.ir._structural_equality import difference
from pliant.ir._structural_equality import structural_hash as _hash
from pliant.ir._module_infos import CallingConv, DummyGlobalInfo, GlobalInfo, SequentialSpan, VDevice
from pliant.ir.attrs import Attrs, DictAttrs

if TYPE_CHECKING:
    from pliant._core import PrimFunc
    from pliant._core.relax import Expr, StructInfo
    from pliant.ir import instrument, transform
    from pliant.ir._module_json import load_json, save_json

    from pliant.tir.stmt import Stmt

    Comparable: TypeAlias = (
        IRModule | PrimFunc | PrimExpr | Expr | StructInfo | Stmt | Sequence[Any] | Mapping[Any, Any] | int | float
    )



class BaseFunc(ABC):
    """The abstract base of the functions of a module: graph functions and loop functions."""


BaseFunc.register(_core.relax.Function)
BaseFunc.register(_core.PrimFunc)

class Array(ABC):
    """The abstract base of lists and tuples, under TVM's name for sequences of IR. ``Array(items)``
    is a list."""

    def __new__(cls, items: Sequence[Any] = ()) -> Any:
        return list(items)


class Map(ABC):
    """The abstract base of dicts, under TVM's name for mappings of IR. ``Map(items)`` is a dict."""

    def __new__(cls, items: Mapping[Any, Any] | None = None) -> Any:
        return dict(items or {})


for _kind in (list, tuple):
    Array.register(_kind)
Map.register(dict)


class _PrimTypeView(type):
    """The metaclass of ``PrimType``: its instances are those of ``PrimStructInfo``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _core.relax.PrimStructInfo | _AddressType)


class _AddressType:
    """The type of an address or of no value, which graph functions do not have."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    @property
    def var_dtype(self) -> str:
        """Returns the data type of a ``tir.Var`` with this type."""
        return self.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AddressType) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class PrimType(metaclass=_PrimTypeView):
    """The type of a scalar: ``PrimType("int64")`` is ``relax.PrimStructInfo("int64")``. ``"handle"`` and ``"void"`` are types of
    loop functions only."""

    def __new__(cls, dtype: Any) -> Any:
        if str(dtype) in ("handle", "void", ""):
            return _AddressType(str(dtype))
        return _core.relax.PrimStructInfo(dtype)


def _var_dtype(self: Any) -> str:
    """The data type of a ``tir.Var`` with this type."""
    dtype: str = self.dtype
    return dtype


_core.relax.PrimStructInfo.var_dtype = property(_var_dtype)  # type: ignore[attr-defined,misc,assignment]


class PointerType:
    """The type of a variable that holds an address:
    ``tir.Var("p", PointerType(PrimType("float32")))`` is a handle."""

    __slots__ = ("element_type", "storage_scope")

    def __init__(self, element_type: Any, storage_scope: str = "") -> None:
        self.element_type = element_type
        self.storage_scope = storage_scope

    @property
    def var_dtype(self) -> str:
        """Returns the data type of a ``tir.Var`` with this type, which is ``"handle"``."""
        return "handle"


@dataclass(frozen=True)
class SourceName:
    """The name of a source text."""

    name: str


@dataclass(frozen=True)
class Span:
    """A source location. Expressions accept spans and do not keep them."""

    source_name: SourceName
    line: int = 0
    end_line: int = 0
    column: int = 0
    end_column: int = 0


GlobalVar = _core.relax.GlobalVar
RelayExpr = _core.relax.Expr
RelaxExpr = _core.relax.Expr
BaseExpr = _core.relax.Expr
Type = _core.relax.StructInfo
TupleType = _core.relax.TupleStructInfo
Op = _core.relax.OpFunction

__all__ = [
    "Array",
    "Attrs",
    "BaseExpr",
    "BaseFunc",
    "CallingConv",
    "DictAttrs",
    "DummyGlobalInfo",
    "GlobalInfo",
    "GlobalVar",
    "IRModule",
    "Map",
    "Op",
    "PointerType",
    "PrimType",
    "PrimExpr",
    "Range",
    "RelaxExpr",
    "RelayExpr",
    "SequentialSpan",
    "SourceName",
    "Span",
    "TupleType",
    "Type",
    "VDevice",
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "instrument",
    "is_prim_expr",
    "load_json",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]


def __getattr__(name: str) -> Any:
    if name in ("base", "instrument", "module", "transform"):
        return import_module(f"pliant.ir.{name}")
    if name in ("load_json", "save_json"):
        return getattr(import_module("pliant.ir._module_json"), name)
    if name == "FuncType":
        return import_module("pliant.relax.ty").FuncType
    raise absent_attribute(__name__, name)


def structural_equal(lhs: Comparable, rhs: Comparable, map_free_vars: bool = False) -> bool:
    """Whether two objects are equal except for the names of variables. The objects are modules, functions, graph-level
    expressions, struct infos, statements, scalar expressions, and lists and dicts of these. A free variable or buffer is equal
    only to itself unless ``map_free_vars`` is set."""
    return difference(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: Comparable, rhs: Comparable, map_free_vars: bool = False) -> None:
    """Raises ``ValueError`` if two objects differ in more than names. The message describes the first difference and shows the
    lines of both scripts around it. ``map_free_vars`` is as for :func:`structural_equal`."""
    found = difference(lhs, rhs, map_free_vars)
    if found is not None:
        raise ValueError(f"StructuralEqual check failed: {found}{_both_sides(lhs, rhs)}")


def get_first_structural_mismatch(lhs: Comparable, rhs: Comparable, map_free_vars: bool = False) -> str | None:
    """Describes the first difference between two objects, or returns ``None`` if they are equal."""
    return difference(lhs, rhs, map_free_vars)


def is_prim_expr(expr: object) -> bool:
    """Whether an object is a scalar expression: a ``PrimExpr``, or a graph-level scalar."""
    return isinstance(expr, _core.PrimExpr | _core.relax.PrimValue)


def structural_hash(node: Comparable, map_free_vars: bool = False) -> int:
    """Computes a hash that is equal for structurally equal nodes. ``map_free_vars`` is as for
    :func:`structural_equal`."""
    return _hash(node, map_free_vars)


def _script(side: Any) -> str:
    return str(side.script() if isinstance(side, IRModule) else side.script(name="main"))


def _without_names(lines: list[str]) -> list[str]:
    """Returns the lines with defined names replaced by numbers, so that lines that differ only in
    names are equal.
    """
    numbers: dict[str, str] = {}
    for line in lines:
        defined = r"(\w+):" if line.lstrip().startswith("def ") else r"^\s*(\w+)(?=:| =)"
        for name in re.findall(defined, line):
            numbers.setdefault(name, f"%{len(numbers)}")
    return [re.sub(r"(?<![.\w])\w+", lambda m: numbers.get(m[0], m[0]), line) for line in lines]


def _both_sides(lhs: Any, rhs: Any, context: int = 2) -> str:
    """Returns both scripts around the first line in which they differ in more than names."""
    if not (hasattr(lhs, "script") and hasattr(rhs, "script")):
        return ""
    left, right = (_script(side).splitlines() for side in (lhs, rhs))
    pairs = zip_longest(_without_names(left), _without_names(right))
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if at is None:
        return ""
    start = max(at - context, 0)

    def part(title: str, lines: list[str]) -> str:
        shown = lines[start : at + context + 1]
        marked = [("> " if start + i == at else "  ") + line for i, line in enumerate(shown)]
        return f"\n{title} (line {at + 1}):\n" + "\n".join(marked)

    return part("left", left) + part("right", right)
