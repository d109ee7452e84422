"""``onnxruntime.capi.onnxruntime_validation``: the name and version of the package."""

from __future__ import annotations

from pliant.onnxruntime._version import API_VERSION

__all__ = ["check_distro_info", "get_package_name_and_version_info"]


def check_distro_info() -> None:
    """Does nothing: Pliant runs on every distribution on which it can be imported."""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """Returns the name of the package, its version, and the version of CUDA, which is empty."""
    return "onnxruntime", API_VERSION, ""
