"""Binding of parameters and sizes, for the methods of ``relax.Function``.

The parameter ``origin`` is a pair: the module from which a function was taken, and the name of the function in that module. It
provides the other functions that the function calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pliant import _core, transform

_Origin = tuple[Any, str]


def bind_params(func: Any, binding_map: Mapping[Any, Any], origin: _Origin | None = None) -> Any:
    """Returns the function with parameters bound to constants."""
    module, name = _containing_module(func, origin)
    return transform.BindParams(name, dict(binding_map))(module)[name]


def bind_symbolic_vars(func: Any, binding_map: Mapping[Any, Any], origin: _Origin | None = None) -> Any:
    """Returns the function with symbolic sizes replaced by numbers or expressions over sizes."""
    module, name = _containing_module(func, origin)
    return transform.BindSymbolicVars(dict(binding_map), name)(module)[name]


def _containing_module(func: Any, origin: _Origin | None) -> tuple[Any, str]:
    """Returns a module that contains the function, and the name of the function in this module."""
    if origin is None:
        return _core.IRModule({"main": func}), "main"
    module, name = origin
    module = module.clone()
    module[name] = func
    return module, name


__all__ = ["bind_params", "bind_symbolic_vars"]
