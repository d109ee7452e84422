"""Patterns. A pattern is equal only to itself; where it occurs twice, it matches one value twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.relax.dpl import context as _context

if TYPE_CHECKING:
    from pliant._core.relax import Expr, PatternNode

_Node = _core.relax.PatternNode


class DFPattern:
    """A pattern of expressions."""

    __slots__ = ("node",)

    def __init__(self, node: PatternNode) -> None:
        self.node = node

    def __call__(self, *args: DFPattern, varg_default_wildcard: bool = False, add_constraint: bool = True) -> DFPattern:
        """A call of what this matches, with those operands; with ``varg_default_wildcard``, and any more."""
        call = DFPattern(self.node.call([_pattern(a).node for a in args], varg_default_wildcard))
        current = _context.PatternContext.current()
        if add_constraint and current is not None:
            current._add(call)
        return call

    def __or__(self, other: DFPattern) -> DFPattern:
        return DFPattern(self.node.or_(_pattern(other).node))

    def __and__(self, other: DFPattern) -> DFPattern:
        return DFPattern(self.node.and_(_pattern(other).node))

    def __invert__(self) -> DFPattern:
        return self.reject()

    def reject(self) -> DFPattern:
        """What this does not match."""
        return DFPattern(self.node.not_())

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """This, on a call with these attributes; defaults count."""
        return DFPattern(self.node.has_attr(dict(attrs)))

    def has_dtype(self, dtype: str) -> DFPattern:
        """This, of that data type."""
        return DFPattern(self.node.has_dtype(str(dtype)))

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """This, of that shape. A size variable is an unknown: it stands for one size in the whole match."""
        return DFPattern(self.node.has_shape(list(shape)))

    def has_struct_info(self, struct_info: Any) -> DFPattern:
        """This, of that type; what the type leaves open may be anything, size variables are unknowns."""
        return DFPattern(self.node.has_struct_info(struct_info))

    has_type = has_struct_info
    has_ty = has_struct_info

    def same_shape_as(self, *args: DFPattern) -> DFPattern:
        """Asks the pattern context for values of provably the same shape."""
        _context.PatternContext.required("same_shape_as")._same_shape([self, *args])
        return self

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """This, or what the function makes around it."""
        return option_constructor(self) | self

    def dup(self) -> DFPattern:
        """A pattern that asks for the same, but may match another value."""
        return DFPattern(self.node.dup())

    def match(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> bool:
        """Whether an expression matches. With ``var2val``, the variables of its function are looked through."""
        return self.node.matches(expr, var2val is not None) is not None

    def extract_matched_expr(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> dict[DFPattern, Expr] | None:
        """What each pattern inside matches, or ``None``."""
        found = self.node.matches(expr, var2val is not None)
        return None if found is None else _matchings(found)

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Says in the pattern context that ``other`` uses this, as operand ``index`` if that is given."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """As :meth:`used_by`, and that nothing else uses it."""
        return PatternSeq([self]).only_used_by(other, index)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other, -1)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other, -1)

    def fork_to(self, *args: DFPattern | PatternSeq) -> None:
        """Says that all of these use this."""
        for other in args:
            self.used_by(other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DFPattern) and self.node.id == other.node.id

    def __hash__(self) -> int:
        return hash(self.node.id)

    def __repr__(self) -> str:
        return repr(self.node)


class PatternSeq:
    """Patterns of which each uses the one before."""

    __slots__ = ("patterns",)

    def __init__(self, patterns: Sequence[DFPattern], only_use: bool = False) -> None:
        self.patterns = list(patterns)
        if not self.patterns:
            raise ValueError("a sequence has at least one pattern")
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
        """Says that ``other`` uses the last pattern."""
        return self._join(other, index, False)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """As :meth:`used_by`, and that nothing else uses it."""
        return self._join(other, index, True)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def dup(self) -> PatternSeq:
        """A sequence of other patterns that ask for the same, used alike."""
        current = _context.PatternContext.required("dup")
        copies = [p.dup() for p in self.patterns]
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
        raise TypeError(f"{one!r} is no pattern (help: wildcard() matches everything, is_expr(x) a constant)")
    return one


def _matchings(found: list[tuple[PatternNode, Expr]]) -> dict[DFPattern, Expr]:
    return {DFPattern(node): expr for node, expr in found}


def wildcard() -> DFPattern:
    """Any expression."""
    return DFPattern(_Node.wildcard())


def is_op(op_name: str) -> DFPattern:
    """An operator, to be called: ``is_op("relax.add")(wildcard(), wildcard())``."""
    return DFPattern(_Node.op(op_name))


def is_var(name: str = "") -> DFPattern:
    """A variable, of that name if given."""
    return DFPattern(_Node.var(name, False))


def is_dfv(name: str = "") -> DFPattern:
    """A variable that is local to a dataflow block, of that name if given."""
    return DFPattern(_Node.var(name, True))


def is_gv(name: str = "") -> DFPattern:
    """A function of the module, of that name if given."""
    return DFPattern(_Node.global_var(name))


def is_const() -> DFPattern:
    """Any tensor constant."""
    return DFPattern(_Node.constant())


def is_expr(expr: Any) -> DFPattern:
    """That constant, number, string, data type or function name."""
    return DFPattern(_Node.literal(expr))


def is_shape(shape: Sequence[Any]) -> DFPattern:
    """A shape value of those sizes; a size variable is an unknown."""
    return DFPattern(_Node.shape_value(list(shape)))


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> DFPattern:
    """A tuple of such fields; with ``unordered``, in any order."""
    return DFPattern(_Node.tuple_([_pattern(f).node for f in fields], unordered))


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> DFPattern:
    """A field of such a tuple, of that index if given."""
    return DFPattern(_Node.get_item(_pattern(tuple_value).node, index))


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DFPattern:
    """A value of that data type."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> DFPattern:
    """A call with these attributes."""
    return (pattern or wildcard()).has_attr(attrs)


def _is_call(op: str, func: DFPattern, args: Sequence[DFPattern] | DFPattern | None) -> DFPattern:
    operands = wildcard() if args is None else args if isinstance(args, DFPattern) else is_tuple(args)
    return is_op(op)(func, operands, varg_default_wildcard=True)


def is_call_tir(
    func_name: str, args: Sequence[DFPattern] | DFPattern | None = None, tir_vars: DFPattern | None = None
) -> DFPattern:
    """``R.call_tir(func_name, args)``; without arguments, whatever they are."""
    if tir_vars is None:
        return _is_call("relax.call_tir", is_gv(func_name), args)
    operands = wildcard() if args is None else args if isinstance(args, DFPattern) else is_tuple(args)
    return is_op("relax.call_tir")(is_gv(func_name), operands, tir_vars)


def is_call_dps_packed(func_name: str, args: Sequence[DFPattern] | DFPattern | None = None) -> DFPattern:
    """``R.call_dps_packed(func_name, args)``; without arguments, whatever they are."""
    return _is_call("relax.call_dps_packed", DFPattern(_Node.extern_func(func_name)), args)


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> DFPattern:
    """``R.call_packed(func_name, *args)``; without arguments, whatever they are."""
    func = DFPattern(_Node.extern_func(func_name))
    return func(varg_default_wildcard=True) if args is None else func(*args)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None, allow_reshape: bool = False
) -> DFPattern:
    """``op(lhs, rhs)``, then a sum with a bias, then an activation, as asked for."""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        bias = wildcard()
        operand = is_op("relax.reshape")(bias, wildcard()) | bias if allow_reshape else bias
        out = is_op("relax.add")(out, operand)
    return is_op(activation)(out) if activation else out
