"""Modules: the frame of ``I.ir_module``."""

from __future__ import annotations

from typing import Any

from pliant import _core
from pliant.script.ir_builder.base import IRBuilder, IRBuilderFrame

__all__ = ["IRModuleFrame", "decl_function", "def_function", "ir_module", "module_attrs", "module_set_attr"]

_relax = _core.relax


class IRModuleFrame(IRBuilderFrame):
    """A module under construction."""

    def __init__(self) -> None:
        self.functions: dict[str, Any] = {}
        self.attrs: dict[str, Any] = {}

    def finish(self) -> None:
        """Makes the module the result of the builder."""
        module = _core.IRModule(self.functions)
        IRBuilder.current().result = module.with_attrs(self.attrs) if self.attrs else module


def ir_module(**options: Any) -> IRModuleFrame:
    """Opens a module. ``options`` are ignored."""
    return IRModuleFrame()


def module_attrs(attrs: dict[str, Any], allow_overwrite: bool = False) -> None:
    """Sets attributes of the module."""
    IRBuilder.current().find(IRModuleFrame, "module_attrs").attrs.update(attrs)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """Sets an attribute of the module."""
    module_attrs({attr_key: attr_value})


def decl_function(func_name: str, func_signature: Any) -> Any:
    """Declares a function and returns its global variable. ``func_signature`` is a function with the same parameters."""
    def_function(func_name, func_signature)
    return _relax.GlobalVar(func_name)


def def_function(func_name: str, func: Any) -> None:
    """Defines a function of the module."""
    IRBuilder.current().find(IRModuleFrame, "def_function").functions[func_name] = func
