"""Small classes of TVM's IR that describe modules and devices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pliant.target import Target

__all__ = ["CallingConv", "DummyGlobalInfo", "GlobalInfo", "SequentialSpan", "VDevice"]


class CallingConv(IntEnum):
    """The calling conventions of functions. Pliant's functions have the default one."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class GlobalInfo:
    """The base of information that belongs to a whole module."""


@dataclass(frozen=True)
class DummyGlobalInfo(GlobalInfo):
    """Information without content."""


@dataclass(frozen=True)
class VDevice(GlobalInfo):
    """A device on which a value is placed. Only the CPU exists.

    Raises ``UnsupportedError`` for a target other than the CPU, unless ``import tvm`` is Pliant.
    """

    target: Any = "llvm"
    vdevice_id: int = 0
    memory_scope: str = "global"

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target(self.target))


@dataclass(frozen=True)
class SequentialSpan:
    """Several source locations."""

    spans: tuple[Any, ...] = ()
