"""``onnxruntime.capi.onnxruntime_inference_collection``: sessions and values."""

from __future__ import annotations

from pliant.onnxruntime._devices import OrtDevice, OrtDeviceVendorId, get_ort_device_type
from pliant.onnxruntime._inference_session import InferenceSession
from pliant.onnxruntime._io_binding import IOBinding
from pliant.onnxruntime._ortvalue import OrtValue, copy_tensors
from pliant.onnxruntime._providers import check_and_normalize_provider_args
from pliant.onnxruntime._session import Session
from pliant.onnxruntime._unsupported import AdapterFormat, ModelCompiler, SparseTensor

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "check_and_normalize_provider_args",
    "copy_tensors",
    "get_ort_device_type",
]
