"""Visits and rewrites the statements of loop functions.

Nested loops and blocks are rewritten recursively. Expressions are rewritten with an explicit stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pliant import _core
from pliant._core import IterVar, PrimExpr, PrimFunc, Range
from pliant.tir.stmt import Block, BlockRealize, BufferRegion, Stmt

_Node = Any


def _root(node: _Node) -> _Node:
    return node.body if isinstance(node, PrimFunc) else node


def _parts(node: _Node) -> list[_Node]:
    """Returns the statements and expressions directly inside a node, in order."""
    if isinstance(node, PrimExpr):
        return list(_core.tir_operands(node))
    if isinstance(node, BlockRealize):
        return [*node.iter_values, node.predicate, node.block]
    if isinstance(node, Block):
        ranges = [r for axis in node.iter_vars for r in (axis.dom.min, axis.dom.extent)]
        regions = [*(node.reads or ()), *(node.writes or ())]
        ranges += [e for region in regions for r in region.region for e in (r.min, r.extent)]
        return [*ranges, *([] if node.init is None else [node.init]), node.body]
    parts: list[_Node] = []
    for field in node._fields:
        value = getattr(node, field)
        if isinstance(value, PrimExpr | Stmt):
            parts.append(value)
        elif isinstance(value, list):
            parts.extend(v for v in value if isinstance(v, PrimExpr | Stmt))
    return parts


def post_order_visit(stmt: Stmt | PrimExpr | PrimFunc, fvisit: Callable[[_Node], Any]) -> None:
    """Calls ``fvisit`` with every statement and expression inside a node, and finally with the node
    itself. Children precede their parents. A shared expression is visited once."""
    seen: set[Any] = set()
    stack: list[tuple[_Node, bool]] = [(_root(stmt), False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            fvisit(node)
            continue
        if isinstance(node, PrimExpr):
            key = node._node_id
            if key in seen:
                continue
            seen.add(key)
        stack.append((node, True))
        stack.extend((part, False) for part in reversed(_parts(node)))


def pre_order_visit(stmt: Stmt | PrimExpr | PrimFunc, fvisit: Callable[[_Node], bool]) -> None:
    """Calls ``fvisit`` with a node, and with everything inside it if the call returns true. Parents
    precede their children."""
    stack: list[_Node] = [_root(stmt)]
    while stack:
        node = stack.pop()
        if fvisit(node):
            stack.extend(reversed(_parts(node)))


def _check_replacement(result: _Node, old: _Node) -> _Node:
    """Checks the result of a callback that replaces a node. A statement must be replaced by a
    statement, and an expression by an expression."""
    kind = PrimExpr if isinstance(old, PrimExpr) else Stmt
    if not isinstance(result, kind):
        raise TypeError(f"the replacement of a {_class_name(old)} must be a {kind.__name__}, got {result!r}")
    return result


class _Rewrite:
    """Rebuilds a node with the replacements that the callbacks return."""

    def __init__(
        self,
        preorder: Callable[[_Node], _Node | None] | None,
        postorder: Callable[[_Node], _Node | None] | None,
        only: frozenset[str] | None,
    ) -> None:
        self._pre = preorder
        self._post = postorder
        self._only = only
        self._rewritten: dict[Any, tuple[PrimExpr, PrimExpr]] = {}

    def _enabled(self, node: _Node) -> bool:
        return self._only is None or f"tir.{_class_name(node)}" in self._only

    def visit(self, node: _Node) -> _Node:
        if isinstance(node, PrimExpr):
            return self._expr(node)
        if self._pre is not None and self._enabled(node):
            new = self._pre(node)
            if new is not None:
                return _check_replacement(new, node)
        new = self._children(node)
        if self._post is not None and self._enabled(node):
            result = self._post(new)
            return new if result is None else _check_replacement(result, new)
        return new

    def _expr(self, root: PrimExpr) -> PrimExpr:
        stack: list[tuple[PrimExpr, bool]] = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            key = expr._node_id
            if key in self._rewritten:
                continue
            operands = _core.tir_operands(expr)
            if not ready:
                if self._pre is not None and self._enabled(expr):
                    new = self._pre(expr)
                    if new is not None:
                        self._rewritten[key] = (expr, _check_replacement(new, expr))
                        continue
                stack.append((expr, True))
                stack.extend((o, False) for o in operands)
                continue
            changed = [self._rewritten[o._node_id][1] for o in operands]
            same = all(a.same_as(b) for a, b in zip(operands, changed, strict=True))
            new = expr if same else _core.tir_with_operands(expr, changed)
            if self._post is not None and self._enabled(expr):
                result = self._post(new)
                new = new if result is None else _check_replacement(result, new)
            self._rewritten[key] = (expr, new)
        return self._rewritten[root._node_id][1]

    def _value(self, value: Any) -> Any:
        # An axis is also an expression, but its variable is a definition and not a use.
        if isinstance(value, IterVar):
            dom = value.dom
            new = self._range(dom)
            return value if new is dom else IterVar(new, value.var, value.iter_type)
        if isinstance(value, PrimExpr):
            new = self.visit(value)
            return value if new.same_as(value) else new
        if isinstance(value, Stmt):
            return self.visit(value)
        if isinstance(value, list):
            items = [self._value(v) for v in value]
            return value if all(a is b for a, b in zip(value, items, strict=True)) else items
        if isinstance(value, BufferRegion):
            ranges = [self._range(r) for r in value.region]
            same = all(a is b for a, b in zip(value.region, ranges, strict=True))
            return value if same else BufferRegion(value.buffer, ranges)
        return value

    def _range(self, value: Range) -> Range:
        low, extent = value.min, value.extent
        new_low, new_extent = self.visit(low), self.visit(extent)
        if new_low.same_as(low) and new_extent.same_as(extent):
            return value
        return Range.from_min_extent(new_low, new_extent)

    def _children(self, node: Stmt) -> Stmt:
        fields = [getattr(node, field) for field in node._fields]
        new = []
        for field, value in zip(node._fields, fields, strict=True):
            # The variable that a statement defines is not a use.
            new.append(value if field in ("loop_var", "var") else self._value(value))
        if all(a is b for a, b in zip(fields, new, strict=True)):
            return node
        return type(node)(*new)


def _class_name(node: _Node) -> str:
    name = type(node).__name__
    return "BufferLoad" if name == "ProducerLoad" else name


def ir_transform(
    stmt: Any,
    preorder: Callable[[_Node], _Node | None] | None,
    postorder: Callable[[_Node], _Node | None] | None,
    only_enable: Sequence[str] | None = None,
) -> Any:
    """Rewrites a statement or the body of a function, and returns the result. If nothing changes,
    the same object is returned.

    ``preorder`` may return a replacement for a node. The replacement is not traversed.
    ``postorder`` receives each node after its parts have been rewritten, and may return a
    replacement. ``only_enable`` restricts the callbacks to kinds of nodes (``"tir.For"``).

    Raises ``TypeError`` if a statement is not replaced by a statement or an expression by an
    expression, and ``ValueError`` for an unknown kind of node.
    """
    from pliant import tir

    only = None if only_enable is None else frozenset(only_enable)
    for name in only or ():
        if not isinstance(name, str) or not name.startswith("tir.") or not hasattr(tir, name[4:]):
            raise ValueError(f"only_enable: there is no kind of node {name!r} (help: write names such as 'tir.For')")
    rewrite = _Rewrite(preorder, postorder, only)
    if isinstance(stmt, PrimFunc):
        body = stmt.body
        new = rewrite.visit(body)
        return stmt if new is body else stmt.with_body(new)
    return rewrite.visit(stmt)


def substitute(node: Any, vmap: Mapping[PrimExpr, Any] | Callable[[PrimExpr], Any]) -> Any:
    """Replaces variables in a statement, an expression or a function, and returns the result.
    Variables that loops and blocks define are not replaced.

    ``vmap`` is a dict, or a function that returns the replacement of a variable, or ``None`` to
    keep the variable.
    """
    if callable(vmap):
        given = ((var, vmap(var)) for var in _variables(node))
        vmap = {var: value for var, value in given if value is not None}
    table = {key._node_id: value for key, value in vmap.items()}
    if isinstance(node, PrimFunc | Stmt):

        def replace(expr: _Node) -> Any:
            value = table.get(expr._node_id)
            return None if value is None else _expr_of(value)

        return ir_transform(node, replace, None, ["tir.Var", "tir.SizeVar"])
    return _core.tir_substitute(node, list(vmap.items()))


def renew_defs(func: PrimFunc) -> PrimFunc:
    """Copies a function. The copy shares no parameters, buffers and variables with other
    functions."""
    return _core.tir_renew_defs(func)


def _variables(node: Any) -> list[PrimExpr]:
    """Returns the variables that occur in a node, each once."""
    seen: dict[int, PrimExpr] = {}

    def visit(expr: _Node) -> None:
        if isinstance(expr, _core.Var):
            seen.setdefault(expr._node_id, expr)

    post_order_visit(node, visit)
    return list(seen.values())


def _expr_of(value: Any) -> PrimExpr:
    return value if isinstance(value, PrimExpr) else _core.tir_const(value, "int64")


__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]
