"""Rules that replace operators by calls of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pliant import _core
from pliant.relax.backend.pattern_registry import PatternCheckContext, fusion_row
from pliant.relax.dpl import DFPattern


class OffloadRule(NamedTuple):
    """An offload rule: its name, the pass that applies it, the kernel or packed function that it
    calls, and its description."""

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
    """Adds an offload rule, which replaces each match of ``pattern`` by a call of ``kernel``.

    ``kernel`` is a packed function in destination-passing style, or the name of a registered packed
    function. Its arguments are the tensors that the patterns ``inputs`` matched, in this order, and
    the tensor into which it writes the result. ``inputs`` are subpatterns of ``pattern``.
    ``check(context)`` may reject matches.

    The pass ``OffloadKernels`` applies the rules. Rules that are registered later are tried first,
    and all of them are tried before the rules of Pliant. A rule with the same name is replaced.

    Raises ``ValueError`` if Pliant has a rule with this name, or if an input is not a subpattern or
    is a call that the pattern matches. Raises ``TypeError`` if ``kernel`` is neither callable nor a
    name.
    """
    parts = {f"input{i}": part for i, part in enumerate(inputs)}
    row = fusion_row((name, pattern, parts, check))
    _core.transform.register_offload_rule(row, [part.node for part in inputs], kernel, doc)


def remove_offload_rule(name: str) -> bool:
    """Removes a registered rule. Returns whether there was a rule with this name."""
    return _core.transform.remove_offload_rule(name)


def offload_rules() -> list[OffloadRule]:
    """Returns all rules, in the order in which they are tried."""
    return [OffloadRule(*row) for row in _core.transform.offload_rules()]
