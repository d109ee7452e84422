"""Classes of ONNX Runtime that Pliant does not have. They can be imported; their use raises ``NotImplemented``."""

from __future__ import annotations

from typing import Any, NoReturn

from pliant.onnxruntime._status import NotImplemented, status_error

__all__ = [
    "AdapterFormat",
    "LoraAdapter",
    "ModelCompiler",
    "OrtEpDevice",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtSyncStream",
    "SparseTensor",
]


class _UnsupportedClass(type):
    """The type of classes that cannot be used."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise status_error(NotImplemented, f"{cls.__name__} is not supported by pliant.onnxruntime")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        raise status_error(NotImplemented, f"{cls.__name__}.{name} is not supported by pliant.onnxruntime")


class AdapterFormat(metaclass=_UnsupportedClass):
    """Not supported: files of LoRA adapters."""


class LoraAdapter(metaclass=_UnsupportedClass):
    """Not supported: LoRA adapters."""


class ModelCompiler(metaclass=_UnsupportedClass):
    """Not supported: models that contain compiled parts. ``pliant.compile`` and ``Model.save`` store compiled models."""


class OrtEpDevice(metaclass=_UnsupportedClass):
    """Not supported: devices of execution providers that are plugins."""


class OrtExternalInitializerInfo(metaclass=_UnsupportedClass):
    """Not supported: positions of weights in other files."""


class OrtHardwareDevice(metaclass=_UnsupportedClass):
    """Not supported: descriptions of hardware."""


class OrtSyncStream(metaclass=_UnsupportedClass):
    """Not supported: streams of devices."""


class SparseTensor(metaclass=_UnsupportedClass):
    """Not supported: sparse tensors."""
