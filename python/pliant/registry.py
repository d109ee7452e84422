"""Packed functions: Python functions that programs call by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from pliant import _core
from pliant._core import PackedFunction

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "get_global_func",
    "list_global_func_names",
    "register_func",
    "register_global_func",
    "remove_global_func",
]


@overload
def register_func(func_name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...
@overload
def register_func(func_name: str, f: F, override: bool = False) -> F: ...
@overload
def register_func(func_name: F, f: None = None, override: bool = False) -> F: ...
def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Registers a function under a name, by which programs can call it. Also works as a decorator,
    with or without a name.

    Programs call the function with run-time values (tensors as ``NDArray``). Arrays that the
    function returns are shared and not copied. A function in destination-passing style writes into
    its last argument and returns nothing. Names of the form ``relax.ext.backend`` are reserved for
    code generators of backends: see ``relax.backend.register_codegen``.

    Raises ``TypeError`` if ``f`` is not callable, and ``ValueError`` if the name is taken, unless
    ``override`` is set.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def register(func: Any) -> Any:
        if not callable(func):
            raise TypeError(f"a packed function must be callable, got {type(func).__name__}")
        if func_name.startswith("relax.ext."):
            from pliant.relax.backend import register_codegen

            return register_codegen(func_name.removeprefix("relax.ext."), func)
        _core.registry_register(func_name, func, override)
        return func

    return register if f is None else register(f)


register_global_func = register_func


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunction | None:
    """Returns the function that is registered under a name.

    Raises ``ValueError`` if there is none. With ``allow_missing``, returns ``None`` instead.
    """
    func = _core.registry_get(name)
    if func is None and not allow_missing:
        raise ValueError(f"no packed function is registered as '{name}'")
    return func


def remove_global_func(name: str) -> None:
    """Removes a function from the registry.

    Raises ``ValueError`` if no function is registered under the name.
    """
    if not _core.registry_remove(name):
        raise ValueError(f"no packed function is registered as '{name}'")


def list_global_func_names() -> list[str]:
    """Returns the names of all registered functions."""
    return _core.registry_names()
