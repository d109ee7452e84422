"""Higher-order operators: branches and loops over nested graphs, which become functions of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from pliant import relax
from pliant._core import PrimExpr
from pliant._core import relax as _relax
from pliant.error import UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.symbolic_sizes import SymbolicSizes
from pliant.frontend.torch.ops.unary import Converter

Results = Callable[[FunctionImporter, list[Any], list[Any]], Any]
"""The result expression of a nested function, from its importer, its parameters and the values of the graph's output."""


def nested_function(cx: FunctionImporter, module: torch.fx.GraphModule, name: str, results: Results) -> Any:
    """Imports a nested graph as a private function, and returns its global variable. Its parameters are those of the graph."""
    from pliant.frontend.torch.graph_import import Failed, import_nodes

    builder = relax.BlockBuilder(cx.builder.get())
    inner = FunctionImporter(builder, SymbolicSizes(cx.sizes.names), cx.problems)
    inner.run_unsupported_in_torch = cx.run_unsupported_in_torch
    params = [_parameter(inner, n) for n in module.graph.nodes if n.op == "placeholder"]
    with builder.function(name, params, private=True):
        values = import_nodes(inner, module)
        if any(isinstance(v, Failed) for v in values):
            raise UnsupportedError("its nested graph contains unsupported operators")
        builder.emit_func_output(builder.emit(results(inner, params, values)))
    done = builder.get()
    for variable, function in done.items():
        if variable.name_hint != name and cx.builder.get().get(variable.name_hint) is None:
            cx.builder.add_func(function, variable.name_hint)
    return cx.builder.add_func(done[name], name)


def _parameter(cx: FunctionImporter, node: torch.fx.Node) -> Any:
    meta = node.meta.get("val")
    if isinstance(meta, torch.Tensor) and not meta.is_complex():
        return cx.tensor_parameter(node)
    if isinstance(meta, torch.SymInt):
        cx.sizes.define(meta)
        cx.values[node] = cx.sizes.convert(meta)
        return relax.Var(node.name, _relax.PrimStructInfo(value=cx.values[node]))
    raise UnsupportedError("its nested graph has an input that is neither a real tensor nor a size")


def _operand(value: Any) -> Any:
    return value if isinstance(value, _relax.Expr) else _relax.PrimValue(value)


def _tuple(cx: FunctionImporter, _: list[Any], values: list[Any]) -> Any:
    return relax.Tuple([_operand(v) for v in values])


def _condition(cx: FunctionImporter, value: Any) -> Any:
    """A condition as a bool scalar."""
    if isinstance(value, PrimExpr | bool):
        return cx.tensor(value, "bool")
    return cx.ops.reshape(cx.cast(value, "bool"), [])


def cond(cx: FunctionImporter, predicate: Any, true_graph: Any, false_graph: Any, operands: Sequence[Any] = ()) -> Any:
    """A branch: both graphs become functions of the operands."""
    args = [_operand(v) for v in operands]
    calls = []
    for graph, name in ((true_graph, "true_branch"), (false_graph, "false_branch")):
        function = nested_function(cx, graph, cx.fresh_function_name(name), _tuple)
        calls.append(_relax.Call(function, args))
    return cx.fields(cx.emit(relax.If(_condition(cx, predicate), *calls)))


def while_loop(cx: FunctionImporter, condition: Any, body: Any, carried: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    """A loop. Inputs that do not change are part of its state."""
    state = [_operand(v) for v in (*carried, *additional)]
    if any(not isinstance(v.struct_info, _relax.TensorStructInfo) for v in state[: len(carried)]):
        raise UnsupportedError("loops that carry numbers are not supported: carry a tensor")

    def test(inner: FunctionImporter, params: list[Any], values: list[Any]) -> Any:
        return _condition(inner, values[0])

    def step(inner: FunctionImporter, params: list[Any], values: list[Any]) -> Any:
        return relax.Tuple([*(_operand(v) for v in values), *params[len(values) :]])

    functions = [
        nested_function(cx, condition, cx.fresh_function_name("loop_condition"), test),
        nested_function(cx, body, cx.fresh_function_name("loop_body"), step),
    ]
    return cx.fields(cx.emit(relax.op.while_loop(*functions, *state)))[: len(carried)]


TABLE: dict[str, Converter] = {
    "higher_order.cond": cond,
    "higher_order.while_loop": while_loop,
}
"""The converters of this family."""
