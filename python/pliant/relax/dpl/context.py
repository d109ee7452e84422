"""Contexts: several patterns with constraints on which pattern uses which."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core.relax import Expr, PatternNode
    from pliant.relax.dpl._pattern_base import DFPattern

_local = threading.local()


class PatternContext:
    """Several patterns, with constraints on which pattern uses which. Calls of patterns created
    inside ``with PatternContext()`` belong to the context. ``a >> b`` requires that only ``b`` uses
    ``a``, and ``a ^ b`` requires that ``b`` is one of the users of ``a``.

    With ``incremental``, the context starts with the patterns and constraints of the enclosing
    context.
    """

    def __init__(self, incremental: bool = False) -> None:
        self._patterns: list[DFPattern] = []
        self._edges: list[tuple[DFPattern, DFPattern, int, bool]] = []
        self._shapes: list[list[DFPattern]] = []
        if incremental:
            around = PatternContext.required("incremental=True")
            self._patterns.extend(around._patterns)
            self._edges.extend(around._edges)
            self._shapes.extend(around._shapes)

    @staticmethod
    def current() -> PatternContext | None:
        """Returns the innermost context of this thread, or ``None`` outside of contexts."""
        stack = getattr(_local, "stack", None)
        return stack[-1] if stack else None

    @staticmethod
    def get_current() -> PatternContext:
        """Returns the innermost context of this thread. Raises ``ValueError`` outside of
        contexts."""
        return PatternContext.required("get_current")

    @staticmethod
    def required(what: str) -> PatternContext:
        """Returns the innermost context of this thread. Raises ``ValueError`` outside of contexts,
        with ``what`` in the message."""
        current = PatternContext.current()
        if current is None:
            raise ValueError(f"{what} requires a PatternContext (help: write it inside `with PatternContext() as ctx:`)")
        return current

    def __enter__(self) -> PatternContext:
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _local.stack.pop()

    def _add(self, pattern: DFPattern) -> None:
        self._patterns.append(pattern)

    def _used_by(self, one: DFPattern, other: DFPattern, index: int, only: bool) -> None:
        self._edges.append((one, other, index, only))

    def _same_shape(self, patterns: Sequence[DFPattern]) -> None:
        self._shapes.append(list(patterns))

    def _copy_uses(self, old: Sequence[DFPattern], new: Sequence[DFPattern]) -> None:
        names = dict(zip(old, new, strict=True))
        for one, other, index, only in list(self._edges):
            if one in names and other in names:
                self._edges.append((names[one], names[other], index, only))

    def _parts(self) -> tuple[list[PatternNode], list[tuple[PatternNode, PatternNode, int, bool]], list[list[PatternNode]]]:
        edges = [(one.node, other.node, index, only) for one, other, index, only in self._edges]
        shapes = [[p.node for p in patterns] for patterns in self._shapes]
        return [p.node for p in self._patterns], edges, shapes

    def match_dfb(self, dfb: Any, start_hint: Any = None, must_include_hint: bool = False) -> dict[DFPattern, Expr] | None:
        """Matches all patterns of the context in a dataflow block. Returns a dict from each pattern
        to the expression that it matches, or ``None`` if there is no match. With ``must_include_hint``, a match must contain the
        variable ``start_hint``, which is otherwise ignored.

        Raises ``ValueError`` if the block does not belong to a function.
        """
        from pliant.relax.dpl._pattern_base import _matchings

        found = _core.relax.pattern_match_block(*self._parts(), dfb)
        result = None if found is None else _matchings(found)
        if result is not None and must_include_hint and not any(start_hint.same_as(value) for value in result.values()):
            return None
        return result
