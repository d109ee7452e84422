"""The base class of patterns, and sequences of patterns in which each pattern uses the previous
one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pliant.relax.dpl import context as _context

if TYPE_CHECKING:
    from pliant._core.relax import Expr, PatternNode

_live_patterns: WeakValueDictionary[int, DFPattern] = WeakValueDictionary()


def _kinds() -> Any:
    from pliant.relax.dpl import kinds

    return kinds


class DFPattern:
    """A pattern of expressions. The class determines the kind of pattern, and its ``__slots__``
    name the parameters.

    ``a | b`` matches if ``a`` or ``b`` matches, ``a & b`` if both match, and ``~a`` if ``a`` does
    not. ``a >> b`` is ``a.only_used_by(b)``, and ``a ^ b`` is ``a.used_by(b)``. Creating a pattern
    that can never match raises ``ValueError``.
    """

    __slots__ = ("__weakref__", "node")

    def __init__(self, node: PatternNode) -> None:
        self.node = node
        _live_patterns[node.id] = self

    def __call__(self, *args: DFPattern, varg_default_wildcard: bool = False, add_constraint: bool = True) -> DFPattern:
        """The pattern of calls whose callee matches this pattern and whose arguments match
        ``args``. With ``varg_default_wildcard``, the call may have further arguments. Inside a
        pattern context, the call belongs to the context unless ``add_constraint`` is false."""
        call = _kinds().CallPattern(self, args, varg_default_wildcard)
        current = _context.PatternContext.current()
        if add_constraint and current is not None:
            current._add(call)
        return call

    def __or__(self, other: DFPattern) -> DFPattern:
        return _kinds().OrPattern(self, other)

    def __and__(self, other: DFPattern) -> DFPattern:
        return _kinds().AndPattern(self, other)

    def __invert__(self) -> DFPattern:
        return self.reject()

    def reject(self) -> DFPattern:
        """Creates the pattern of expressions that this pattern does not match."""
        return _kinds().NotPattern(self)

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """Creates a pattern like this one, restricted to calls or functions with these attributes.
        Default attributes of operators are included.
        """
        return _kinds().AttrPattern(self, attrs)

    def has_dtype(self, dtype: str) -> DFPattern:
        """Creates a pattern like this one, restricted to values with this data type."""
        return _kinds().DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """Creates a pattern like this one, restricted to values with this shape. A size variable
        matches any size; all its occurrences in a match must have the same size.
        """
        return _kinds().ShapePattern(self, shape)

    def has_struct_info(self, struct_info: Any) -> DFPattern:
        """Creates a pattern like this one, restricted to values with this type. Unknown parts of
        the type match anything. A size variable matches any size; all its occurrences in a match
        must have the same size.
        """
        return _kinds().StructInfoPattern(self, struct_info)

    has_type = has_struct_info
    has_ty = has_struct_info

    def same_shape_as(self, *args: DFPattern) -> DFPattern:
        """Adds a constraint to the current pattern context: the values that this pattern and the patterns ``args`` match must
        provably have the same shape. Raises ``ValueError`` outside of contexts."""
        _context.PatternContext.required("same_shape_as")._same_shape([self, *args])
        return self

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """Creates a pattern that matches if the larger pattern ``option_constructor(self)`` matches, or else if this pattern
        alone matches.
        """
        return option_constructor(self) | self

    def dup(self) -> DFPattern:
        """Copies the pattern. In another pattern, the copy may match another value than the
        original.
        """
        return _duplicates([self])[0]

    def match(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> bool:
        """Whether an expression matches. With ``var2val``, variables of its function are replaced
        by their values."""
        return self.extract_matched_expr(expr, var2val) is not None

    def extract_matched_expr(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> dict[DFPattern, Expr] | None:
        """Returns a dict from each subpattern to the expression that it matches, or ``None`` if
        there is no match. ``var2val`` is as for :meth:`match`.
        """
        found = self.node.matches(expr, var2val is not None)
        return None if found is None else _matchings(found)

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Adds a constraint to the current pattern context: ``other`` uses this pattern, as operand
        ``index`` unless that is -1. Raises ``ValueError`` outside of contexts."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Like :meth:`used_by`, with the further constraint that no other value uses this
        pattern."""
        return PatternSeq([self]).only_used_by(other, index)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other, -1)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other, -1)

    def fork_to(self, *args: DFPattern | PatternSeq) -> None:
        """Adds constraints to the current pattern context: each argument uses this pattern."""
        for other in args:
            self.used_by(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DFPattern) and self.node.id == other.node.id

    def __hash__(self) -> int:
        return hash(self.node.id)

    def __repr__(self) -> str:
        return repr(self.node)


