"""Requirements on sizes and indices. A violation that is known when the expression is built raises
an exception. Other requirements are checked at run time before the stage runs."""

from __future__ import annotations

from typing import Any

from pliant import _core, tir
from pliant._core import Tensor
from pliant.topi.utils import get_const_tuple, simplify

__all__ = ["indices_within", "sizes_agree", "sizes_hold"]


def sizes_hold(stage: Tensor, condition: Any, message: str, *told: Any) -> Tensor:
    """``stage`` with the requirement that ``condition`` holds. The placeholders ``{0}``, ``{1}``
    and so on in the message stand for the sizes ``told``.

    Raises ``ValueError`` if the condition is known not to hold.
    """
    (known,) = get_const_tuple([simplify(condition)])
    if isinstance(known, (bool, int)):
        if known:
            return stage
        raise ValueError(message.format(*(simplify(t) for t in told)))
    return _core.te_checked(stage, [], lambda: (condition, *told), "shape", message)


def sizes_agree(stage: Tensor, name: str, *pairs: tuple[str, Any, Any]) -> Tensor:
    """``stage`` with the requirement that the sizes in each pair are equal. A pair is a
    description, the size, and the expected size.

    Raises ``ValueError`` if the sizes are known to differ.
    """
    for what, size, wanted in pairs:
        message = f"{name}: {what} has the size {{0}}, not {{1}}"
        stage = sizes_hold(stage, tir.const(size) == wanted, message, size, wanted)
    return stage


def indices_within(stage: Tensor, indices: Tensor, name: str, axis: int, size: Any) -> Tensor:
    """``stage`` with the requirement that all indices lie in ``0 .. size``, the size of axis
    ``axis`` that ``name`` reads."""

    def within(*i: Any) -> Any:
        index = indices(*i).astype("int64")
        return tir.all(index >= 0, index < size), index, size

    message = f"{name}: index {{0}} is out of range for axis {axis} of size {{1}}"
    return _core.te_checked(stage, indices.shape, within, "index", message)
