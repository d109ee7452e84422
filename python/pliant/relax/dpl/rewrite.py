"""Rewriting functions with patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import IRModule
from pliant.ir import structural_equal
from pliant.relax.dpl.context import PatternContext
from pliant.relax.dpl._base import DFPattern, _matchings, _of_node, _pattern
from pliant.transform import Pass, PassInfo

if TYPE_CHECKING:
    from pliant._core.relax import Expr, Function

    Callback = Callable[[Expr, dict[DFPattern, Expr]], Expr]

_PARTS = ("pattern", "replacement")


def rewrite_call(pattern: DFPattern, rewriter: Callback, func: Function) -> Function:
    """Replaces what a pattern matches by what ``rewriter(expr, matchings)`` returns, until nothing matches that it replaces.

    A match never reaches over a call that may write into what it reads: a call that works in place, and a call of a graph
    function that may make one. A function that was taken from a module (``mod["main"]``) knows which these are; for one that
    stands alone every call of another graph function may be one.

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
        if made is not None and not isinstance(made, Mapping):
            raise TypeError(f"the rewriter returns a dict from variables to expressions, not {made!r}")
        return None if made is None else dict(made)

    return _core.relax.pattern_rewrite_bindings(*ctx._parts(), call, func)


class _Rule:
    """A pattern, and what makes the replacement: a callback, or a template with the functions that it may call."""

    def __init__(
        self, pattern: DFPattern, callback: Callback | None = None, template: Any = None, module: IRModule | None = None
    ) -> None:
        self.pattern, self.callback, self.template, self.module = pattern, callback, template, module

    @staticmethod
    def of_module(mod: IRModule) -> _Rule:
        template = _core.relax.TemplateRule(mod["pattern"], mod["replacement"])
        return _Rule(_of_node(template.pattern), template=template, module=mod)

    def helpers(self) -> dict[str, Any]:
        """The functions beside ``pattern`` and ``replacement``, by name."""
        named = {} if self.module is None else {v.name_hint: f for v, f in self.module.functions_items()}
        return {name: func for name, func in named.items() if name not in _PARTS}

    def beside(self, taken: Callable[[str], Any]) -> _Rule:
        """The rule with other names for functions where others have theirs; ``taken(name)`` is who has a name."""
        new: dict[str, str] = {}
        for name, func in self.helpers().items():
            other = taken(name)
            if other is None or structural_equal(other, func):
                continue
            free = (f"{name}_{i}" for i in count(1))
            new[name] = next(n for n in free if taken(n) is None and n not in new.values())
        if not new or self.module is None:
            return self
        return _Rule.of_module(self.module.replace_global_vars(new))


class PatternMatchingRewriter(Pass):
    """Rewrite rules, as a pass. ``a | b`` tries the rules of ``a`` first; call it with a module or a function.

    What a replacement calls of its own module comes along into the module that is rewritten.
    """

    def __init__(self, rules: list[_Rule], name: str = "PatternMatchingRewriter") -> None:
        self._rules = rules
        self.info = PassInfo(name)

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Callback) -> PatternMatchingRewriter:
        """The rule that replaces what a pattern matches by what ``func(expr, matchings)`` returns."""
        return PatternMatchingRewriter([_Rule(_pattern(pattern), func)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """The rule of a module's functions ``pattern`` and ``replacement``; ``replacement`` may call the others."""
        for name in _PARTS:
            if name not in mod:
                raise ValueError(f"a rewriter has a function '{name}', and this module has none")
        return PatternMatchingRewriter([_Rule.of_module(mod)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self._rules, *other._rules])

    @property
    def pattern(self) -> DFPattern:
        """What the first rule looks for."""
        return self._rules[0].pattern

    def __call__(self, obj: Any) -> Any:
        if isinstance(obj, IRModule):
            return super().__call__(obj)
        made = self._rewrite(obj)
        called = {} if made is obj else _called(made, self._helpers())
        if called:
            raise ValueError(
                f"the replacement calls '{next(iter(called))}' of the rewriter's module, which a function alone cannot "
                f"take in (help: rewrite the module)"
            )
        return made

    def transform_module(self, mod: IRModule, ctx: Any) -> IRModule:
        """Rewrites the graph functions of a module."""
        rules: list[_Rule] = []
        ours: dict[str, Any] = {}
        for rule in self._rules:
            rules.append(rule.beside(lambda name: ours.get(name, mod.get(name))))
            ours.update(rules[-1].helpers())
        here = PatternMatchingRewriter(rules)
        out, changed, called = mod.clone(), {}, {}
        for var, func in mod.functions_items():
            if isinstance(func, _core.relax.Function):
                made = here._rewrite(func, mod)
                if made is not func:
                    changed[var] = made
                    called.update(_called(made, ours))
        out.update({name: func for name, func in called.items() if name not in mod})
        for var, func in changed.items():
            out.update_func(var, func)
        return out

    def _helpers(self) -> dict[str, Any]:
        return {name: func for rule in self._rules for name, func in rule.helpers().items()}

    def _rewrite(self, func: Any, mod: IRModule | None = None) -> Any:
        """The function with the rules applied; ``mod`` is what it is in, unless it knows that itself."""
        if all(rule.template is not None for rule in self._rules):
            return _core.relax.TemplateRule.apply([rule.template for rule in self._rules], func, mod)
        if any(rule.template is not None for rule in self._rules):
            return self._alternate(func, mod)
        nodes = [rule.pattern.node for rule in self._rules]
        return _core.relax.pattern_rewrite_calls(nodes, self._answer, func, mod)

    def _answer(self, rule: int, expr: Any, found: list[Any]) -> Any:
        callback = self._rules[rule].callback
        assert callback is not None
        return callback(expr, _matchings(found))

    def _alternate(self, func: Any, mod: IRModule | None) -> Any:
        """Rules of both kinds: each rule alone in turns, until none changes anything."""
        for _ in range(64):
            before = func
            for one in self._rules:
                func = PatternMatchingRewriter([one])._rewrite(func, mod)
            if func is before:
                return func
        raise ValueError("the rewrite rules do not end: 64 turns over all of them still change the function")


def _called(func: Any, helpers: Mapping[str, Any]) -> dict[str, Any]:
    """The helpers that a function names, and those that they name."""
    found: dict[str, Any] = {}
    todo = [func]
    while todo:
        one = todo.pop()
        if not isinstance(one, _core.relax.Function):
            continue
        for var in _core.relax.find_vars(one, "global"):
            name = var.name_hint
            if name in helpers and name not in found:
                found[name] = helpers[name]
                todo.append(helpers[name])
    return found


ExprPatternRewriter = PatternMatchingRewriter
