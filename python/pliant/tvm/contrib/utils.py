"""Temporary folders, with the names of ``tvm.contrib.utils``."""

from __future__ import annotations

import os
import tempfile
from typing import Any

__all__ = ["TempDirectory", "filelock", "is_source_path", "tempdir", "which"]


class TempDirectory:
    """A temporary folder, which is removed with the object."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if custom_path is None:
            self._folder = tempfile.TemporaryDirectory()
            self.temp_dir = self._folder.name
        else:
            os.makedirs(custom_path, exist_ok=True)
            self.temp_dir = custom_path

    @property
    def path(self) -> str:
        """The path of the folder."""
        return self.temp_dir

    def remove(self) -> None:
        """Removes the folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def relpath(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """Returns the names of the files in the folder."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, other: str) -> str:
        return self.relpath(other)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """Creates a temporary folder, or uses the folder with the given path."""
    return TempDirectory(custom_path, keep_for_debug)


def is_source_path(path: Any) -> bool:
    """Whether a string is the path of a source file and not a source text."""
    return isinstance(path, str) and "\n" not in path and os.path.isfile(path)


def which(exec_name: str) -> str | None:
    """Returns the path of a program, or ``None`` if there is none of this name."""
    import shutil

    return shutil.which(exec_name)


def filelock(path: str) -> Any:
    """Does nothing, under the name of TVM's lock of a file."""
    from contextlib import nullcontext

    return nullcontext(path)
