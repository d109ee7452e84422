"""The graph level: expressions, struct infos, the block builder, building and running."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax.block_builder import BlockBuilder, te_tensor
from pliant.relax.op import call_dps_packed, call_pure_packed, call_tir

if TYPE_CHECKING:
    from pliant._core.relax import (
        Binding,
        BindingBlock,
        Call,
        Constant,
        DataflowVar,
        DataTypeImm,
        Expr,
        ExternFunc,
        FuncStructInfo,
        Function,
        GlobalVar,
        If,
        LocalFunction,
        ObjectStructInfo,
        PrimStructInfo,
        PrimValue,
        SeqExpr,
        ShapeExpr,
        ShapeStructInfo,
        StringImm,
        StructInfo,
        TensorStructInfo,
        Tuple,
        TupleGetItem,
        TupleStructInfo,
        Var,
    )
    from pliant.relax import op, transform, vm
    from pliant.relax.vm import ExecBuilder, Executable, VirtualMachine, build

_relax = _core.relax
_CLASSES = [
    "Binding",
    "BindingBlock",
    "Call",
    "Constant",
    "DataTypeImm",
    "DataflowVar",
    "Expr",
    "ExternFunc",
    "FuncStructInfo",
    "Function",
    "GlobalVar",
    "If",
    "LocalFunction",
    "ObjectStructInfo",
    "PrimStructInfo",
    "PrimValue",
    "SeqExpr",
    "ShapeExpr",
    "ShapeStructInfo",
    "StringImm",
    "StructInfo",
    "TensorStructInfo",
    "Tuple",
    "TupleGetItem",
    "TupleStructInfo",
    "Var",
]
globals().update({name: getattr(_relax, name) for name in _CLASSES})

# The names of TVM 0.26 for the same types.
_ALIASES = {
    "AnyType": "ObjectStructInfo",
    "FuncType": "FuncStructInfo",
    "ShapeType": "ShapeStructInfo",
    "TensorType": "TensorStructInfo",
    "TupleType": "TupleStructInfo",
}
globals().update({alias: getattr(_relax, name) for alias, name in _ALIASES.items()})

_SUBMODULES = {"block_builder", "op", "transform", "vm"}
_LAZY = {
    "ExecBuilder": "pliant.relax.vm",
    "Executable": "pliant.relax.vm",
    "VirtualMachine": "pliant.relax.vm",
    "build": "pliant.relax.vm",
}

__all__ = [
    *_CLASSES,
    *_ALIASES,
    "BlockBuilder",
    "ExecBuilder",
    "Executable",
    "VirtualMachine",
    "build",
    "call_dps_packed",
    "call_pure_packed",
    "call_tir",
    "const",
    "extern",
    "op",
    "te_tensor",
    "transform",
    "vm",
]


def const(value: Any, dtype: str | None = None) -> Constant:
    """A constant of a number, a list or an array. Python ints are int32 and floats float32 unless said."""
    return _relax.relax_const(value, dtype)


def extern(name: str) -> ExternFunc:
    """A packed function, by its registered name."""
    return _relax.ExternFunc(name)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        value: Any = import_module(f"pliant.relax.{name}")
    elif name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module 'pliant.relax' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
