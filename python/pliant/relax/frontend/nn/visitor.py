"""Mutators of modules, which replace parameters, effects and modules inside a module."""

from __future__ import annotations

from typing import Any

from pliant.relax.frontend.nn.core import (
    Effect,
    Module,
    ModuleDict,
    ModuleList,
    Parameter,
    ParameterDict,
    ParameterList,
)

# The first class that matches a child determines the method that visits it.
_METHODS = (
    (ParameterDict, "visit_parameterdict"),
    (ParameterList, "visit_parameterlist"),
    (ModuleDict, "visit_moduledict"),
    (ModuleList, "visit_modulelist"),
    (Module, "visit_module"),
    (Effect, "visit_effect"),
    (Parameter, "visit_param"),
)


class Mutator:
    """Replaces parts of a module. A subclass overrides the methods for the parts to replace; each gets the name of a part and the
    part, and returns its replacement.

    >>> class ReplaceLinear(nn.Mutator):
    ...     def visit_module(self, name, node):
    ...         return MyLinear(node) if isinstance(node, nn.Linear) else self.visit(name, node)
    >>> model = ReplaceLinear().visit("", model)
    """

    def visit_module(self, name: str, node: Module) -> Any:
        """Visits a module. By default, visits its parts."""
        return self.visit(name, node)

    def visit_effect(self, name: str, node: Effect) -> Any:
        """Visits an effect. By default, keeps it."""
        return self.visit(name, node)

    def visit_param(self, name: str, node: Parameter) -> Any:
        """Visits a parameter. By default, keeps it."""
        return self.visit(name, node)

    def visit_modulelist(self, name: str, node: ModuleList) -> Any:
        """Visits a list of modules. By default, visits its items."""
        return self.visit(name, node)

    def visit_moduledict(self, name: str, node: ModuleDict) -> Any:
        """Visits a dict of modules. By default, visits its items."""
        return self.visit(name, node)

    def visit_parameterlist(self, name: str, node: ParameterList) -> Any:
        """Visits a list of parameters. By default, visits its items."""
        return self.visit(name, node)

    def visit_parameterdict(self, name: str, node: ParameterDict) -> Any:
        """Visits a dict of parameters. By default, visits its items."""
        return self.visit(name, node)

    def visit(self, name: str, node: Any) -> Any:
        """Replaces the parts of a node by the results of the other methods, and returns the node."""
        if not isinstance(node, Module):
            return node
        for key, child in list(node._children()):
            method = next((method for cls, method in _METHODS if isinstance(child, cls)), None)
            if method is not None:
                path = f"{name}.{key}" if name else key
                node._set_child(key, getattr(self, method)(path, child))
        return node


__all__ = ["Mutator"]
