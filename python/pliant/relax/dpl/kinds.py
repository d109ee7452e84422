"""The classes of patterns. Their fields can be inspected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pliant import _core
from pliant.relax.dpl._pattern_base import DFPattern, _pattern
from pliant.relax.dpl.context import PatternContext

Node = _core.relax.PatternNode


class WildcardPattern(DFPattern):
    """Matches any expression."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Node.wildcard())


class ConstantPattern(DFPattern):
    """Matches any tensor constant."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Node.constant())


class ExprPattern(DFPattern):
    """Matches exactly the constant, number, string, data type or function name ``expr``. An
    operator matches as the callee of a call.

    Raises ``TypeError`` for other expressions.
    """

    __slots__ = ("expr",)

    def __init__(self, expr: Any) -> None:
        operator = isinstance(expr, _core.relax.OpFunction)
        super().__init__(Node.op(expr.name) if operator else Node.literal(expr))
        self.expr = expr

    @property
    def op(self) -> Any:
        """The operator that the pattern matches. Raises ``AttributeError`` if the pattern matches
        no operator."""
        if not isinstance(self.expr, _core.relax.OpFunction):
            raise AttributeError(f"{self!r} has no attribute 'op': it matches an expression, not an operator")
        return self.expr


class VarPattern(DFPattern):
    """Matches a variable. A name that is not empty restricts the match to this name."""

    __slots__ = ("name",)
    _dataflow = False

    def __init__(self, name_hint: str = "") -> None:
        super().__init__(Node.var(name_hint, self._dataflow))
        self.name = name_hint

    @property
    def name_hint(self) -> str:
        """The name of the variable."""
        return self.name


class DataflowVarPattern(VarPattern):
    """Matches a variable that is local to a dataflow block. A name that is not empty restricts the
    match to this name."""

    __slots__ = ("name",)
    _dataflow = True


class GlobalVarPattern(DFPattern):
    """Matches a function of the module. A name that is not empty restricts the match to this
    name."""

    __slots__ = ("name",)

    def __init__(self, name_hint: str = "") -> None:
        super().__init__(Node.global_var(name_hint))
        self.name = name_hint

    @property
    def name_hint(self) -> str:
        """The name of the function."""
        return self.name


class ExternFuncPattern(DFPattern):
    """Matches a packed function. A name that is not empty restricts the match to this name."""

    __slots__ = ("global_symbol",)

    def __init__(self, global_symbol: str = "") -> None:
        super().__init__(Node.extern_func(global_symbol))
        self.global_symbol = global_symbol


class CallPattern(DFPattern):
    """Matches a call whose callee matches ``op`` and whose arguments match ``args``. With
    ``varg_default_wildcard``, the call may have further arguments."""

    __slots__ = ("args", "op", "varg_default_wildcard")

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] = (), varg_default_wildcard: bool = False) -> None:
        self.op, self.args = _pattern(op), [_pattern(a) for a in args]
        self.varg_default_wildcard = varg_default_wildcard
        super().__init__(self.op.node.call([a.node for a in self.args], varg_default_wildcard))


class TuplePattern(DFPattern):
    """Matches a tuple whose fields match ``fields``."""

    __slots__ = ("fields",)
    _unordered = False

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = [_pattern(f) for f in fields]
        super().__init__(Node.tuple_([f.node for f in self.fields], self._unordered))

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        if index is None:
            return TupleGetItemPattern(self)
        if not isinstance(index, int) or not -len(self.fields) <= index < len(self.fields):
            raise IndexError(f"the tuple pattern has {len(self.fields)} fields, so it has no field {index!r}")
        return TupleGetItemPattern(self, index % len(self.fields))

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True


class UnorderedTuplePattern(TuplePattern):
    """Matches a tuple whose fields match ``fields`` in any order."""

    __slots__ = ("fields",)
    _unordered = True


class TupleGetItemPattern(DFPattern):
    """Matches an access to a field of a tuple that matches ``tuple``. An ``index`` restricts the
    match to this field."""

    __slots__ = ("index", "tuple")

    def __init__(self, tuple: DFPattern, index: int | None = None) -> None:
        self.tuple, self.index = _pattern(tuple), index
        super().__init__(Node.get_item(self.tuple.node, index))

    def extract_matched_expr(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> dict[DFPattern, Any] | None:
        """Returns a dict from each subpattern to the expression that it matches, or ``None`` if there is no match. An access to
        a field of a tuple expression, which is the field itself inside functions, matches too."""
        relax = _core.relax
        if not isinstance(expr, relax.TupleGetItem) or not isinstance(expr.tuple_value, relax.Tuple):
            return super().extract_matched_expr(expr, var2val)
        found = self.tuple.extract_matched_expr(expr.tuple_value, var2val)
        return None if found is None or self.index not in (None, expr.index) else {**found, self: expr}


class FunctionPattern(DFPattern):
    """Matches a function whose parameters match ``params`` and whose result matches ``body``. The pattern is for whole
    functions: it matches nothing inside another pattern."""

    __slots__ = ("body", "params")

    def __init__(self, params: Sequence[DFPattern], body: DFPattern) -> None:
        self.params, self.body = [_pattern(p) for p in params], _pattern(body)
        # No packed function has this name.
        super().__init__(Node.extern_func("function pattern"))

    def extract_matched_expr(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> dict[DFPattern, Any] | None:
        """Returns a dict from each subpattern to the expression that it matches, or ``None`` if there is no match."""
        if not isinstance(expr, _core.relax.Function) or len(expr.params) != len(self.params):
            return None
        found: dict[DFPattern, Any] = {self: expr}
        # The body of a function that Python code built may be any expression.
        body: Any = expr.body
        result = body.body if isinstance(body, _core.relax.SeqExpr) else body
        for pattern, part in [*zip(self.params, expr.params, strict=True), (self.body, result)]:
            more = pattern.extract_matched_expr(part, {})
            if more is None or any(key in found and not found[key].same_as(value) for key, value in more.items()):
                return None
            found.update(more)
        return found


class AndPattern(DFPattern):
    """Matches if both patterns match the same value."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = _pattern(left), _pattern(right)
        super().__init__(self.left.node.and_(self.right.node))


