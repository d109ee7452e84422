"""The names of execution providers. Pliant compiles for the CPU and accepts the names of all others, as ONNX Runtime does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "ALL_PROVIDERS",
    "AVAILABLE_PROVIDERS",
    "ProviderArgument",
    "check_and_normalize_provider_args",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "registered_providers",
]

ProviderArgument = Sequence[str | tuple[str, Mapping[Any, Any]]]
"""The type of the argument ``providers``: names, or names with options."""

CPU = "CPUExecutionProvider"
AVAILABLE_PROVIDERS = (CPU,)
# The names that ONNX Runtime 1.32 knows, in its order.
ALL_PROVIDERS = (
    "TensorrtExecutionProvider",
    "CUDAExecutionProvider",
    "MIGraphXExecutionProvider",
    "OpenVINOExecutionProvider",
    "DnnlExecutionProvider",
    "VitisAIExecutionProvider",
    "QNNExecutionProvider",
    "NnapiExecutionProvider",
    "VSINPUExecutionProvider",
    "JsExecutionProvider",
    "CoreMLExecutionProvider",
    "DmlExecutionProvider",
    "RknpuExecutionProvider",
    "WebNNExecutionProvider",
    "WebGpuExecutionProvider",
    "XnnpackExecutionProvider",
    "CANNExecutionProvider",
    "AzureExecutionProvider",
    CPU,
)


def get_all_providers() -> list[str]:
    """Returns the names of all execution providers that ONNX Runtime knows."""
    return list(ALL_PROVIDERS)


def get_available_providers() -> list[str]:
    """Returns the names of the execution providers that can be used: only the CPU's."""
    return list(AVAILABLE_PROVIDERS)


def get_device() -> str:
    """Returns the device for which sessions compile: ``CPU``."""
    return "CPU"


def check_and_normalize_provider_args(
    providers: ProviderArgument | None,
    provider_options: Sequence[Mapping[Any, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Returns the names of providers, each once, and the options of each as strings.

    Warns of unavailable and of repeated providers. Raises ``ValueError`` for arguments of another form.
    """
    if providers is None:
        return [], []
    if not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    found: dict[str, dict[str, str]] = {}
    for name, options in _pairs(providers, provider_options):
        if name not in available_provider_names:
            available = ", ".join(available_provider_names)
            text = f"Specified provider '{name}' is not in available provider names.Available providers: '{available}'"
            warnings.warn(text, stacklevel=4)
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    return list(found), list(found.values())


def _pairs(
    providers: ProviderArgument, provider_options: Sequence[Mapping[Any, Any]] | None
) -> list[tuple[str, Mapping[Any, Any]]]:
    """Combines the two arguments to pairs of names and options."""
    if provider_options is None:
        return [_pair(provider) for provider in providers]
    if not isinstance(provider_options, Sequence):
        raise ValueError("'provider_options' should be a sequence.")
    if len(providers) != len(provider_options):
        raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
    names = [provider for provider in providers if isinstance(provider, str)]
    if len(names) != len(providers):
        raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
    if not all(isinstance(options, Mapping) for options in provider_options):
        raise ValueError("'provider_options' values must be dicts.")
    return list(zip(names, provider_options, strict=True))


def _pair(provider: str | tuple[str, Mapping[Any, Any]]) -> tuple[str, Mapping[Any, Any]]:
    match provider:
        case str():
            return provider, {}
        case (str() as name, Mapping() as options):
            return name, options
    raise ValueError("'providers' values must be either strings or (string, dict) tuples.")


def registered_providers(names: Sequence[str]) -> list[str]:
    """Returns the providers that a session registers for the requested ones.

    Raises ``RuntimeError`` for a name that ONNX Runtime does not know.
    """
    for name in names:
        if name not in ALL_PROVIDERS:
            raise RuntimeError(f"Unknown Provider Type: {name}")
    return list(AVAILABLE_PROVIDERS)
