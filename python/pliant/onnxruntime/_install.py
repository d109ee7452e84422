"""Makes ``import onnxruntime`` return this package."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from types import ModuleType
from typing import Any

from pliant.onnxruntime._version import API_VERSION

__all__ = ["install", "uninstall"]

_PREFIX = "pliant."
_MODULES = (
    "onnxruntime",
    "onnxruntime.capi",
    "onnxruntime.capi._pybind_state",
    "onnxruntime.capi.build_and_package_info",
    "onnxruntime.capi.onnxruntime_inference_collection",
    "onnxruntime.capi.onnxruntime_pybind11_state",
    "onnxruntime.capi.onnxruntime_validation",
)

# The modules that `install` replaced, by name.
_replaced: dict[str, ModuleType] = {}


def install() -> None:
    """Makes ``import onnxruntime`` return this package in the rest of the process.

    Modules that have already imported ``onnxruntime`` keep what they imported. Subpackages that are written in Python, such as
    ``onnxruntime.quantization``, are those of the installed package ``onnxruntime``, if there is one. Without it, its version in
    ``importlib.metadata`` is that of the interface. Calling this function again has no effect.
    """
    if is_installed():
        return
    for name in [name for name in sys.modules if name == "onnxruntime" or name.startswith("onnxruntime.")]:
        _replaced[name] = sys.modules.pop(name)
    folders = _folders_of_onnxruntime()
    for name in _MODULES:
        sys.modules[name] = importlib.import_module(_PREFIX + name)
    sys.modules["onnxruntime"].__path__.extend(folders)
    if not folders:
        sys.meta_path.append(_finder)


def uninstall() -> None:
    """Reverts :func:`install`: ``import onnxruntime`` returns the installed package, if there is one."""
    if not is_installed():
        return
    package = sys.modules["onnxruntime"]
    del package.__path__[1:]
    for name in [name for name in sys.modules if name == "onnxruntime" or name.startswith("onnxruntime.")]:
        del sys.modules[name]
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    sys.modules.update(_replaced)
    _replaced.clear()


def is_installed() -> bool:
    """Whether ``onnxruntime`` is this package."""
    return sys.modules.get("onnxruntime") is sys.modules[_PREFIX + "onnxruntime"]


def _folders_of_onnxruntime() -> list[str]:
    """Returns the folders of the installed package ``onnxruntime``, without importing it."""
    try:
        spec = importlib.util.find_spec("onnxruntime")
    except ValueError:  # A module without a specification.
        return []
    return [] if spec is None else list(spec.submodule_search_locations or ())


class _Metadata(Distribution):
    """The metadata of a distribution ``onnxruntime``, for applications that look up its version."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {API_VERSION}\nSummary: The interface, by Pliant\n"

    def locate_file(self, path: str | PathLike[str]) -> Any:
        raise FileNotFoundError(f"onnxruntime is not installed, so it has no file {path}")


class _Finder(DistributionFinder):
    """Finds the distribution ``onnxruntime``."""

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()) -> Iterable[Distribution]:
        return [_Metadata()] if context.name in (None, "onnxruntime") else []

    def find_spec(self, *_: object) -> None:
        return None


_finder = _Finder()
