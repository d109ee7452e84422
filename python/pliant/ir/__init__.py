"""Modules, global variables, structural equality; instruments of passes in :mod:`pliant.ir.instrument`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from pliant import _core
from pliant._core import IRModule, Range

if TYPE_CHECKING:
    from pliant._core import PrimExpr, PrimFunc
    from pliant._core.relax import Expr, StructInfo
    from pliant.ir import instrument, transform
    from pliant.ir._json import load_json, save_json

    Comparable: TypeAlias = IRModule | PrimFunc | PrimExpr | Expr | StructInfo | Sequence[Any] | int | float

GlobalVar = _core.relax.GlobalVar
Op = _core.relax.OpFunction
_SCALARS = (_core.PrimExpr, int, float)

__all__ = [
    "GlobalVar",
    "IRModule",
    "Op",
    "Range",
    "assert_structural_equal",
    "instrument",
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
        return getattr(import_module("pliant.ir._json"), name)
    raise AttributeError(f"module 'pliant.ir' has no attribute {name!r}")


def structural_equal(lhs: Comparable, rhs: Comparable, map_free_vars: bool = False) -> bool:
    """Whether both are the same up to the names of variables: modules, functions, graph-level expressions, struct infos,
    scalar expressions, and lists of these. Free variables are themselves unless ``map_free_vars`` lets them stand for each other."""
    return _difference(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: Comparable, rhs: Comparable, map_free_vars: bool = False) -> None:
    """Raises ``ValueError`` that tells the first difference, and shows both sides there, unless both are the same up to
    names."""
    difference = _difference(lhs, rhs, map_free_vars)
    if difference is not None:
        raise ValueError(f"StructuralEqual check failed: {difference}{_both_sides(lhs, rhs)}")


def structural_hash(node: IRModule | PrimFunc | Expr, map_free_vars: bool = False) -> int:
    """A hash that is the same for structurally equal functions and modules."""
    return _core.structural_hash(node)


def _difference(lhs: Any, rhs: Any, map_free_vars: bool) -> str | None:
    if isinstance(lhs, list | tuple) and isinstance(rhs, list | tuple):
        return _list_difference(lhs, rhs, map_free_vars)
    if isinstance(lhs, _SCALARS) and isinstance(rhs, _SCALARS):
        return None if _same_scalar(lhs, rhs) else f"{lhs} on the left, {rhs} on the right"
    if isinstance(lhs, _core.relax.StructInfo) and isinstance(rhs, _core.relax.StructInfo):
        return None if lhs == rhs else f"{lhs} on the left, {rhs} on the right"
    if _is_part(lhs) and _is_part(rhs):
        left, right = _core.relax.find_vars(lhs, "free"), _core.relax.find_vars(rhs, "free")
        if len(left) != len(right) or not (map_free_vars or left == right):
            return f"free variables: {_names(left)} on the left, {_names(right)} on the right"
        lhs, rhs = _core.relax.Function(left, lhs), _core.relax.Function(right, rhs)
    return _core.structural_difference(lhs, rhs)


def _list_difference(lhs: Sequence[Any], rhs: Sequence[Any], map_free_vars: bool) -> str | None:
    if len(lhs) != len(rhs):
        return f"{len(lhs)} items on the left, {len(rhs)} on the right"
    for i, (a, b) in enumerate(zip(lhs, rhs, strict=True)):
        difference = _difference(a, b, map_free_vars)
        if difference is not None:
            return f"item {i}: {difference}"
    return None


def _same_scalar(lhs: Any, rhs: Any) -> bool:
    a, b = (side if isinstance(side, _core.PrimExpr) else _core.tir_const(side, None) for side in (lhs, rhs))
    return a.dtype == b.dtype and bool(_core.tir_binary("eq", a, b))


def _is_part(obj: Any) -> bool:
    return isinstance(obj, _core.relax.Expr) and not isinstance(obj, _core.relax.Function)


def _names(variables: list[Any]) -> str:
    return "(" + ", ".join(v.name_hint for v in variables) + ")"


def _both_sides(lhs: Any, rhs: Any, context: int = 2) -> str:
    """Both scripts around the first line in which they differ."""
    if not (hasattr(lhs, "script") and hasattr(rhs, "script")):
        return ""
    left, right = (side.script(name="main").splitlines() for side in (lhs, rhs))
    pairs = zip_longest(left, right)
    at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
    if at is None:
        return ""
    start = max(at - context, 0)

    def part(title: str, lines: list[str]) -> str:
        shown = lines[start : at + context + 1]
        marked = [("> " if start + i == at else "  ") + line for i, line in enumerate(shown)]
        return f"\n{title} (line {at + 1}):\n" + "\n".join(marked)

    return part("left", left) + part("right", right)
