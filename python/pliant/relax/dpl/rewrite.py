"""Rewriting functions with patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import IRModule
from pliant.relax.dpl.context import PatternContext
from pliant.relax.dpl.pattern import DFPattern, _matchings, _pattern

if TYPE_CHECKING:
    from pliant._core.relax import Expr, Function

    Callback = Callable[[Expr, dict[DFPattern, Expr]], Expr]


def rewrite_call(pattern: DFPattern, rewriter: Callback, func: Function) -> Function:
    """Replaces what a pattern matches by what ``rewriter(expr, matchings)`` returns, until nothing matches that it replaces.

    Returning ``expr`` itself leaves a match alone. A rule that rewrites its own results without end raises ``ValueError``.
    """
    return PatternMatchingRewriter.from_pattern(pattern, rewriter)(func)


def rewrite_bindings(
    ctx: PatternContext, rewriter: Callable[[dict[DFPattern, Expr], dict[Expr, Expr]], Mapping[Any, Any]], func: Function
) -> Function:
    """Replaces what a context matches in dataflow blocks: ``rewriter(matchings, bindings)`` returns the values that variables
    have from now on."""

    def call(found: list[Any], bindings: dict[Any, Any]) -> Any:
        made = rewriter(_matchings(found), bindings)
        return None if made is None else dict(made)

    return _core.relax.pattern_rewrite_bindings(*ctx._parts(), call, func)


class PatternMatchingRewriter:
    """Rewrite rules. ``a | b`` tries the rules of ``a`` first; call it with a function or a module."""

    def __init__(self, rules: list[tuple[DFPattern, Callback | None, Any]]) -> None:
        self._rules = rules

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Callback) -> PatternMatchingRewriter:
        """The rule that replaces what a pattern matches by what ``func(expr, matchings)`` returns."""
        return PatternMatchingRewriter([(_pattern(pattern), func, None)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """The rule of a module's functions ``pattern`` and ``replacement``."""
        for name in ("pattern", "replacement"):
            if name not in mod:
                raise ValueError(f"a rewriter has a function '{name}', and this module has none")
        rule = _core.relax.TemplateRule(mod["pattern"], mod["replacement"])
        return PatternMatchingRewriter([(DFPattern(rule.pattern), None, rule)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self._rules, *other._rules])

    @property
    def pattern(self) -> DFPattern:
        """What the first rule looks for."""
        return self._rules[0][0]

    def __call__(self, obj: Any) -> Any:
        if isinstance(obj, IRModule):
            out = obj.clone()
            for var, func in obj.functions_items():
                if isinstance(func, _core.relax.Function):
                    out.update_func(var, self(func))
            return out
        if all(rule is not None for _, _, rule in self._rules):
            return _core.relax.TemplateRule.apply([rule for _, _, rule in self._rules], obj)
        if any(rule is not None for _, _, rule in self._rules):
            return self._alternate(obj)
        return _core.relax.pattern_rewrite_calls([p.node for p, _, _ in self._rules], self._answer, obj)

    def _answer(self, rule: int, expr: Any, found: list[Any]) -> Any:
        callback = self._rules[rule][1]
        assert callback is not None
        return callback(expr, _matchings(found))

    def _alternate(self, obj: Any) -> Any:
        """Rules of both kinds: each rule alone in turns, until none changes anything."""
        for _ in range(64):
            before = obj
            for one in self._rules:
                obj = PatternMatchingRewriter([one])(obj)
            if obj is before:
                return obj
        raise ValueError("the rewrite rules do not end: 64 turns over all of them still change the function")


ExprPatternRewriter = PatternMatchingRewriter
