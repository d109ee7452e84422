"""Visitors and mutators of loop functions with one method for each kind of node, with the names of ``tvm.tir.functor``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from pliant import _core
from pliant._core import PrimExpr, PrimFunc
from pliant.tir.stmt_functor import _parts, _Rewrite

__all__ = ["PyStmtExprMutator", "PyStmtExprVisitor", "mutator", "visitor"]

_Class = TypeVar("_Class", bound=type)
_STATEMENTS = (
    "Allocate AssertStmt Block BlockRealize BufferStore Evaluate For IfThenElse LetStmt SeqStmt While"
).split()
_EXPRESSIONS = (
    "Add And Broadcast Call Cast Div EQ FloatImm FloorDiv FloorMod GE GT IntImm LE LT Max Min Mod Mul NE Not Or BufferLoad Ramp "
    "Reduce Select SizeVar StringImm Sub Var"
).split()
# Names of nodes that are one word in the methods of TVM.
_ONE_WORD = {"FloorDiv": "floordiv", "FloorMod": "floormod", "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def _method_name(kind: str) -> str:
    """Returns the name of the method for a kind of node: ``visit_buffer_store_`` for ``BufferStore``."""
    return f"visit_{_ONE_WORD.get(kind) or re.sub(r'(?<=[a-z])(?=[A-Z])', '_', kind).lower()}_"


def _method_of(functor: Any, node: Any) -> Callable[[Any], Any]:
    name = type(node).__name__
    kind = "BufferLoad" if name == "ProducerLoad" else name
    method: Callable[[Any], Any] = getattr(functor, _method_name(kind), None) or functor.visit_children
    return method


def _with_methods(cls: _Class) -> _Class:
    """Adds a method for each kind of node, which handles the node as ``visit_children`` does."""

    def method_for(kind: str) -> Callable[[Any, Any], Any]:
        def visit(self: Any, op: Any) -> Any:
            return self.visit_children(op)

        visit.__name__ = _method_name(kind)
        visit.__doc__ = f"Handles a ``{kind}``. By default, handles its parts."
        return visit

    for kind in (*_STATEMENTS, *_EXPRESSIONS):
        setattr(cls, _method_name(kind), method_for(kind))
    return cls


@_with_methods
class PyStmtExprVisitor:
    """Visits the statements and expressions of a loop function. Subclasses define methods such as ``visit_for_`` and
    ``visit_buffer_load_``, which handle nodes instead of the default."""

    def visit_stmt(self, stmt: Any) -> None:
        """Visits a statement, or the body of a function."""
        node = stmt.body if isinstance(stmt, PrimFunc) else stmt
        _method_of(self, node)(node)

    def visit_expr(self, expr: PrimExpr) -> None:
        """Visits an expression."""
        _method_of(self, expr)(expr)

    def visit_children(self, node: Any) -> None:
        """Visits the parts of a node."""
        for part in _parts(node):
            if isinstance(part, PrimExpr):
                self.visit_expr(part)
            else:
                self.visit_stmt(part)


class _Children(_Rewrite):
    """Rebuilds the parts of a statement with the methods of a mutator."""

    def __init__(self, functor: Any) -> None:
        super().__init__(None, None, None)
        self._functor = functor

    def visit(self, node: Any) -> Any:
        return self._functor.visit_expr(node) if isinstance(node, PrimExpr) else self._functor.visit_stmt(node)


@_with_methods
class PyStmtExprMutator:
    """Rewrites the statements and expressions of a loop function. Methods return the new node. Nodes that do not change are
    returned as the same objects."""

    def visit_stmt(self, stmt: Any) -> Any:
        """Returns a new statement, or a new function for a function."""
        if isinstance(stmt, PrimFunc):
            body = stmt.body
            new = self.visit_stmt(body)
            return stmt if new is body else stmt.with_body(new)
        return _method_of(self, stmt)(stmt)

    def visit_expr(self, expr: PrimExpr) -> PrimExpr:
        """Returns a new expression."""
        new: PrimExpr = _method_of(self, expr)(expr)
        return new

    def visit_children(self, node: Any) -> Any:
        """Rebuilds a node from its visited parts."""
        if not isinstance(node, PrimExpr):
            return _Children(self)._children(node)
        operands = _core.tir_operands(node)
        new = [self.visit_expr(operand) for operand in operands]
        same = all(a.same_as(b) for a, b in zip(operands, new, strict=True))
        return node if same else _core.tir_with_operands(node, new)


def _decorate(cls: _Class, base: type) -> _Class:
    if not issubclass(cls, base):
        raise TypeError(f"the decorator requires a subclass of {base.__name__}, but {cls.__name__} is not one")
    cls._cls = cls  # type: ignore[attr-defined]
    return cls


def visitor(cls: _Class) -> _Class:
    """Marks a subclass of :class:`PyStmtExprVisitor`. Code written for TVM uses this decorator. Raises ``TypeError`` for other
    classes."""
    return _decorate(cls, PyStmtExprVisitor)


def mutator(cls: _Class) -> _Class:
    """Marks a subclass of :class:`PyStmtExprMutator`. Code written for TVM uses this decorator. Raises ``TypeError`` for other
    classes."""
    return _decorate(cls, PyStmtExprMutator)
