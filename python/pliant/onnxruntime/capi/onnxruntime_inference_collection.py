"""``onnxruntime.capi.onnxruntime_inference_collection``: sessions and values."""

from __future__ import annotations

from pliant.onnxruntime._devices import OrtDevice, OrtDeviceVendorId, get_ort_device_type
from pliant.onnxruntime._io_binding import IOBinding
from pliant.onnxruntime._ortvalue import OrtValue, copy_tensors
from pliant.onnxruntime._providers import check_and_normalize_provider_args
from pliant.onnxruntime._session import InferenceSession, Session

__all__ = [
    "IOBinding",
    "InferenceSession",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "check_and_normalize_provider_args",
    "copy_tensors",
    "get_ort_device_type",
]
