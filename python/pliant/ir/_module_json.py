"""Modules, functions and parts of functions as JSON. The JSON contains a script, which is parsed again on loading."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pliant import _core
from pliant._core import IRModule, PrimExpr, PrimFunc

_FORMAT = "pliant-ir"
_VERSION = 1
_relax = _core.relax


def _holder(node: Any, params: list[Any], body: Any) -> IRModule:
    """Creates a module with a function that contains a node. The first parameter is a shape that defines its size variables."""
    sizes = dict.fromkeys(_size_variables(node))
    for param in params:
        sizes.update(dict.fromkeys(_relax.struct_info_vars(param.struct_info, False)))
    shape = _relax.Var("sizes", _relax.ShapeStructInfo(list(sizes)))
    return IRModule({"main": _relax.Function([shape, *params], body, _relax.ObjectStructInfo(), None)})


def _size_variables(node: Any) -> list[Any]:
    if isinstance(node, _relax.StructInfo):
        return _relax.struct_info_vars(node, False)
    if isinstance(node, PrimExpr):
        return _core.tir_free_vars(node)
    if isinstance(node, _relax.ShapeExpr):
        return _relax.struct_info_vars(_relax.ShapeStructInfo(list(node.values)), False)
    if isinstance(node, _relax.MatchCast):
        return _relax.struct_info_vars(node.struct_info, False)
    if isinstance(node, _relax.Call):
        return [var for info in node.sinfo_args for var in _relax.struct_info_vars(info, False)]
    return []


def _free(node: Any) -> list[Any]:
    from pliant.relax.analysis import free_vars

    return list(free_vars(node))


def _shape_variables(info: Any) -> list[Any]:
    """Returns the variables in a type that are shapes of tensors."""
    if isinstance(info, _relax.TupleStructInfo):
        return [var for field in info.fields for var in _shape_variables(field)]
    shape = getattr(info, "shape", None)
    return [shape] if isinstance(shape, _relax.Var) else []


def _hold_type(info: Any) -> IRModule:
    params = dict.fromkeys(_shape_variables(info))
    return _holder(info, [*params, _relax.Var("value", info)], _relax.Tuple([]))


def _hold_var(var: Any) -> IRModule:
    return _holder(var, [var], _relax.Tuple([]))


def _hold_expr(expr: Any) -> IRModule:
    var = _relax.Var("value", expr.struct_info_ or _relax.ObjectStructInfo())
    return _holder(expr, _free(expr), _relax.SeqExpr([_relax.BindingBlock([_relax.VarBinding(var, expr)])], var))


def _hold_binding(binding: Any) -> IRModule:
    return _hold_block(_relax.BindingBlock([binding]))


def _hold_block(block: Any) -> IRModule:
    free: dict[Any, None] = {}
    bound: list[Any] = []
    for binding in block.bindings:
        free.update({var: None for var in _free(binding.value) if not any(var.same_as(b) for b in bound)})
        bound.append(binding.var)
    result = [var for var in bound if not isinstance(var, _relax.DataflowVar)]
    return _holder(block.bindings[0], list(free), _relax.SeqExpr([block], _relax.Tuple(result)))


def _hold_size(expr: Any) -> IRModule:
    return _hold_expr(_relax.PrimValue(expr))


def _first_binding(module: Any) -> Any:
    return module["main"].body.blocks[0].bindings[0]


def _result(module: Any) -> Any:
    body = module["main"].body
    return body.blocks[-1].bindings[-1].value if body.blocks else body.body


# For each kind of node: its class, the module that contains such a node, and the node of such a module.
_KINDS: dict[str, tuple[Any, Callable[[Any], IRModule], Callable[[Any], Any]]] = {
    "module": (IRModule, lambda m: m, lambda m: m),
    "function": (_relax.Function, lambda f: IRModule({"main": f}), lambda m: next(iter(m.functions.values()))),
    "prim_func": (PrimFunc, lambda f: IRModule({"main": f}), lambda m: next(iter(m.functions.values()))),
    "type": (_relax.StructInfo, _hold_type, lambda m: m["main"].params[-1].struct_info),
    "var": (_relax.Var, _hold_var, lambda m: m["main"].params[1]),
    "expr": (_relax.Expr, _hold_expr, _result),
    "binding": (_relax.Binding, _hold_binding, _first_binding),
    "block": (_relax.BindingBlock, _hold_block, lambda m: m["main"].body.blocks[0]),
    "size": (PrimExpr, _hold_size, lambda m: _result(m).value),
}


def save_json(node: Any) -> str:
    """Converts a module, a function, an expression, a type, a binding or a block to JSON text, constants included.
    :func:`load_json` reads it. Variables that the node does not define are new variables after loading.

    Raises ``TypeError`` for other objects.
    """
    kind = next((name for name, (cls, _, _) in _KINDS.items() if isinstance(node, cls)), None)
    if kind is None:
        raise TypeError(f"save_json takes a module or a part of one, not {type(node).__name__}")
    module = _KINDS[kind][1](node)
    return json.dumps({"format": _FORMAT, "version": _VERSION, "kind": kind, "script": module.script(show_meta=True)})


def load_json(json_str: str) -> Any:
    """Loads a module or a part of one from text that :func:`save_json` wrote.

    Raises ``ValueError`` for other text or another version of the format, and ``ScriptError`` if
    the contained script is not valid.
    """
    try:
        data = json.loads(json_str)
    except json.JSONDecodeError as error:
        raise ValueError(f"load_json: the text is not valid JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("script"), str):
        raise ValueError("load_json: the JSON was not written by save_json (TVM's own JSON is another format)")
    if data.get("version") != _VERSION or data.get("kind") not in _KINDS:
        raise ValueError(f"load_json: the format has version {data.get('version')}, but this version of Pliant reads version {_VERSION}")
    from pliant.script import from_source

    module: Any = from_source(data["script"], check_well_formed=False)
    return _KINDS[data["kind"]][2](module)


def reduce_to_json(node: IRModule | PrimFunc | _core.relax.Function) -> tuple[Any, ...]:
    """Describes a module or function for ``pickle``: it is loaded from JSON."""
    return load_json, (save_json(node),)
