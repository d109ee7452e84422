"""Devices and descriptions of memory. Everything lies in host memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from pliant.onnxruntime._enums import OrtAllocatorType, OrtDeviceMemoryType, OrtMemoryInfoDeviceType, OrtMemType

__all__ = ["OrtArenaCfg", "OrtDevice", "OrtDeviceVendorId", "OrtMemoryInfo", "check_device", "get_ort_device_type"]

# The numbers of the kinds of devices, by the names that ONNX Runtime accepts.
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "gpu": 1, "dml": 1, "webgpu": 1, "fpga": 2, "npu": 3, "cann": 3}


class OrtDeviceVendorId(IntEnum):
    """The vendors of devices."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


# The vendors of devices with names of their own.
_VENDORS = {"cuda": OrtDeviceVendorId.NVIDIA, "dml": OrtDeviceVendorId.MICROSOFT, "cann": OrtDeviceVendorId.HUAWEI}


def get_ort_device_type(device_type: str) -> int:
    """Returns the number of a kind of device. Raises ``Exception``, as ONNX Runtime, for unknown names."""
    if device_type not in _DEVICE_TYPES:
        raise Exception(f"Unsupported device type: {device_type}")
    return _DEVICE_TYPES[device_type]


def check_device(device_type: str) -> None:
    """Checks that memory on the device can be allocated.

    Raises ``RuntimeError`` for devices other than the CPU, and ``Exception`` for unknown names.
    """
    if get_ort_device_type(device_type) != 0:
        raise RuntimeError(
            f"Can't allocate memory on the device '{device_type}': Pliant runs on the CPU; pass device_type='cpu'"
        )


class OrtDevice:
    """A device: its kind, the kind of its memory, its vendor and its number."""

    def __init__(self, device_type: int, memory_type: int, *ids: int) -> None:
        """``ids`` are the number of the device, or the numbers of the vendor and of the device."""
        self._device_type, self._memory_type = device_type, memory_type
        self._vendor_id, self._device_id = (0, *ids)[-2:] if ids else (0, 0)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Creates a device from the name of its kind. Raises ``Exception`` for an unknown name."""
        kind = get_ort_device_type(ort_device_name)
        vendor = _VENDORS.get(ort_device_name, OrtDeviceVendorId.NONE) if vendor_id < 0 else vendor_id
        return OrtDevice(kind, 0, vendor, device_id)

    def _get_c_device(self) -> OrtDevice:
        return self

    def device_id(self) -> int:
        """Returns the number of the device."""
        return self._device_id

    def device_type(self) -> int:
        """Returns the number of the kind of device, which is 0 for CPUs."""
        return self._device_type

    def device_vendor_id(self) -> int:
        """Returns the number of the vendor."""
        return self._vendor_id

    def device_mem_type(self) -> int:
        """Returns the number of the kind of memory."""
        return self._memory_type

    vendor_id, mem_type = device_vendor_id, device_mem_type

    @staticmethod
    def cpu() -> int:
        """Returns the number of CPUs as a kind of device."""
        return _DEVICE_TYPES["cpu"]

    @staticmethod
    def cuda() -> int:
        """Returns the number of GPUs as a kind of device."""
        return _DEVICE_TYPES["cuda"]

    gpu = dml = webgpu = cuda

    @staticmethod
    def npu() -> int:
        """Returns the number of NPUs as a kind of device."""
        return _DEVICE_TYPES["npu"]

    cann = npu

    @staticmethod
    def fpga() -> int:
        """Returns the number of FPGAs as a kind of device."""
        return _DEVICE_TYPES["fpga"]

    @staticmethod
    def default_memory() -> int:
        """Returns the number of the ordinary kind of memory."""
        return 0


@dataclass(frozen=True)
class OrtMemoryInfo:
    """Where memory lies."""

    name: str = "Cpu"
    """The name of the allocator."""
    allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_DEVICE_ALLOCATOR
    """The kind of allocator."""
    device_id: int = 0
    """The number of the device."""
    mem_type: OrtMemType = OrtMemType.DEFAULT
    """The kind of memory."""
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    """Who can access the memory."""
    device_vendor_id: int = 0
    """The number of the device's vendor."""

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Creates a description from all its parts. ``device_type`` and ``alignment`` are ignored."""
        return OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT, mem_type, vendor_id)


class OrtArenaCfg:
    """Settings of an arena allocator, which have no effect in Pliant: ``pliant.runtime.set_memory_limit`` limits memory."""

    max_mem: int
    """The maximum memory in bytes."""
    arena_extend_strategy: int
    """How the arena grows."""
    initial_chunk_size_bytes: int
    """The size of the first chunk."""
    max_dead_bytes_per_chunk: int
    """The unused bytes up to which a chunk is not split."""
    initial_growth_chunk_size_bytes: int
    """The size of the second chunk."""
    max_power_of_two_extend_bytes: int
    """The maximum size of a chunk."""

    def __init__(self, settings: Mapping[str, int] | int, *others: int) -> None:
        """Takes a dict, or the first four settings in the order of the attributes. Settings that are not given are -1.

        Raises ``RuntimeError`` for unknown names.
        """
        names = list(OrtArenaCfg.__annotations__)
        given = settings if isinstance(settings, Mapping) else dict(zip(names, (settings, *others), strict=False))
        for name in given:
            if name not in names:
                raise RuntimeError(f"Invalid OrtArenaCfg option: {name}")
        for name in names:
            setattr(self, name, given.get(name, -1))