class OrPattern(DFPattern):
    """Matches if the left or the right pattern matches. The left pattern is tried first."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = _pattern(left), _pattern(right)
        super().__init__(self.left.node.or_(self.right.node))


class NotPattern(DFPattern):
    """Matches if ``reject_pattern`` does not match."""

    __slots__ = ("reject_pattern",)

    def __init__(self, to_reject: DFPattern) -> None:
        self.reject_pattern = _pattern(to_reject)
        super().__init__(self.reject_pattern.node.not_())


class _Wrapped(DFPattern):
    """A pattern with an additional constraint."""

    __slots__ = ("pattern",)


class AttrPattern(_Wrapped):
    """Matches if ``pattern`` matches a call or function with these attributes. Default attributes
    of operators are included."""

    __slots__ = ("attrs", "pattern")

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        self.pattern, self.attrs = _pattern(pattern), dict(attrs)
        super().__init__(self.pattern.node.has_attr(self.attrs))

    def extract_matched_expr(self, expr: Any, var2val: Mapping[Any, Any] | None = None) -> dict[DFPattern, Any] | None:
        """Returns a dict from each subpattern to the expression that it matches, or ``None`` if
        there is no match.
        """
        if not isinstance(expr, _core.relax.Function):
            return super().extract_matched_expr(expr, var2val)
        have = expr.attrs
        if any(key not in have or have[key] != value for key, value in self.attrs.items()):
            return None
        found = self.pattern.extract_matched_expr(expr, var2val)
        return None if found is None else {**found, self: expr}


class DataTypePattern(_Wrapped):
    """Matches if ``pattern`` matches a value with this data type."""

    __slots__ = ("dtype", "pattern")

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern, self.dtype = _pattern(pattern), str(dtype)
        super().__init__(self.pattern.node.has_dtype(self.dtype))


class ShapePattern(_Wrapped):
    """Matches if ``pattern`` matches a value with this shape. A size variable matches any size; all
    its occurrences in a match must have the same size."""

    __slots__ = ("pattern", "shape")

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        self.pattern, self.shape = _pattern(pattern), list(shape)
        super().__init__(self.pattern.node.has_shape(self.shape))


class StructInfoPattern(_Wrapped):
    """Matches if ``pattern`` matches a value with this type. Unknown parts of the type match
    anything. A size variable matches any size; all its occurrences in a match must have the same
    size."""

    __slots__ = ("pattern", "struct_info")

    def __init__(self, pattern: DFPattern, struct_info: Any) -> None:
        self.pattern, self.struct_info = _pattern(pattern), struct_info
        super().__init__(self.pattern.node.has_struct_info(struct_info))


class PrimArrPattern(DFPattern):
    """Matches a shape value with these sizes. A size variable matches any size; all its occurrences
    in a match must have the same size."""

    __slots__ = ("array",)

    def __init__(self, shape: Sequence[Any]) -> None:
        self.array = list(shape)
        super().__init__(Node.shape_value(self.array))

    def __getitem__(self, index: int) -> Any:
        return self.array[index]

    def __len__(self) -> int:
        return len(self.array)

    def __bool__(self) -> bool:
        return True


class SameShapeConstraint:
    """A constraint of the current pattern context: the values that the patterns ``args`` match must provably have the same
    shape.

    Raises ``ValueError`` outside of contexts.
    """

    __slots__ = ("args",)

    def __init__(self, *args: DFPattern) -> None:
        self.args = [_pattern(a) for a in args]
        PatternContext.required("SameShapeConstraint")._same_shape(self.args)


KINDS = [
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DataTypePattern",
    "DataflowVarPattern",
    "ExprPattern",
    "ExternFuncPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PrimArrPattern",
    "SameShapeConstraint",
    "ShapePattern",
    "StructInfoPattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "UnorderedTuplePattern",
    "VarPattern",
    "WildcardPattern",
]
