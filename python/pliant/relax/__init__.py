"""The graph level (Relax): expressions, struct infos, the block builder, and functions to build and
run programs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax import _expr_methods as _expr_methods
from pliant.relax.block_builder import BlockBuilder, te_tensor
from pliant.relax.op import call_dps_packed, call_kernel, call_packed, call_pure_packed, call_tir
from pliant.relax.op._calls import call_tir_inplace, call_tir_with_grad

if TYPE_CHECKING:
    from pliant._core.relax import (
        Binding,
        BindingBlock,
        Call,
        Constant,
        DataflowBlock,
        DataflowVar,
        DataTypeImm,
        Expr,
        ExternFunc,
        FuncStructInfo,
        Function,
        GlobalVar,
        If,
        MatchCast,
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
        VarBinding,
    )
    from pliant.relax import analysis, backend, dpl, expr_functor, frontend, ir, op, pipeline, training, transform, utils, vm
    from pliant.relax.binding_rewrite import DataflowBlockRewrite
    from pliant.relax.expr_functor import ExprFunctor, PyExprMutator, PyExprVisitor
    from pliant.relax.backend import register_codegen
    from pliant.relax.pipeline import get_pipeline, register_pipeline
    from pliant.relax.vm import ExecBuilder, Executable, VirtualMachine, VMInstrumentReturnKind, build

_relax = _core.relax
_CLASSES = [
    "Binding",
    "BindingBlock",
    "Call",
    "Constant",
    "DataTypeImm",
    "DataflowBlock",
    "DataflowVar",
    "Expr",
    "ExternFunc",
    "FuncStructInfo",
    "Function",
    "GlobalVar",
    "If",
    "MatchCast",
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
    "VarBinding",
]
globals().update({name: getattr(_relax, name) for name in _CLASSES})

# The names of the same types in TVM 0.26.
_ALIASES = {
    "AnyType": "ObjectStructInfo",
    "ObjectType": "ObjectStructInfo",
    "ShapeType": "ShapeStructInfo",
    "TensorType": "TensorStructInfo",
    "TupleType": "TupleStructInfo",
}
globals().update({alias: getattr(_relax, name) for alias, name in _ALIASES.items()})

_SUBMODULES = {
    "analysis",
    "backend",
    "binding_rewrite",
    "block_builder",
    "dpl",
    "exec_builder",
    "expr",
    "expr_functor",
    "frontend",
    "ir",
    "op",
    "pipeline",
    "struct_info",
    "testing",
    "training",
    "transform",
    "ty",
    "utils",
    "vm",
    "vm_build",
}
_LAZY = {
    "MatchShape": "pliant.relax.ty",
    "RuntimeDepShape": "pliant.relax.ty",
    "PrimExpr": "pliant.ir",
    "SourceName": "pliant.ir",
    "Span": "pliant.ir",
    "VDevice": "pliant.ir",
    "ShapeTuple": "pliant.runtime",
    "DynTensorType": "pliant.relax.ty",
    "FuncType": "pliant.relax.ty",
    "PackedFuncType": "pliant.relax.ty",
    "PrimType": "pliant.relax.ty",
    "Type": "pliant.relax.ty",
    "DataflowBlockRewrite": "pliant.relax.binding_rewrite",
    "ExprFunctor": "pliant.relax.expr_functor",
    "PyExprMutator": "pliant.relax.expr_functor",
    "PyExprVisitor": "pliant.relax.expr_functor",
    "ExecBuilder": "pliant.relax.vm",
    "VMInstrumentReturnKind": "pliant.relax.vm",
    "Executable": "pliant.relax.vm",
    "VMExecutable": "pliant.relax.vm",
    "VirtualMachine": "pliant.relax.vm",
    "build": "pliant.relax.vm",
    "get_pipeline": "pliant.relax.pipeline",
    "register_codegen": "pliant.relax.backend",
    "register_pipeline": "pliant.relax.pipeline",
}

__all__ = [
    *_CLASSES,
    *_ALIASES,
    "BlockBuilder",
    "DataflowBlockRewrite",
    "ExecBuilder",
    "Executable",
    "ExprFunctor",
    "PyExprMutator",
    "PyExprVisitor",
    "VMExecutable",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "analysis",
    "backend",
    "build",
    "call_dps_packed",
    "call_kernel",
    "call_packed",
    "call_pure_packed",
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "const",
    "dpl",
    "expr_functor",
    "frontend",
    "extern",
    "get_pipeline",
    "get_shape_of",
    "ir",
    "op",
    "pipeline",
    "register_codegen",
    "register_pipeline",
    "te_tensor",
    "training",
    "transform",
    "utils",
    "vm",
]


def const(value: Any, dtype: str | None = None) -> Constant:
    """Creates a constant from a number, a list or an array. By default, a Python int becomes int32,
    a Python float and a list of floats float32, and a list of ints int64.

    Raises ``DTypeError`` for an unsupported data type.
    """
    return _relax.relax_const(value, dtype)


def get_shape_of(expr: Any) -> Expr:
    """Returns the shape of a tensor: the shape in its type if that is known, otherwise a call that
    computes it at run time."""
    shape = getattr(expr.struct_info, "shape", None)
    return _relax.OpFunction.get("relax.shape_of")(expr) if shape is None else shape


def extern(name: str) -> ExternFunc:
    """Returns a reference to a packed function by its registered name."""
    return _relax.ExternFunc(name)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        value: Any = import_module(f"pliant.relax.{name}")
    elif name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    else:
        from pliant._absent import absent_attribute

        raise absent_attribute(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
