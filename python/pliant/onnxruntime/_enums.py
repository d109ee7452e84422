"""The enumerations of ONNX Runtime's interface. As there, members convert to their numbers with ``int``, but do not equal them."""

from __future__ import annotations

from enum import Enum

__all__ = [
    "ArenaExtendStrategy",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "OrtAllocatorType",
    "OrtDeviceMemoryType",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
]


class _Number(Enum):
    """An enumeration whose members convert to integers."""

    def __int__(self) -> int:
        number: int = self.value
        return number

    __index__ = __int__


class GraphOptimizationLevel(_Number):
    """How much a session optimizes the graph."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Number):
    """Whether independent nodes may run in parallel. Pliant parallelizes loops instead."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Number):
    """The order in which nodes run. Pliant always uses its own."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(_Number):
    """The kinds of allocators."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Number):
    """The kinds of memory. ``CPU`` is another name of ``CPU_OUTPUT``."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtSparseFormat(_Number):
    """The formats of sparse tensors."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtDeviceMemoryType(_Number):
    """Who can access the memory of a device."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(_Number):
    """The kinds of devices that have memory."""

    CPU = 0
    GPU = 1
    NPU = 2
    FPGA = 3


class OrtHardwareDeviceType(_Number):
    """The kinds of hardware."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(_Number):
    """How a session selects its device. Pliant always uses the CPU."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(_Number):
    """How an arena allocator grows. Without effect in Pliant."""

    kNextPowerOfTwo = 0  # noqa: N815 (the name of ONNX Runtime)
    kSameAsRequested = 1  # noqa: N815
