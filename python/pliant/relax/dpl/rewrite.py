"""Functions and passes that rewrite functions by patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import IRModule
from pliant.ir import structural_equal
from pliant.relax.dpl.context import PatternContext
from pliant.relax.dpl._pattern_base import DFPattern, _matchings, _of_node, _pattern
from pliant.transform import Pass, PassInfo

if TYPE_CHECKING:
    from pliant._core.relax import Expr, Function

    Callback = Callable[[Expr, dict[DFPattern, Expr]], Expr]

_PARTS = ("pattern", "replacement")


def rewrite_call(pattern: DFPattern, rewriter: Callback, func: Function) -> Function:
    """Replaces matches of a pattern by the results of ``rewriter(expr, matchings)``, until no match
    is replaced. If ``rewriter`` returns ``expr`` itself, the match is not replaced.

    A match never extends across a call that may overwrite a value that the match reads. Such calls are in-place calls and calls
    of graph functions that contain in-place calls. If ``func`` was taken from a module (``mod["main"]``), the functions of the
    module determine which graph functions these are. Otherwise, every called graph function is assumed to contain an in-place
    call.

    Raises ``ValueError`` if the rewriting does not terminate because the rule matches its own results.
    """
    return PatternMatchingRewriter.from_pattern(pattern, rewriter)(func)


def rewrite_bindings(
    ctx: PatternContext, rewriter: Callable[[dict[DFPattern, Expr], dict[Expr, Expr]], Mapping[Any, Any]], func: Function
) -> Function:
    """Replaces matches of a pattern context in the dataflow blocks of a function. ``rewriter(matchings, bindings)`` returns a
    dict from variables to their new values. An empty dict or ``None`` leaves the match unchanged.

    Raises ``TypeError`` if ``rewriter`` returns something else, and ``ValueError`` if the rewriting does not terminate because
    the context matches its own results.
    """

    def call(found: list[Any], bindings: dict[Any, Any]) -> Any:
        result = rewriter(_matchings(found), bindings)
        if result is not None and not isinstance(result, Mapping):
            raise TypeError(f"the rewriter must return a dict from variables to expressions, got {result!r}")
        return None if result is None else dict(result)

    return _core.relax.pattern_rewrite_bindings(*ctx._parts(), call, func)


class _Rule:
    """A rewrite rule: a pattern, and either a callback that returns the replacement, or a template from a module whose other
    functions the replacement may call."""

    def __init__(
        self, pattern: DFPattern, callback: Callback | None = None, template: Any = None, module: IRModule | None = None
    ) -> None:
        self.pattern, self.callback, self.template, self.module = pattern, callback, template, module

    @staticmethod
    def of_module(mod: IRModule) -> _Rule:
        template = _core.relax.TemplateRule(mod["pattern"], mod["replacement"])
        return _Rule(_of_node(template.pattern), template=template, module=mod)

    def helpers(self) -> dict[str, Any]:
        """Returns the functions of the rule's module other than ``pattern`` and ``replacement``, by name."""
        named = {} if self.module is None else {v.name_hint: f for v, f in self.module.functions_items()}
        return {name: func for name, func in named.items() if name not in _PARTS}

    def with_unique_names(self, lookup: Callable[[str], Any]) -> _Rule:
        """Returns the rule with its helper functions renamed if their names conflict with other functions. ``lookup(name)``
        returns the other function with a name, or ``None``."""
        new: dict[str, str] = {}
        for name, func in self.helpers().items():
            other = lookup(name)
            if other is None or structural_equal(other, func):
                continue
            free = (f"{name}_{i}" for i in count(1))
            new[name] = next(n for n in free if lookup(n) is None and n not in new.values())
        if not new or self.module is None:
            return self
        return _Rule.of_module(self.module.replace_global_vars(new))


