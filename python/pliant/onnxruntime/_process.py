"""Functions that concern the whole process. Most are accepted for compatibility and do nothing."""

from __future__ import annotations

import operator
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, SupportsIndex

from pliant.onnxruntime._status import Fail, status_error
from pliant.onnxruntime._version import API_VERSION

__all__ = [
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_build_info",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_seed",
    "unregister_execution_provider_library",
]


def get_version_string() -> str:
    """Returns the version of ONNX Runtime whose interface this package has."""
    return API_VERSION


def get_build_info() -> str:
    """Returns a text that names Pliant and its version."""
    return f"Pliant Build Info: version {_pliant_version()}, with the interface of ONNX Runtime {API_VERSION}"


def _pliant_version() -> str:
    try:
        return version("pliant")
    except PackageNotFoundError:
        return "(not installed)"


def print_debug_info() -> None:
    """Prints the versions of Pliant, Python and the platform."""
    print(get_build_info())
    print("Python:", platform.python_version())
    print("platform:", platform.platform())


def set_seed(seed: SupportsIndex) -> None:
    """Checks its argument and does nothing: random operators of a model have seeds of their own."""
    operator.index(seed)


def has_collective_ops() -> bool:
    """Whether there are operators for several devices: ``False``."""
    return False


def get_ep_devices() -> list[Any]:
    """Returns the devices of plugins: none."""
    return []


def register_execution_provider_library(registration_name: str, library_path: str) -> None:
    """Raises ``Fail``: Pliant cannot load execution providers."""
    raise status_error(Fail, f"Pliant cannot load the execution provider '{registration_name}' ({library_path})")


def unregister_execution_provider_library(registration_name: str) -> None:
    """Raises ``Fail``: no execution provider is registered."""
    raise status_error(Fail, f"the execution provider '{registration_name}' is not registered")


def create_and_register_allocator(memory_info: object, arena_cfg: object = None) -> None:
    """Does nothing. ``pliant.runtime.set_memory_limit`` limits memory."""


def create_and_register_allocator_v2(
    provider_type: str, memory_info: object, options: object = None, arena_cfg: object = None
) -> None:
    """Does nothing. ``pliant.runtime.set_memory_limit`` limits memory."""


def enable_telemetry_events() -> None:
    """Does nothing: Pliant sends no telemetry."""


def disable_telemetry_events() -> None:
    """Does nothing: Pliant sends no telemetry."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: Pliant needs no libraries of GPUs."""
