"""Arrays, under the module name of older versions of TVM."""

from __future__ import annotations

from pliant.runtime import Device, NDArray, cpu, device, empty, from_dlpack
from pliant.runtime import tensor as array

__all__ = ["Device", "NDArray", "array", "cpu", "device", "empty", "from_dlpack"]
