"""Functions with parameters or sizes bound, as the methods of ``relax.Function`` make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pliant import _core, transform


def bind_params(func: Any, binding_map: Mapping[Any, Any]) -> Any:
    """The function with parameters bound to constants."""
    return _alone(func, transform.BindParams("main", dict(binding_map)))


def bind_symbolic_vars(func: Any, binding_map: Mapping[Any, Any]) -> Any:
    """The function with values for symbolic sizes: numbers or expressions over sizes."""
    return _alone(func, transform.BindSymbolicVars(dict(binding_map), "main"))


def _alone(func: Any, one: transform.Pass) -> Any:
    return one(_core.IRModule({"main": func}))["main"]


__all__ = ["bind_params", "bind_symbolic_vars"]
