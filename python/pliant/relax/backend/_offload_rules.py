"""Rules by which operators are offloaded to kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pliant import _core
from pliant.relax.backend.pattern_registry import PatternCheckContext, fusion_row
from pliant.relax.dpl import DFPattern


class OffloadRule(NamedTuple):
    """A row of the table of offload rules."""

    name: str
    pass_name: str
    kernel: str
    doc: str


def register_offload_rule(
    name: str,
    pattern: DFPattern,
    kernel: str | Callable[..., None],
    inputs: Sequence[DFPattern],
    *,
    check: Callable[[PatternCheckContext], bool] | None = None,
    doc: str = "",
) -> None:
    """Adds a rule: each match of ``pattern`` becomes a call of ``kernel``.

    ``kernel`` is a function in destination-passing style, or the name of a registered one. It takes the tensors that the
    patterns ``inputs`` matched, in that order, and writes the result into its last argument. ``inputs`` are parts of
    ``pattern``. ``check(context)`` refuses matches. Rules run in the pass ``OffloadKernels``; a rule that is registered later is
    tried earlier, and all are tried before those of Pliant. A rule of the same name is replaced.

    Raises ``ValueError`` if Pliant has a rule of that name or an input is no part of the pattern.
    """
    parts = {f"input{i}": part for i, part in enumerate(inputs)}
    row = fusion_row((name, pattern, parts, check))
    _core.transform.register_offload_rule(row, [part.node for part in inputs], kernel, doc)


def remove_offload_rule(name: str) -> bool:
    """Removes a rule that was added; returns whether there was one of that name."""
    return _core.transform.remove_offload_rule(name)


def offload_rules() -> list[OffloadRule]:
    """All rules, in the order in which they are tried."""
    return [OffloadRule(*row) for row in _core.transform.offload_rules()]
