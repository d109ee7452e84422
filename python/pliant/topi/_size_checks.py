"""Checks of sizes and indices. A violation that is known when the expression is built raises
``ValueError``. Other checks run before the stage runs."""

from __future__ import annotations

from typing import Any

from pliant import _core, tir
from pliant._core import Tensor
from pliant.topi.utils import get_const_tuple, simplify

__all__ = ["require_condition", "require_equal_sizes", "require_indices_within"]


def require_condition(stage: Tensor, condition: Any, message: str, *sizes: Any) -> Tensor:
    """Returns ``stage`` with a check that ``condition`` holds. ``sizes`` replace the placeholders
    ``{0}``, ``{1}`` and so on in the error message.

    Raises ``ValueError`` if the condition is known not to hold.
    """
    (known,) = get_const_tuple([simplify(condition)])
    if isinstance(known, (bool, int)):
        if known:
            return stage
        raise ValueError(message.format(*(simplify(t) for t in sizes)))
    return _core.te_checked(stage, [], lambda: (condition, *sizes), "shape", message)


def require_equal_sizes(stage: Tensor, name: str, *pairs: tuple[str, Any, Any]) -> Tensor:
    """Returns ``stage`` with a check that sizes are equal. Each of ``pairs`` is a description, the
    size, and the expected size.

    Raises ``ValueError`` if the sizes are known to differ.
    """
    for what, size, expected in pairs:
        message = f"{name}: {what} has the size {{0}}, not {{1}}"
        stage = require_condition(stage, tir.const(size) == expected, message, size, expected)
    return stage


def require_indices_within(stage: Tensor, indices: Tensor, name: str, axis: int, size: Any) -> Tensor:
    """Returns ``stage`` with a run-time check that all elements of ``indices`` are in
    ``0 .. size - 1``. ``name`` is the operator that uses them as indices of axis ``axis``."""

    def within(*i: Any) -> Any:
        index = indices(*i).astype("int64")
        return tir.all(index >= 0, index < size), index, size

    message = f"{name}: index {{0}} is out of range for axis {axis} of size {{1}}"
    return _core.te_checked(stage, indices.shape, within, "index", message)
