"""The packed functions that Pliant defines in Python. They are registered when the package is imported; a module with the code of a
function is imported when the function is called first."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from pliant import _core

_KV_CACHE = "pliant.runtime.kv_cache"

# The module of each function, by the start of its name. The rest of the name is the name of the function in the module.
_FUNCTIONS = {
    ("effect.", "pliant.runtime.effects"): ("print",),
    ("vm.builtin.", "pliant.runtime.effects"): ("invoke_debug_func",),
    ("vm.builtin.", f"{_KV_CACHE}.contiguous"): (
        "attention_kv_cache_append",
        "attention_kv_cache_array_clear",
        "attention_kv_cache_array_popn",
        "attention_kv_cache_create",
        "attention_kv_cache_create_multiple",
        "attention_kv_cache_update",
        "attention_kv_cache_view",
        "attention_kv_cache_window_override",
        "attention_kv_cache_window_override_with_sinks",
    ),
}


def _deferred(module: str, name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return getattr(import_module(module), name)(*args)

    call.__name__ = name
    return call


def register() -> None:
    """Registers the functions, unless functions with their names are registered."""
    known = set(_core.registry_names())
    for (prefix, module), names in _FUNCTIONS.items():
        for name in names:
            if prefix + name not in known:
                _core.registry_register(prefix + name, _deferred(module, name))


__all__ = ["register"]
