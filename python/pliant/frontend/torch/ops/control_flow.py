"""Higher-order operators: branches and loops over nested graphs, which become functions of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from pliant import relax, tir
from pliant._core import PrimExpr
from pliant._core import relax as _relax
from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import dtype_name
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.symbolic_sizes import SymbolicSizes
from pliant.frontend.torch.ops.unary import Converter
from pliant.tir.op import substitute, undefined_vars

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


def scan(cx: FunctionImporter, graph: Any, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    """A loop over the slices of ``xs``: ``graph`` maps the carried values and one slice of each to new carried values and to one slice
    of each stacked result."""
    return _loop_over_slices(cx, graph, list(init), list(xs), list(additional))


def map_slices(cx: FunctionImporter, graph: Any, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    """A loop over the slices of ``xs`` that carries no values."""
    return _loop_over_slices(cx, graph, [], list(xs), list(additional))


def _loop_over_slices(cx: FunctionImporter, graph: Any, init: list[Any], xs: list[Any], additional: list[Any]) -> Any:
    """Creates a loop that calls ``graph`` with each slice of ``xs`` along axis 0, and stacks its results.

    The state of the loop is the step, the carried values, the stacked results and all other operands. Returns the last carried
    values and the stacked results.
    """
    if any(not cx.is_tensor(v) for v in (*init, *xs, *additional)):
        raise UnsupportedError("loops over slices with operands that are not tensors are not supported")
    combine = nested_function(cx, graph, cx.fresh_function_name("loop_step"), _tuple)
    stacked = [cx.ops.zeros([cx.sizes.convert(d) for d in m.shape], dtype_name(m.dtype)) for m in cx.out[len(init) :]]
    state = [cx.tensor(0, "int64"), *init, *stacked, *xs, *additional]
    firsts = (1, 1 + len(init), 1 + len(init) + len(stacked))

    def test(inner: FunctionImporter, params: list[Any]) -> Any:
        count = inner.shape(params[firsts[2]])[0]
        return inner.ops.less(params[0], inner.tensor(count, "int64"))

    def step(inner: FunctionImporter, params: list[Any]) -> Any:
        carried, results, others = params[1 : firsts[1]], params[firsts[1] : firsts[2]], params[firsts[2] :]
        slices = [inner.ops.take(x, params[0], axis=0) for x in others[: len(xs)]]
        values = inner.fields(inner.emit(_relax.Call(combine, [*carried, *slices, *others[len(xs) :]])))
        position = inner.ops.reshape(params[0], [1])
        new = [
            inner.ops.index_put(old, [position], inner.ops.expand_dims(value, 0))
            for old, value in zip(results, values[len(carried) :], strict=True)
        ]
        following = inner.ops.add(params[0], inner.tensor(1, "int64"))
        return relax.Tuple([following, *values[: len(carried)], *new, *others])

    rules = (("scan_condition", test), ("scan_body", step))
    functions = [_state_function(cx, state, cx.fresh_function_name(name), rule) for name, rule in rules]
    return cx.fields(cx.emit(relax.op.while_loop(*functions, *state)))[1 : firsts[2]]


def _state_function(
    cx: FunctionImporter, state: list[Any], name: str, results: Callable[[FunctionImporter, list[Any]], Any]
) -> Any:
    """A private function of values of the same types, with size variables of its own."""
    builder = relax.BlockBuilder(cx.builder.get())
    inner = FunctionImporter(builder, SymbolicSizes(), cx.problems)
    variables: dict[str, Any] = {}
    params = []
    for k, value in enumerate(state):
        dims = [_renamed(d, variables) for d in cx.shape(value)]
        params.append(relax.Var(f"state_{k}", relax.TensorStructInfo(dims, cx.dtype(value))))
    with builder.function(name, params, private=True):
        builder.emit_func_output(builder.emit(results(inner, params)))
    return cx.builder.add_func(builder.get()[name], name)


def _renamed(size: Any, variables: dict[str, Any]) -> Any:
    """A size with variables of another function."""
    if isinstance(size, int):
        return size
    own = {v: variables.setdefault(v.name, tir.Var(v.name, "int64")) for v in undefined_vars(size)}
    return substitute(size, own)


TABLE: dict[str, Converter] = {
    "higher_order.cond": cond,
    "higher_order.while_loop": while_loop,
    "higher_order.scan": scan,
    "higher_order.map_impl": map_slices,
}
"""The converters of this family."""
