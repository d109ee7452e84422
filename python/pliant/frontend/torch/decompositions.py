"""Makes exported programs functional, and decomposes the operators that the table lacks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import torch
import torch.fx
from torch.export import ExportedProgram

from pliant.error import CompileError
from pliant.frontend.torch.graph_import import is_missing
from pliant.frontend.torch.recurrent_shapes import symbolic_steps

MAX_ROUNDS = 4
"""The greatest number of times that a program is decomposed: results of decompositions may need decompositions, too."""


@lru_cache(maxsize=1)
def all_decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's decompositions of all operators: those of the core ATen operator set take precedence."""
    from torch._decomp import decomposition_table

    table: dict[Any, Callable[..., Any]] = dict(decomposition_table)
    table.update(torch.export.default_decompositions().items())
    return table


def missing_operators(module: torch.fx.GraphModule) -> set[Any]:
    """The operators of a graph module and its nested modules that the table lacks."""
    return {node.target for graph in nested_modules(module) for node in graph.graph.nodes if is_missing(node)}


def nested_modules(module: torch.fx.GraphModule) -> Iterable[torch.fx.GraphModule]:
    """A graph module and the graph modules in it."""
    return (m for m in module.modules() if isinstance(m, torch.fx.GraphModule))


def decomposition_of(target: Any) -> Callable[..., Any] | None:
    """torch's decomposition of one operator, or ``None``."""
    found = all_decompositions().get(target)
    if found is None and target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
        return target.decompose  # type: ignore[no-any-return]
    return found


def decompositions_of(targets: Iterable[Any]) -> dict[Any, Callable[..., Any]]:
    """The decompositions of some operators. Operators without one are left out."""
    found = {target: decomposition_of(target) for target in targets}
    return {target: rule for target, rule in found.items() if rule is not None}


def prepare(program: ExportedProgram) -> ExportedProgram:
    """Returns an equal program without in-place operators, whose operators are in the table as far as torch can decompose them.

    Raises ``CompileError`` with torch's reason if torch cannot make the program functional.
    """
    with warnings.catch_warnings(), symbolic_steps():
        warnings.simplefilter("ignore")
        program = _decomposed(program, decompositions_of(_functional(missing_operators(program.graph_module))))
        for _ in range(MAX_ROUNDS):
            table = decompositions_of(missing_operators(program.graph_module))
            if not table:
                break
            program = _decomposed(program, table)
    return program


def _decomposed(program: ExportedProgram, table: dict[Any, Callable[..., Any]]) -> ExportedProgram:
    try:
        return program.run_decompositions(table)
    except Exception as error:
        raise CompileError(f"torch cannot decompose the exported program (run_decompositions): {error}") from error


def _functional(targets: Iterable[Any]) -> Iterable[Any]:
    """Leaves out in-place operators and views, which the first round replaces."""
    return (t for t in targets if not t._schema.is_mutable and not any(a.alias_info for a in t._schema.returns))