class PatternMatchingRewriter(Pass):
    """Rewrite rules as a pass. Call the pass with a module or a function. For two rewriters, ``a | b`` contains the rules of
    ``a`` and ``b`` and tries those of ``a`` first.

    Functions that a replacement calls in its own module are copied into the rewritten module. For a
    single function, such a replacement raises ``ValueError``.
    """

    def __init__(self, rules: list[_Rule], name: str = "PatternMatchingRewriter") -> None:
        self._rules = rules
        self.info = PassInfo(name)

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Callback) -> PatternMatchingRewriter:
        """Creates a rule that replaces matches of a pattern by the results of
        ``func(expr, matchings)``."""
        return PatternMatchingRewriter([_Rule(_pattern(pattern), func)])

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """Creates a rule from the functions ``pattern`` and ``replacement`` of a module.
        ``replacement`` may call other functions of the module.

        Raises ``ValueError`` if one of the two functions is missing.
        """
        for name in _PARTS:
            if name not in mod:
                raise ValueError(f"the module of a rewriter must have a function '{name}'")
        return PatternMatchingRewriter([_Rule.of_module(mod)])

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter([*self._rules, *other._rules])

    @property
    def pattern(self) -> DFPattern:
        """The pattern of the first rule."""
        return self._rules[0].pattern

    def __call__(self, obj: Any) -> Any:
        if isinstance(obj, IRModule):
            return super().__call__(obj)
        result = self._rewrite(obj)
        called = {} if result is obj else _called(result, self._helpers())
        if called:
            raise ValueError(
                f"the replacement calls '{next(iter(called))}' of the rewriter's module, which cannot be added "
                f"to a single function (help: rewrite the module)"
            )
        return result

    def transform_module(self, mod: IRModule, ctx: Any) -> IRModule:
        """Returns a module with rewritten graph functions."""
        rules: list[_Rule] = []
        helpers: dict[str, Any] = {}
        for rule in self._rules:
            rules.append(rule.with_unique_names(lambda name: helpers.get(name, mod.get(name))))
            helpers.update(rules[-1].helpers())
        renamed = PatternMatchingRewriter(rules)
        out, changed, called = mod.clone(), {}, {}
        for var, func in mod.functions_items():
            if isinstance(func, _core.relax.Function):
                result = renamed._rewrite(func, mod)
                if result is not func:
                    changed[var] = result
                    called.update(_called(result, helpers))
        out.update({name: func for name, func in called.items() if name not in mod})
        for var, func in changed.items():
            out.update_func(var, func)
        return out

    def _helpers(self) -> dict[str, Any]:
        return {name: func for rule in self._rules for name, func in rule.helpers().items()}

    def _rewrite(self, func: Any, mod: IRModule | None = None) -> Any:
        """Applies the rules to a function. ``mod`` is the module that contains the function. It is
        needed only if the function was not taken from that module."""
        if all(rule.template is not None for rule in self._rules):
            return _core.relax.TemplateRule.apply([rule.template for rule in self._rules], func, mod)
        if any(rule.template is not None for rule in self._rules):
            return self._apply_alternately(func, mod)
        nodes = [rule.pattern.node for rule in self._rules]
        return _core.relax.pattern_rewrite_calls(nodes, self._call_callback, func, mod)

    def _call_callback(self, rule: int, expr: Any, found: list[Any]) -> Any:
        callback = self._rules[rule].callback
        assert callback is not None
        return callback(expr, _matchings(found))

    def _apply_alternately(self, func: Any, mod: IRModule | None) -> Any:
        """Applies callback rules and template rules alternately, one rule at a time, until the function no longer changes."""
        for _ in range(64):
            before = func
            for one in self._rules:
                func = PatternMatchingRewriter([one])._rewrite(func, mod)
            if func is before:
                return func
        raise ValueError("the rewrite rules do not terminate: the function still changes after 64 sweeps over all rules")


def _called(func: Any, helpers: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the helper functions that a function calls, directly or through other helper functions."""
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
