"""The backend of ``torch.compile``: ``torch.compile(model, backend="pliant")``.

AOTAutograd turns a graph into functional ones, for inference or for the forward and backward pass. Each is imported and compiled
once, with a symbol for each dynamic dim. Operators that Pliant does not support run in torch, which a warning reports once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from pliant import relax
from pliant._core import Model
from pliant._core import relax as _relax
from pliant.frontend.torch.decompositions import all_decompositions
from pliant.frontend.torch.exported_program import to_dataflow
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.graph_import import import_nodes, result_expr
from pliant.frontend.torch.ops import is_supported
from pliant.frontend.torch.symbolic_sizes import SymbolicSizes
from pliant.frontend.torch.torch_model import as_tensor, shared
from pliant.frontend.torch.unsupported import Problems


@dataclass
class Statistics:
    """What the backend has done in this process."""

    compilations: int = 0
    """The number of graphs that were compiled."""
    islands: int = 0
    """The number of nodes that run in torch."""


statistics = Statistics()
"""The statistics of this process."""

_reported: set[str] = set()


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's decompositions of the operators that the table lacks."""
    return {target: rule for target, rule in all_decompositions().items() if not is_supported(target)}


def pliant(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: dict[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo for inference or training. ``options`` are those of ``pliant.compile``.

    Raises ``ValueError`` for a ``mode``, which only inductor has.
    """
    from torch._dynamo.backends.common import aot_autograd

    if mode not in (None, "default"):
        raise ValueError(f"the backend pliant has no mode {mode!r}: pass options of pliant.compile, as in options={{'threads': 1}}")
    settings = dict(options or {})

    def compiler(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        with unset_fake_temporarily():  # Constants are real tensors.
            return compile_graph(graph, settings)

    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler, decompositions=decompositions())
    return backend(module, example_inputs)  # type: ignore[no-any-return]


def compile_graph(graph: torch.fx.GraphModule, options: dict[str, Any]) -> Callable[..., Any]:
    """Compiles a functional graph. The result takes its arguments in a list, which it clears, and returns a list of results."""
    from pliant._model import compile_module

    builder = relax.BlockBuilder()
    cx = FunctionImporter(builder, SymbolicSizes(), Problems())
    cx.run_unsupported_in_torch = True
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    params = [_parameter(cx, n) for n in placeholders]
    used = [i for i, p in enumerate(params) if p is not None]
    with builder.function("main", [params[i] for i in used], attrs={"fresh_results": True}):
        values = import_nodes(cx, graph)
        cx.problems.raise_if_any()
        plan, results = _results(graph, placeholders, values)
        builder.emit_func_output(builder.emit(result_expr(results)))
    statistics.compilations += 1
    _report_islands(cx)
    model = Model(compile_module(to_dataflow(builder.get()), None, dict(options)))
    inputs = [(i, placeholders[i].name, _is_complex(placeholders[i])) for i in used]
    return _boxed(model, inputs, plan)


def _parameter(cx: FunctionImporter, node: torch.fx.Node) -> Any:
    """The parameter for a placeholder, or ``None`` for one that is neither a tensor nor a size."""
    meta = node.meta.get("val")
    if isinstance(meta, torch.Tensor):
        return cx.tensor_parameter(node)
    if isinstance(meta, torch.SymInt):
        cx.sizes.define(meta)
        cx.values[node] = cx.sizes.convert(meta)
        return relax.Var(node.name, _relax.PrimStructInfo(value=cx.values[node]))
    cx.values[node] = meta
    return None


def _is_complex(node: Any) -> bool:
    meta = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(meta, torch.Tensor) and meta.is_complex()


Source = tuple[str, Any]
"""Where a result comes from: ``("argument", i)``, ``("result", i)``, ``("constant", value)``, or ``("complex", i)`` for a complex
result, which the program returns as pairs of numbers."""


def _results(graph: torch.fx.GraphModule, placeholders: list[torch.fx.Node], values: list[Any]) -> tuple[list[Source], list[Any]]:
    """Results that are arguments are returned as they are, so that no copy of them is made."""
    (output,) = (n for n in graph.graph.nodes if n.op == "output")
    positions = {node: i for i, node in enumerate(placeholders)}
    plan: list[Source] = []
    results: list[Any] = []
    for node, value in zip(output.args[0], values, strict=True):
        if node in positions:
            plan.append(("argument", positions[node]))
        elif value is None or isinstance(value, bool | int | float):
            plan.append(("constant", value))
        else:
            plan.append(("complex" if _is_complex(node) else "result", len(results)))
            results.append(value)
    return plan, results


def _boxed(model: Model, inputs: list[tuple[int, str, bool]], plan: list[Source]) -> Callable[..., Any]:
    """The function that runs a model. ``inputs`` are its arguments: position, name, and whether it is complex."""

    def run(arguments: list[Any]) -> list[Any]:
        values = [shared(arguments[i], name, is_complex) for i, name, is_complex in inputs]
        kept = {i: arguments[i] for kind, i in plan if kind == "argument"}
        arguments.clear()
        outputs = model(*values)
        results = []
        for kind, source in plan:
            if kind == "argument":
                results.append(kept[source])
            elif kind == "constant":
                results.append(source)
            else:
                results.append(as_tensor(outputs[source], kind == "complex"))
        return results

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _report_islands(cx: FunctionImporter) -> None:
    """Warns of operators that run in torch, once for each operator."""
    statistics.islands += len(cx.islands)
    new = sorted({str(n.target) for n in cx.islands} - _reported)
    if new:
        _reported.update(new)
        warnings.warn(f"Pliant does not support these operators, which run in torch: {', '.join(new)}", stacklevel=2)
