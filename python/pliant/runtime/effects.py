"""The packed functions of ``nn.IOEffect``: printing, and calls of debug functions."""

from __future__ import annotations

import builtins
from typing import Any

from pliant._core import NDArray
from pliant.registry import get_global_func


def print(state: Any, array: NDArray) -> Any:  # noqa: A001
    """Prints an array. Returns the state."""
    builtins.print(f"effect.print: shape = {array.shape}, dtype = {array.dtype}, data =\n{array.numpy()}")
    return state


def invoke_debug_func(state: Any, function: str, line: str, *args: Any) -> Any:
    """Calls a debug function with the position of the call in the source. Returns the state."""
    if function == "vm.builtin.debug_print":
        for arg in args:
            text = f"shape = {arg.shape}, dtype = {arg.dtype}, data =\n{arg.numpy()}" if isinstance(arg, NDArray) else arg
            builtins.print(f"[{line}] {text}")
        return state
    func: Any = get_global_func(function)
    func(line, *args)
    return state


__all__ = ["invoke_debug_func", "print"]
