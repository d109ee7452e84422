"""The types of graph-level values, under the names of 2022 and early 2023.

These types have no sizes. They are views of the types of :mod:`pliant.relax.struct_info`: ``DynTensorType(2, "float32")`` is
``TensorStructInfo(ndim=2, dtype="float32")``. ``expr.checked_type`` is the type of an expression without its sizes.
"""

from __future__ import annotations

from typing import Any

from pliant import _core
from pliant.ir import PrimType, Span

_relax = _core.relax

__all__ = [
    "DynTensorType",
    "FuncType",
    "FunctionType",
    "MatchShape",
    "ObjectType",
    "PackedFuncType",
    "PrimType",
    "RuntimeDepShape",
    "ShapeType",
    "Span",
    "TupleType",
    "Type",
    "find_lca",
    "is_base_of",
]

Type = _relax.StructInfo


class _View(type):
    """The metaclass of other names for a type: instances are those of the type."""

    viewed: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.viewed)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or issubclass(subclass, cls.viewed)


class DynTensorType(metaclass=_View):
    """The type of a tensor, with its rank (-1 if unknown) and data type (``None`` or ``""`` if unknown)."""

    viewed = _relax.TensorStructInfo

    def __new__(cls, ndim: int = -1, dtype: str | None = "float32", span: Any = None) -> Any:
        return _relax.TensorStructInfo(None, dtype or None, ndim=ndim)


class PackedFuncType(metaclass=_View):
    """The type of packed functions: any number of arguments, any result."""

    viewed = _relax.FuncStructInfo

    def __new__(cls) -> Any:
        return _relax.FuncStructInfo.opaque_func()


class FuncType(metaclass=_View):
    """The type of a function, with the types of its parameters and of its result."""

    viewed = _relax.FuncStructInfo

    def __new__(cls, arg_types: Any, ret_type: Any = None, purity: bool = True, *, ret: Any = None) -> Any:
        result = ret_type if ret_type is not None else ret
        return _relax.FuncStructInfo(arg_types, result if result is not None else _relax.ObjectStructInfo(), purity)

    opaque_func = staticmethod(_relax.FuncStructInfo.opaque_func)


FunctionType = FuncType
ObjectType = _relax.ObjectStructInfo
ShapeType = _relax.ShapeStructInfo
TupleType = _relax.TupleStructInfo


def MatchShape(value: Any, pattern: Any, var: Any) -> Any:
    """Creates the binding that checks a shape, under its name of 2022: a ``MatchCast`` of a tensor or shape to the sizes
    ``pattern``."""
    dtype = getattr(value.struct_info, "dtype", None)
    is_shape = isinstance(value.struct_info, _relax.ShapeStructInfo)
    info = _relax.ShapeStructInfo(pattern) if is_shape else _relax.TensorStructInfo(pattern, dtype or None)
    return _relax.MatchCast(var, value, info)


def RuntimeDepShape() -> None:
    """Returns ``None``, the shape of a tensor type whose sizes are known only at run time. TVM had a class of this name in
    2022."""
    return None


def is_base_of(base: Any, derived: Any) -> bool:
    """Whether every value of the type ``derived`` has the type ``base``."""
    from pliant.relax.analysis import BaseCheckResult, struct_info_base_check

    return struct_info_base_check(base, derived) == BaseCheckResult.PASS


def find_lca(lhs: Any, rhs: Any) -> Any:
    """Returns the least common supertype of two types. Raises ``CompileError`` for functions whose parameters differ."""
    from pliant.relax.analysis import struct_info_lca

    return struct_info_lca(lhs, rhs)
