"""Converts the nodes of a graph in order, each with the converter of its operator."""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.fx

from pliant import relax
from pliant._core import relax as _relax
from pliant.error import CompileError, PliantError, UnsupportedError
from pliant.frontend.torch.complex_numbers import Complex, convert_complex, is_complex_call, to_pairs
from pliant.frontend.torch.function_importer import FunctionImporter, Value, bind_arguments
from pliant.frontend.torch.host_calls import call_in_torch
from pliant.frontend.torch.ops import converter_of, is_supported
from pliant.frontend.torch.symbolic_floats import float_scalar

IGNORED = frozenset(
    {
        "aten._assert_tensor_metadata.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
    }
)
"""Operators without results that only state what torch has checked or inferred."""


NO_CONVERTER = "there is no conversion of this operator"


def is_missing(node: torch.fx.Node) -> bool:
    """Whether a node has an operator without a converter. Nodes that compute sizes need none, since their values are symbolic."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    if isinstance(node.meta.get("val"), int | torch.SymInt | torch.SymBool | torch.SymFloat):
        return False
    return str(node.target) not in IGNORED and not is_supported(node.target)


class Failed:
    """The value of a node that could not be converted. Nodes that read it are skipped."""


FAILED = Failed()


def import_nodes(cx: FunctionImporter, module: torch.fx.GraphModule) -> list[Value]:
    """Converts all nodes of a graph except its placeholders, whose values ``cx.values`` has.

    Returns the values of the output node. Records unsupported nodes in ``cx.problems``; the results that depend on them are
    ``FAILED``.
    """
    cx.module = module
    cx.begin()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            results = node.args[0]
            values = [cx.argument(r) for r in (results if isinstance(results, list | tuple) else [results])]
            return [to_pairs(cx, v) if isinstance(v, Complex) else v for v in values]
        if any(isinstance(cx.values[n], Failed) for n in node.all_input_nodes):
            cx.values[node] = FAILED
            if is_missing(node):
                cx.problems.add(node, NO_CONVERTER)
            continue
        cx.node = node
        try:
            cx.values[node] = _node_value(cx, node)
        except UnsupportedError as error:
            cx.problems.add(node, str(error))
            cx.values[node] = FAILED
        except PliantError as error:
            raise CompileError(f"{node.target}: {error}\n  at node {node.format_node()}") from error
    raise CompileError("the graph has no output node")


def _node_value(cx: FunctionImporter, node: torch.fx.Node) -> Value:
    meta = node.meta.get("val")
    if node.op == "get_attr":
        return _attribute(cx, node)
    if node.op != "call_function":
        raise UnsupportedError(f"nodes of kind {node.op} are not supported; export the model with torch.export")
    if node.target is operator.getitem:
        sequence, index = node.args
        return cx.argument(sequence)[index]
    if isinstance(meta, torch.SymInt | torch.SymBool) and not cx.sizes.undefined(meta):
        return cx.sizes.convert(meta)
    if isinstance(meta, torch.SymFloat) and not isinstance(node.target, torch._ops.OpOverload):
        return float_scalar(cx, meta)
    if isinstance(meta, bool | int | float):
        return meta
    name = str(node.target)
    if name in IGNORED:
        return None
    try:
        return cx.conform(_converted(cx, node), meta)
    except UnsupportedError:
        if not cx.run_unsupported_in_torch or not _runs_in_torch(node.target):
            raise
        cx.islands.append(node)
        is_mutable = isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
        return cx.conform(call_in_torch(cx, node, pure=not is_mutable), meta)


def _runs_in_torch(target: Any) -> bool:
    """Whether torch can run a node by itself: operators, and the functional forms of custom operators that mutate inputs."""
    return isinstance(target, torch._ops.OpOverload) or str(target).startswith("auto_functionalized")


def _converted(cx: FunctionImporter, node: torch.fx.Node) -> Value:
    """The result of the converter of a node."""
    convert = converter_of(node.target)
    if isinstance(node.target, torch._ops.OpOverload):
        args, kwargs = bind_arguments(cx, node)
        if is_complex_call((args, kwargs), node.meta.get("val")):
            return convert_complex(cx, str(node.target), convert, args, kwargs)
    else:
        args, kwargs = cx.argument(node.args), cx.argument(node.kwargs)
    if convert is None:
        raise UnsupportedError(NO_CONVERTER)
    return convert(cx, *args, **kwargs)


def _attribute(cx: FunctionImporter, node: torch.fx.Node) -> Value:
    """The value of an attribute of the graph module: a tensor as a constant, or a nested graph module."""
    value: Any = cx.module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return cx.constant(value) if isinstance(value, torch.Tensor) else value


def result_expr(values: list[Value]) -> Any:
    """A tuple expression of results. Numbers and sizes become scalars."""
    return relax.Tuple([v if isinstance(v, _relax.Expr) else _relax.PrimValue(v) for v in values])
