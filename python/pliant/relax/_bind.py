"""Functions with bound parameters or sizes, for the methods of ``relax.Function``.

``place`` is the module from which a function was taken and its name there. The module contains the
functions that it calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pliant import _core, transform

_Place = tuple[Any, str]


def bind_params(func: Any, binding_map: Mapping[Any, Any], place: _Place | None = None) -> Any:
    """The function with parameters bound to constants."""
    module, name = _around(func, place)
    return transform.BindParams(name, dict(binding_map))(module)[name]


def bind_symbolic_vars(func: Any, binding_map: Mapping[Any, Any], place: _Place | None = None) -> Any:
    """The function with symbolic sizes replaced by numbers or expressions over sizes."""
    module, name = _around(func, place)
    return transform.BindSymbolicVars(dict(binding_map), name)(module)[name]


def _around(func: Any, place: _Place | None) -> tuple[Any, str]:
    """A module that contains the function, and the name of the function there."""
    if place is None:
        return _core.IRModule({"main": func}), "main"
    module, name = place
    module = module.clone()
    module[name] = func
    return module, name


__all__ = ["bind_params", "bind_symbolic_vars"]