class PatternSeq:
    """A sequence of patterns in which each pattern uses the previous one. With ``only_use``, no other value may use the value
    that the previous pattern matched.

    Raises ``ValueError`` for an empty sequence, and for two or more patterns outside of pattern
    contexts.
    """

    __slots__ = ("patterns",)

    def __init__(self, patterns: Sequence[DFPattern], only_use: bool = False) -> None:
        self.patterns = list(patterns)
        if not self.patterns:
            raise ValueError("a PatternSeq must have at least one pattern")
        for one, other in zip(self.patterns, self.patterns[1:], strict=False):
            _context.PatternContext.required("PatternSeq")._used_by(one, other, -1, only_use)

    def _join(self, other: DFPattern | PatternSeq, index: int, only: bool) -> PatternSeq:
        others = other.patterns if isinstance(other, PatternSeq) else [_pattern(other)]
        current = _context.PatternContext.required(">> and ^" if index == -1 else "used_by")
        current._used_by(self.patterns[-1], others[0], index, only)
        joined = PatternSeq.__new__(PatternSeq)
        joined.patterns = [*self.patterns, *others]
        return joined

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Adds a constraint: ``other`` uses the last pattern, as operand ``index`` unless that is -1. Returns the sequence
        extended by ``other``."""
        return self._join(other, index, False)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Like :meth:`used_by`, with the further constraint that no other value uses the last
        pattern."""
        return self._join(other, index, True)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def dup(self) -> PatternSeq:
        """Copies the sequence, with copied patterns and the same constraints."""
        current = _context.PatternContext.required("dup")
        copies = _duplicates(self.patterns)
        for p in copies:
            current._add(p)
        current._copy_uses(self.patterns, copies)
        joined = PatternSeq.__new__(PatternSeq)
        joined.patterns = copies
        return joined

    def __getitem__(self, index: int) -> DFPattern:
        return self.patterns[index]

    def __len__(self) -> int:
        return len(self.patterns)


def _pattern(one: Any) -> DFPattern:
    if not isinstance(one, DFPattern):
        raise TypeError(f"{one!r} is not a pattern (help: wildcard() matches anything, is_expr(x) matches the constant x)")
    return one


def _of_node(node: PatternNode) -> DFPattern:
    """Returns the Python object of a pattern of the extension module: the object that the user created if it still
    exists, otherwise a new one."""
    return _live_patterns.get(node.id) or DFPattern(node)


def _matchings(found: list[tuple[PatternNode, Expr]]) -> dict[DFPattern, Expr]:
    return {_of_node(node): expr for node, expr in found}


def _subpatterns(pattern: DFPattern) -> list[DFPattern]:
    """Returns the patterns in the fields of a pattern."""
    values = [getattr(pattern, name) for name in type(pattern).__slots__ if name not in DFPattern.__slots__]
    lists = [value if isinstance(value, list) else [value] for value in values]
    return [one for values in lists for one in values if isinstance(one, DFPattern)]


def _duplicates(patterns: Sequence[DFPattern]) -> list[DFPattern]:
    """Copies patterns including their subpatterns. Subpatterns that are shared stay shared."""
    order: dict[DFPattern, None] = {}
    todo = list(patterns)
    while todo:
        one = todo.pop()
        if one not in order:
            order[one] = None
            todo.extend(_subpatterns(one))
    copies: dict[Any, DFPattern] = {}
    for one, node in zip(order, _kinds().Node.dup([p.node for p in order]), strict=True):
        copies[one] = object.__new__(type(one))
        DFPattern.__init__(copies[one], node)

    def field(value: Any) -> Any:
        if isinstance(value, list):
            return [field(item) for item in value]
        return copies[value] if isinstance(value, DFPattern) else value

    for one, copy in copies.items():
        for name in type(one).__slots__:
            if name not in DFPattern.__slots__:
                setattr(copy, name, field(getattr(one, name)))
    return [copies[one] for one in patterns]
