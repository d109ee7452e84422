"""Devices that Pliant does not have. Programs written for TVM name them before they ask whether they exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pliant.error import UnsupportedError

__all__ = ["ABSENT_DEVICES", "AbsentDevice", "device_constructor"]

ABSENT_DEVICES = ("cuda", "ext_dev", "gpu", "hexagon", "metal", "mtl", "opencl", "rocm", "vpi", "vulkan", "webgpu")


@dataclass(frozen=True)
class AbsentDevice:
    """A device that Pliant does not have. Using it raises ``UnsupportedError``."""

    device_name: str
    device_id: int = 0

    @property
    def exist(self) -> bool:
        """``False``."""
        return False

    @property
    def index(self) -> int:
        """The number of the device."""
        return self.device_id

    def sync(self) -> None:
        """Raises ``UnsupportedError``."""
        raise UnsupportedError(f"there is no device {self.device_name}({self.device_id}): Pliant runs on the CPU, tvm.cpu()")


def device_constructor(name: str) -> Callable[..., AbsentDevice]:
    """Returns the function ``tvm.NAME(index)`` of a device that Pliant does not have."""

    def device(dev_id: int = 0) -> AbsentDevice:
        return AbsentDevice(name, dev_id)

    device.__name__ = name
    device.__doc__ = f"Returns a {name} device, which does not exist."
    return device
