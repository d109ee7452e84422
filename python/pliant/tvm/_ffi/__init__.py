"""The names of TVM's foreign function interface before 0.20."""

from __future__ import annotations

from pliant.error import TVMError
from pliant.registry import get_global_func, list_global_func_names, register_func, remove_global_func

__all__ = ["TVMError", "get_global_func", "list_global_func_names", "register_func", "remove_global_func"]
