"""The first structural difference between two parts of a program, and a hash that is equal for
structurally equal parts."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pliant import _core

_relax = _core.relax
_Scalar = _core.PrimExpr | int | float
# The fields of statements that define a variable.
_DEFINING_FIELDS = ("loop_var", "var")
# The largest size for which the equality of two sizes is proved.
_MAX_SIZE = 1 << 40


def difference(lhs: Any, rhs: Any, map_free_vars: bool) -> str | None:
    """Describes the first difference between two parts, or returns ``None`` if they are equal."""
    return _Comparison(map_free_vars).of(lhs, rhs)


def _with_equal_visibility(mod: Any, other: Any) -> Any:
    """Makes functions public that are private in one of two modules only, if ``import tvm`` is Pliant.

    Versions of TVM differ in whether functions that passes create are private, and scripts of older versions cannot mark
    functions as private.
    """
    from pliant.tvm._finder import is_installed

    if not is_installed():
        return mod
    found = {var.name_hint: func for var, func in other.functions_items()}
    public = {}
    for var, func in mod.functions_items():
        match = found.get(var.name_hint)
        if match is not None and _is_private(func) != _is_private(match) and isinstance(match, type(func)):
            public[var.name_hint] = func.with_attr("global_symbol", var.name_hint)
    if not public:
        return mod
    result = mod.clone()
    for name, func in public.items():
        result.update_func(_relax.GlobalVar(name), func)
    return result


# Attributes that passes and front ends of some versions of TVM set, and others do not.
_VERSION_DEPENDENT_ATTRS = ("relax.force_pure", "vm_shape_lowered", "Primitive")


def _with_equal_attrs(mod: Any, other: Any) -> Any:
    """Removes version-dependent attributes that only functions of one of two modules have, if ``import tvm`` is Pliant."""
    from pliant.tvm._finder import is_installed

    if not is_installed():
        return mod
    others = {var.name_hint: func for var, func in other.functions_items()}
    changed = {}
    for var, func in mod.functions_items():
        match = others.get(var.name_hint)
        if isinstance(func, _relax.Function) and isinstance(match, _relax.Function):
            extra = [key for key in _VERSION_DEPENDENT_ATTRS if key in func.attrs and key not in match.attrs]
            for key in extra:
                func = func.without_attr(key)
            if extra:
                changed[var.name_hint] = func
    if not changed:
        return mod
    result = mod.clone()
    for name, func in changed.items():
        result.update_func(_relax.GlobalVar(name), func)
    return result


def _with_equal_names(mod: Any, other: Any) -> Any:
    """Renames private functions of a module to the names of the corresponding functions of another module, if ``import tvm`` is
    Pliant. The names of private functions have no meaning, and versions of TVM differ in how passes name new functions.

    Functions correspond if functions with the same name, or functions that correspond, refer to them at the same position.
    """
    from pliant.tvm._finder import is_installed

    if not is_installed():
        return mod
    left, right = ({var.name_hint: f for var, f in m.functions_items()} for m in (mod, other))
    pairs = [(name, name) for name in left if name in right]
    new_names: dict[str, str] = {}
    for a, b in pairs:
        # The list grows in the loop.
        for x, y in zip(_referenced_functions(left[a]), _referenced_functions(right[b]), strict=False):
            if x in right or y in left or x in new_names or y in new_names.values() or x not in left or y not in right:
                continue
            if _is_private(left[x]) or _is_private(right[y]):
                new_names[x] = y
                pairs.append((x, y))
    return mod.replace_global_vars(new_names) if new_names else mod


def _referenced_functions(func: Any) -> list[str]:
    """Returns the names of the functions to which a function refers, in order of appearance."""
    from pliant.relax.analysis import post_order_visit

    found: list[str] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, _relax.GlobalVar):
            found.append(expr.name_hint)

    if isinstance(func, _relax.Function):
        post_order_visit(func, visit)
    return found


def _is_private(func: Any) -> bool:
    private = getattr(func, "private", None)
    return func.is_private if private is None else bool(private)


class _Comparison:
    """A comparison of two parts of a program. It maps variables and buffers of the left side to
    those of the right side.
    """

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self._right: dict[Any, Any] = {}
        self._left: dict[Any, Any] = {}

    def of(self, lhs: Any, rhs: Any) -> str | None:
        if isinstance(lhs, Mapping) and isinstance(rhs, Mapping):
            return self._mappings(lhs, rhs)
        if isinstance(lhs, list | tuple) and isinstance(rhs, list | tuple):
            return self._lists(lhs, rhs)
        if isinstance(lhs, _Scalar) and isinstance(rhs, _Scalar):
            return None if self._scalars(lhs, rhs) else f"the values differ: {lhs} on the left, {rhs} on the right"
        if isinstance(lhs, _relax.StructInfo) and isinstance(rhs, _relax.StructInfo):
            return self._types(lhs, rhs)
        if _is_statement(lhs) and _is_statement(rhs):
            return self._statements(lhs, rhs)
        if lhs is None or isinstance(lhs, str):
            return None if lhs == rhs else f"the values differ: {lhs!r} on the left, {rhs!r} on the right"
        if _is_part(lhs) and _is_part(rhs):
            return self._parts(lhs, rhs)
        if isinstance(lhs, _core.IRModule) and isinstance(rhs, _core.IRModule):
            lhs = _with_equal_names(lhs, rhs)
            lhs, rhs = _with_equal_visibility(lhs, rhs), _with_equal_visibility(rhs, lhs)
            lhs, rhs = _with_equal_attrs(lhs, rhs), _with_equal_attrs(rhs, lhs)
        return _core.structural_difference(lhs, rhs)

    def _mappings(self, lhs: Mapping[Any, Any], rhs: Mapping[Any, Any]) -> str | None:
        other = {_key(k): v for k, v in rhs.items()}
        for key, value in lhs.items():
            if _key(key) not in other:
                return f"the key {key} exists on the left only"
            found = self.of(value, other.pop(_key(key)))
            if found is not None:
                return f"{key}: {found}"
        return None if not other else f"the key {next(iter(other))} exists on the right only"

    def _lists(self, lhs: Sequence[Any], rhs: Sequence[Any]) -> str | None:
        if len(lhs) != len(rhs):
            return f"the number of items differs: {len(lhs)} on the left, {len(rhs)} on the right"
        for i, (a, b) in enumerate(zip(lhs, rhs, strict=True)):
            found = self.of(a, b)
            if found is not None:
                return f"item {i}: {found}"
        return None

    # ---- graph level ----

    def _parts(self, lhs: Any, rhs: Any) -> str | None:
        lhs, rhs = _as_expr(lhs), _as_expr(rhs)
        left, right = _relax.find_vars(lhs, "free"), _relax.find_vars(rhs, "free")
        if len(left) != len(right) or not (self.map_free_vars or left == right):
            return f"the free variables differ: {_names(left)} on the left, {_names(right)} on the right"
        return _core.structural_difference(_relax.Function(left, lhs), _relax.Function(right, rhs))

    def _types(self, lhs: Any, rhs: Any) -> str | None:
        if lhs == rhs:
            return None
        if isinstance(lhs, _relax.FuncStructInfo) and isinstance(rhs, _relax.FuncStructInfo):
            return self._function_types(lhs, rhs)
        fields = _type_fields(lhs) if type(lhs) is type(rhs) else None
        if fields is None or not self._type_fields_equal(fields, _type_fields(rhs) or []):
            return f"the values differ: {lhs} on the left, {rhs} on the right"
        return None

    def _function_types(self, lhs: Any, rhs: Any) -> str | None:
        """Compares the types of functions. Symbols in the types of parameters are names for unknown sizes."""
        inner = _Comparison(map_free_vars=True)
        inner._right, inner._left = dict(self._right), dict(self._left)
        if (lhs.params is None) != (rhs.params is None) or lhs.purity != rhs.purity:
            return f"the values differ: {lhs} on the left, {rhs} on the right"
        parts = [(lhs.params or [], rhs.params or []), (lhs.ret, rhs.ret)]
        return next((found for a, b in parts if (found := inner.of(a, b)) is not None), None)

    def _type_fields_equal(self, lhs: list[Any], rhs: list[Any]) -> bool:
        """Whether the parts of two types are equal. Sizes are equal if this can be proved for all positive symbols."""
        if len(lhs) != len(rhs):
            return False
        for a, b in zip(lhs, rhs, strict=True):
            if isinstance(a, list) and isinstance(b, list):
                if not self._type_fields_equal(a, b):
                    return False
            elif self.of(a, b) is not None and (self.map_free_vars or not _provably_equal(a, b)):
                return False
        return True

    # ---- loop level ----

    def _statements(self, lhs: Any, rhs: Any) -> str | None:
        if type(lhs) is not type(rhs):
            return f"the kinds of statements differ: {_kind(lhs)} on the left, {_kind(rhs)} on the right"
        if _kind(lhs) == "Buffer":
            return None if self._buffers(lhs, rhs) else f"the values differ: {lhs} on the left, {rhs} on the right"
        for field in _fields(lhs):
            a, b = getattr(lhs, field), getattr(rhs, field)
            if field in _DEFINING_FIELDS and isinstance(a, _core.PrimExpr):
                found = None if self._define(a, b) else f"the data types differ: {a.dtype} on the left, {b.dtype} on the right"
            elif field in ("buffer", "alloc_buffers") and _kind(lhs) in ("Allocate", "Block"):
                found = self._defined_buffers(a, b)
            else:
                found = self.of(_plain(a), _plain(b))
            if found is not None:
                return f"{_kind(lhs)}.{field}: {found}"
        return None

    def _define(self, a: Any, b: Any) -> bool:
        """Maps a variable of the left side to a variable of the right side, for the rest of the
        comparison.
        """
        if a.dtype != b.dtype or type(a) is not type(b):
            return False
        self._right[b._node_id], self._left[a._node_id] = a, b
        return True

    def _defined_buffers(self, a: Any, b: Any) -> str | None:
        left, right = (list(x) if isinstance(x, list | tuple) else [x] for x in (a or [], b or []))
        if len(left) != len(right):
            return f"the number of buffers differs: {len(left)} on the left, {len(right)} on the right"
        for x, y in zip(left, right, strict=True):
            if x.dtype != y.dtype or self._lists(list(x.shape), list(y.shape)) is not None:
                return f"the buffers differ: {x} on the left, {y} on the right"
            self._right[y], self._left[x] = x, y
        return None

    def _buffers(self, a: Any, b: Any) -> bool:
        if a in self._left or b in self._right:
            return bool(self._left.get(a) == b and self._right.get(b) == a)
        return self._defined_buffers(a, b) is None if self.map_free_vars else bool(a == b)

    def _vars(self, a: Any, b: Any) -> bool:
        left, right = self._left.get(a._node_id), self._right.get(b._node_id)
        if left is not None or right is not None:
            return left is not None and right is not None and bool(left.same_as(b) and right.same_as(a))
        return self._define(a, b) if self.map_free_vars else bool(a.same_as(b))

    def _scalars(self, lhs: Any, rhs: Any) -> bool:
        """Whether two scalar expressions are equal. Compares them node by node."""
        stack = [(lhs, rhs)]
        done: set[tuple[Any, Any]] = set()
        while stack:
            a, b = (x if isinstance(x, _core.PrimExpr) else _core.tir_const(x, None) for x in stack.pop())
            key = (a._node_id, b._node_id)
            if key in done:
                continue
            done.add(key)
            if isinstance(a, _core.Var) and isinstance(b, _core.Var):
                if not self._vars(a, b):
                    return False
                continue
            left, right = list(_core.tir_operands(a)), list(_core.tir_operands(b))
            if type(a) is not type(b) or a.dtype != b.dtype or len(left) != len(right):
                return False
            if not self._equal_without_operands(a, b, left):
                return False
            stack.extend(zip(left, right, strict=True))
        return True

    def _equal_without_operands(self, a: Any, b: Any, operands: list[Any]) -> bool:
        """Whether two expressions are equal except for their operands."""
        read = getattr(a, "buffer", None)
        if read is not None:
            return self._buffers(read, b.buffer)
        if not operands:
            return bool(_core.tir_binary("eq", a, b))
        return bool(_core.tir_binary("eq", a, _core.tir_with_operands(b, operands)))


def _provably_equal(a: Any, b: Any) -> bool:
    """Whether two sizes have the same value for all positive values of their symbols."""
    from pliant.arith import Analyzer
    from pliant.tir.op import undefined_vars

    if not all(isinstance(x, _core.PrimExpr) for x in (a, b)):
        return False
    analyzer = Analyzer()
    for symbol in [*undefined_vars(a), *undefined_vars(b)]:
        analyzer.bind(symbol, _core.Range(1, _MAX_SIZE), allow_override=True)
    return bool(analyzer.can_prove_equal(analyzer.simplify(a), analyzer.simplify(b)))


def structural_hash(node: Any, map_free_vars: bool) -> int:
    """Computes a hash that is equal for structurally equal nodes."""
    if isinstance(node, _core.IRModule | _core.PrimFunc | _relax.Function):
        return _core.structural_hash(node)
    if _is_part(node):
        node = _as_expr(node)
        return _core.structural_hash(_relax.Function(_relax.find_vars(node, "free"), node))
    return _hash(_hash_parts(node, map_free_vars))


def _hash(marks: Iterable[Any]) -> int:
    return zlib.crc32(repr(list(marks)).encode())


def _hash_parts(node: Any, map_free_vars: bool) -> list[Any]:
    """Returns the properties of a node from which its hash is computed, in a fixed order. Equal nodes have equal properties."""
    if isinstance(node, Mapping):
        return sorted((str(_key(k)), structural_hash(v, map_free_vars)) for k, v in node.items())
    if isinstance(node, list | tuple):
        return [structural_hash(item, map_free_vars) for item in node]
    if isinstance(node, _relax.StructInfo):
        return [type(node).__name__]
    if isinstance(node, _core.PrimExpr) or _is_statement(node):
        from pliant.tir.stmt_functor import post_order_visit

        found: list[Any] = []
        post_order_visit(node, lambda part: found.append((_kind(part), _constant(part))))
        return found
    return [node]


def _constant(part: Any) -> Any:
    number = isinstance(part, _core.IntImm | _core.FloatImm)
    return (part.dtype, part.value) if number else None


def _plain(value: Any) -> Any:
    """Converts enumeration values to numbers and ranges to pairs. Other values are returned unchanged."""
    if isinstance(value, _core.Range):
        return [value.min, value.extent]
    return int(value) if isinstance(value, int) else value


def _type_fields(info: Any) -> list[Any] | None:
    """Returns the parts of a type, or ``None`` if it has no parts to compare."""
    kind = type(info).__name__
    if kind == "TensorStructInfo":
        # The shape is a list of sizes, a variable or unknown.
        dims = list(info.shape.values) if isinstance(info.shape, _relax.ShapeExpr) else info.shape
        return [info.ndim, str(info.dtype), dims]
    if kind == "ShapeStructInfo":
        return [info.ndim, None if info.values is None else list(info.values)]
    if kind == "PrimStructInfo":
        return [str(info.dtype), getattr(info, "value", None)]
    return list(info.fields) if kind == "TupleStructInfo" else None


def _is_part(obj: Any) -> bool:
    blocks = _relax.Expr | _relax.BindingBlock | _relax.Binding
    return isinstance(obj, blocks) and not isinstance(obj, _relax.Function)


def _as_expr(part: Any) -> Any:
    """Converts a block or a binding to a sequence that contains nothing else. Returns other parts unchanged."""
    if isinstance(part, _relax.Binding):
        part = _relax.BindingBlock([part])
    return _relax.SeqExpr([part], _relax.Tuple([])) if isinstance(part, _relax.BindingBlock) else part


def _is_statement(obj: Any) -> bool:
    return bool(_fields(obj)) or _kind(obj) == "Buffer"


def _fields(obj: Any) -> tuple[str, ...]:
    """Returns the names of the fields of a statement or of an object in a statement."""
    own: tuple[str, ...] = getattr(type(obj), "_fields", ())
    if own or type(obj).__module__ != "pliant.tir.stmt":
        return own
    return {"BufferRegion": ("buffer", "region"), "IterVar": ("var", "dom", "iter_type")}.get(_kind(obj), ())


def _kind(obj: Any) -> str:
    return type(obj).__name__


def _key(key: Any) -> Any:
    return getattr(key, "name_hint", None) or getattr(key, "name", None) or key


def _names(variables: list[Any]) -> str:
    return "(" + ", ".join(v.name_hint for v in variables) + ")"


__all__ = ["difference", "structural_hash"]
