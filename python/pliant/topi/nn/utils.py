"""Helper functions for the padding of convolutions, as in TVM's ``topi.nn.utils``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d"]


def _pads(padding: Any, kernel: Sequence[Any], n: int) -> tuple[Any, ...]:
    """Returns the padding before each of ``n`` dims, followed by the padding after each.

    Raises ``ValueError`` unless ``padding`` is ``"SAME"``, ``"VALID"``, one number, ``n`` or
    ``2 * n`` numbers.
    """
    if isinstance(padding, (tuple, list)):
        if len(padding) == 2 * n:
            return tuple(padding)
        if len(padding) != n:
            raise ValueError(f"the padding of a topi operator must have {n} or {2 * n} values, got {len(padding)}")
        return (*padding, *padding)
    if padding == "VALID":
        lost: list[Any] = [0] * n
    elif padding == "SAME":
        lost = [k - 1 for k in kernel]
    elif isinstance(padding, int):
        lost = [2 * padding] * n
    else:
        raise ValueError(f"the padding of a topi operator must be 'SAME', 'VALID' or numbers, got {padding!r}")
    before = [(w + 1) // 2 for w in lost]
    return (*before, *(w - b for w, b in zip(lost, before, strict=True)))


def get_pad_tuple(padding: Any, kernel: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the padding at the top, left, bottom and right. For ``"SAME"``, the padding before a
    dim is one larger than after it if their sum is odd.

    Raises ``ValueError`` unless ``padding`` is ``"SAME"``, ``"VALID"``, one number, two or four
    numbers.
    """
    return _pads(padding, kernel, 2)


def get_pad_tuple1d(padding: Any, kernel: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the padding at the left and right. The arguments are those of :func:`get_pad_tuple`."""
    return _pads(padding, kernel, 1)


def get_pad_tuple3d(padding: Any, kernel: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the padding at the front, top, left, back, bottom and right. The arguments are those of :func:`get_pad_tuple`."""
    return _pads(padding, kernel, 3)
