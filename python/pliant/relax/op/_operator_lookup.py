"""Looks up the operators of the library and of the user by name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pliant import _core

_relax = _core.relax
_cache: dict[str, Any] = {}


class Group(ModuleType):
    """A group of operators, such as ``relax.op.nn``."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"pliant.relax.op.{prefix}", f"The operators under ``R.{prefix}``.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return find(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        return names(self._prefix + ".")


def names(prefix: str) -> list[str]:
    """Returns the names of operators and groups that start with ``relax.`` and the prefix, without this start."""
    start = "relax." + prefix
    return sorted({n[len(start) :].split(".")[0] for n in _relax.op_names() if n.startswith(start)})


def find(path: str) -> Any:
    """Returns the operator or group with this name.

    Raises ``AttributeError`` if there is none.
    """
    if path in _cache:
        return _cache[path]
    try:
        value: Any = _relax.get_op(path)
    except ValueError:
        if not names(path + "."):
            raise AttributeError(f"no operator is called 'relax.{path}'") from None
        value = Group(path)
        # Makes the group importable with ``import pliant.relax.op.nn``.
        sys.modules[value.__name__] = value
    _cache[path] = value
    return value


def forget(path: str) -> None:
    """Removes a name from the cache, so that the next use looks it up again."""
    _cache.pop(path, None)


__all__ = ["Group", "find", "forget", "names"]
