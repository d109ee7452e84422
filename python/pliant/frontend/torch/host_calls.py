"""Calls of torch from a compiled program: random numbers, and operators that only torch has.

A call refers to a Python function of this process, so a program that contains one cannot be saved for other processes.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree as pytree

from pliant import nd, relax
from pliant._core import PrimExpr
from pliant._core import relax as _relax
from pliant.frontend.torch.complex_numbers import Complex, from_pairs, part_type, to_pairs
from pliant.frontend.torch.data_types import dtype_name
from pliant.frontend.torch.function_importer import FunctionImporter, Value
from pliant.registry import register_func

_numbers = itertools.count()
_process = uuid.uuid4().hex
"""Part of the names of functions, so that a program that another process has saved never calls a function of this process."""


def _host_function(
    target: Any, spec: pytree.TreeSpec, constants: list[Any], dynamic: list[tuple[int, bool]]
) -> Callable[..., Any]:
    """The function that runs an operator. Its arguments replace the dynamic ones among the flattened arguments of the node, whose
    positions ``dynamic`` has, and whether they are complex."""

    def run(*values: Any) -> Any:
        flat = list(constants)
        for (i, is_complex), value in zip(dynamic, values, strict=True):
            tensor = torch.from_dlpack(value) if hasattr(value, "__dlpack__") else value
            flat[i] = torch.view_as_complex(tensor) if is_complex else tensor
        args, kwargs = pytree.tree_unflatten(flat, spec)
        with torch.no_grad():
            result = target(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return _exported(result)
        return [_exported(r) for r in result if r is not None]

    return run


def _exported(x: torch.Tensor) -> Any:
    x = x.detach().resolve_conj().resolve_neg()
    return nd.array((torch.view_as_real(x) if x.is_complex() else x).contiguous())


def call_in_torch(cx: FunctionImporter, node: torch.fx.Node, pure: bool) -> Value:
    """Emits a call that runs the operator of a node in torch. Impure calls keep their order."""
    args, kwargs = cx.argument(node.args), cx.argument(node.kwargs)
    flat, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    dynamic = [(i, isinstance(v, Complex)) for i, v in enumerate(flat) if isinstance(v, _relax.Expr | PrimExpr | Complex)]
    operands = [_operand(cx, flat[i]) for i, _ in dynamic]
    constants = [None if isinstance(v, _relax.Expr | PrimExpr | Complex) else v for v in flat]
    name = f"pliant.torch.{_process}.{os.getpid()}.call_{next(_numbers)}"
    register_func(name, _host_function(node.target, spec, constants, dynamic))
    call = relax.op.call_pure_packed if pure else relax.op.call_packed
    return _results(cx, cx.emit(call(name, *operands, sinfo_args=_result_type(cx, cx.out))), cx.out)


def _operand(cx: FunctionImporter, value: Value) -> Any:
    if isinstance(value, Complex):
        return to_pairs(cx, value)
    return value if isinstance(value, _relax.Expr) else _relax.PrimValue(value)


def _results(cx: FunctionImporter, value: Any, meta: Any) -> Value:
    """The values of the results of an operator, of which torch's descriptions may be ``None``."""
    if isinstance(meta, list | tuple):
        fields = iter(cx.fields(value))
        return [None if m is None else _results(cx, next(fields), m) for m in meta]
    return from_pairs(cx, value) if meta.is_complex() else value


def _result_type(cx: FunctionImporter, meta: Any) -> Any:
    if isinstance(meta, list | tuple):
        return relax.TupleStructInfo([_result_type(cx, m) for m in meta if m is not None])
    dtype = dtype_name(part_type(meta.dtype))
    parts = [2] if meta.is_complex() else []
    if any(cx.sizes.undefined(d) for d in meta.shape):
        return relax.TensorStructInfo(None, dtype, ndim=meta.ndim + len(parts))
    return relax.TensorStructInfo([*(cx.sizes.convert(d) for d in meta.shape), *parts], dtype)
