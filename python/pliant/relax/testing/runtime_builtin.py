"""The codes of the VM builtins ``vm.builtin.match_shape`` and ``vm.builtin.make_shape``."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MakeShapeCode", "MatchShapeCode"]


class MatchShapeCode(IntEnum):
    """What ``vm.builtin.match_shape`` does with a dim."""

    ASSERT_EQUAL_TO_IMM = 0
    """Checks that the dim is a number."""
    STORE_TO_HEAP = 1
    """Writes the dim to a slot of the shape heap."""
    NO_OP = 2
    """Ignores the dim."""
    ASSERT_EQUAL_TO_LOAD = 3
    """Checks that the dim is the value of a slot of the shape heap."""


class MakeShapeCode(IntEnum):
    """Where ``vm.builtin.make_shape`` gets a dim from."""

    USE_IMM = 0
    """The dim is a number."""
    LOAD_SHAPE = 1
    """The dim is the value of a slot of the shape heap."""
