"""Calls of torch from a compiled program: random numbers, and operators that only torch has.

A call refers to a Python function of this process, so a program that contains one cannot be saved for other processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree as pytree

from pliant import nd, relax
from pliant._core import PrimExpr
from pliant._core import relax as _relax
from pliant.frontend.torch.data_types import dtype_name
from pliant.frontend.torch.function_importer import FunctionImporter, Value
from pliant.registry import register_func

_numbers = itertools.count()


def _host_function(target: Any, spec: pytree.TreeSpec, constants: list[Any], dynamic: list[int]) -> Callable[..., Any]:
    """The function that runs an operator: its arguments replace the dynamic ones among the flattened arguments of the node."""

    def run(*values: Any) -> Any:
        flat = list(constants)
        for i, value in zip(dynamic, values, strict=True):
            flat[i] = torch.from_dlpack(value) if hasattr(value, "__dlpack__") else value
        args, kwargs = pytree.tree_unflatten(flat, spec)
        with torch.no_grad():
            result = target(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return _exported(result)
        return [_exported(r) for r in result]

    return run


def _exported(x: torch.Tensor) -> Any:
    return nd.array(x.detach().contiguous())


def call_in_torch(cx: FunctionImporter, node: torch.fx.Node, pure: bool) -> Value:
    """Emits a call that runs the operator of a node in torch. Impure calls keep their order."""
    args, kwargs = cx.argument(node.args), cx.argument(node.kwargs)
    flat, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    dynamic = [i for i, v in enumerate(flat) if isinstance(v, _relax.Expr | PrimExpr)]
    operands = [flat[i] if isinstance(flat[i], _relax.Expr) else _relax.PrimValue(flat[i]) for i in dynamic]
    constants = [None if i in dynamic else v for i, v in enumerate(flat)]
    name = f"pliant.torch.call_{next(_numbers)}"
    register_func(name, _host_function(node.target, spec, constants, dynamic))
    info = _result_type(cx, cx.out)
    call = relax.op.call_pure_packed if pure else relax.op.call_packed
    return cx.emit(call(name, *operands, sinfo_args=info))


def _result_type(cx: FunctionImporter, meta: Any) -> Any:
    if isinstance(meta, list | tuple):
        return relax.TupleStructInfo([_result_type(cx, m) for m in meta])
    dtype = dtype_name(meta.dtype)
    if any(cx.sizes.undefined(d) for d in meta.shape):
        return relax.TensorStructInfo(None, dtype, ndim=meta.ndim)
    return relax.TensorStructInfo([cx.sizes.convert(d) for d in meta.shape], dtype)
