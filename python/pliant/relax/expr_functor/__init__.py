"""Visitors and mutators of the graph level.

>>> @mutator
... class ReplaceAdd(PyExprMutator):
...     def visit_call_(self, call):
...         call = self.visit_expr_post_order(call)
...         if call.op == relax.op.add:
...             return relax.op.multiply(call.args[0], call.args[1])
...         return call
>>> new = ReplaceAdd(mod).visit_expr(mod["main"])    # the same object if nothing changed

Each kind of expression has a method whose name ends in an underscore. A subclass overrides it to
change the handling of that kind. ``super()`` or ``visit_expr_post_order`` performs the default
handling. Bindings are visited in a loop, so the depth of Python's stack depends on the nesting of
branches and functions and not on the number of bindings.
"""

from __future__ import annotations

from pliant.relax.expr_functor._functor import ExprFunctor
from pliant.relax.expr_functor._mutator import ExprMutator, ExprMutatorBase, PyExprMutator, mutator
from pliant.relax.expr_functor._visitor import ExprVisitor, PyExprVisitor, visitor

__all__ = [
    "ExprFunctor",
    "ExprMutator",
    "ExprMutatorBase",
    "ExprVisitor",
    "PyExprMutator",
    "PyExprVisitor",
    "mutator",
    "visitor",
]
