"""Information on the build, with the names of ``tvm.support``."""

from __future__ import annotations

from typing import Any

from pliant import build_info

__all__ = ["FrontendTestModule", "describe", "libinfo"]


def libinfo() -> dict[str, Any]:
    """Returns the properties of the build."""
    return dict(build_info())


def describe() -> None:
    """Prints the properties of the build."""
    for name, value in libinfo().items():
        print(f"{name}: {value}")


class FrontendTestModule(dict[str, Any]):
    """Python functions by name, under the interface of a module."""

    def add_function(self, name: str, func: Any) -> None:
        """Adds the Python function ``func`` to the module under ``name``."""
        self[name] = func
