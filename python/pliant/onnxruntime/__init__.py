"""Runs ONNX models behind the interface of ONNX Runtime.

>>> import pliant.onnxruntime as onnxruntime
>>> session = onnxruntime.InferenceSession("model.onnx")
>>> session.run(None, {"x": x})

``install()`` makes ``import onnxruntime`` return this package, and ``python -m pliant.onnxruntime script.py`` does so for a script
that stays as it is. The package ``onnxruntime`` need not be installed, and is never imported.
"""

from __future__ import annotations

from pliant.onnxruntime._devices import OrtArenaCfg, OrtDevice, OrtDeviceVendorId, OrtMemoryInfo
from pliant.onnxruntime._enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from pliant.onnxruntime._inference_session import InferenceSession
from pliant.onnxruntime._install import install, uninstall
from pliant.onnxruntime._io_binding import IOBinding
from pliant.onnxruntime._log import set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity
from pliant.onnxruntime._metadata import ModelMetadata, NodeArg
from pliant.onnxruntime._options import RunOptions, SessionOptions, set_global_thread_pool_sizes
from pliant.onnxruntime._ortvalue import OrtValue, OrtValueVector, copy_tensors
from pliant.onnxruntime._process import (
    create_and_register_allocator,
    create_and_register_allocator_v2,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_ep_devices,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    print_debug_info,
    register_execution_provider_library,
    set_seed,
    unregister_execution_provider_library,
)
from pliant.onnxruntime._providers import get_all_providers, get_available_providers, get_device
from pliant.onnxruntime._unsupported import (
    AdapterFormat,
    LoraAdapter,
    ModelCompiler,
    OrtEpDevice,
    OrtExternalInitializerInfo,
    OrtHardwareDevice,
    OrtSyncStream,
    SparseTensor,
)
from pliant.onnxruntime._version import API_VERSION as __version__

SessionIOBinding = IOBinding
__author__ = "Pliant"
package_name = "onnxruntime"
version = __version__
cuda_version = ""

__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "__version__",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "install",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "uninstall",
    "unregister_execution_provider_library",
]
