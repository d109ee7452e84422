"""Names of TVM's Python API that Pliant does not have, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pliant.error import UnsupportedError
from pliant.tvm._absent_table import ABSENT

__all__ = ["AbsentImportError", "AbsentName", "AbsentNameError", "absent", "missing"]


@dataclass(frozen=True)
class AbsentName:
    """A name of TVM's API that Pliant does not have. A name of a module or class includes all names inside it."""

    name: str
    """The full name, such as ``tvm.te.create_schedule``."""
    was: str
    """What it is in TVM."""
    why: str
    """Why Pliant does not have it."""
    instead: str
    """What to use instead."""

    def __str__(self) -> str:
        return f"{self.name} ({self.was}) is not available in Pliant: {self.why}. Instead: {self.instead}."


class AbsentNameError(UnsupportedError, AttributeError):
    """A program uses a name of TVM that Pliant does not have. The message says what the name was, why it is absent and what to
    use instead. :func:`missing` lists these names."""


class AbsentImportError(UnsupportedError, ImportError):
    """The same as :class:`AbsentNameError`, for an import of the module or name ``name``."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


_BY_NAME: dict[str, AbsentName] = {
    f"tvm.{name.rstrip('/')}": AbsentName(f"tvm.{name.rstrip('/')}", was, why, instead)
    for names, was, why, instead in ABSENT
    for name in names.split()
}
_MODULES = {f"tvm.{name[:-1]}" for names, *_ in ABSENT for name in names.split() if name.endswith("/")}


class AbsentModule(ModuleType):
    """A module of TVM that Pliant does not have. It can be imported, because programs often import modules that they use only on
    other devices. All of its names raise :class:`AbsentNameError`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, absent(name))
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AbsentNameError(absent(self.__name__))


def absent_module(name: str) -> AbsentModule | None:
    """Returns the module with this full name if it is a module of TVM that Pliant does not have."""
    name = _name_in_tvm(name)
    return AbsentModule(name) if name in _MODULES else None


# Modules of Pliant whose names are those of other modules of TVM.
_PREFIXES = (("pliant.tvm.", "tvm."), ("pliant.", "tvm."))


def _name_in_tvm(name: str) -> str:
    """Returns the name in TVM of a name of Pliant."""
    for prefix, replacement in _PREFIXES:
        if name.startswith(prefix):
            return replacement + name[len(prefix) :]
    return name


def missing() -> list[AbsentName]:
    """Returns the names of TVM's Python API that Pliant does not have, sorted."""
    return sorted(_BY_NAME.values(), key=lambda entry: entry.name)


def absent(name: str) -> str | None:
    """Returns the message for a full name that Pliant does not have, or for a name inside such a module or class. Returns
    ``None`` for other names."""
    name = _name_in_tvm(name)
    while name:
        entry = _BY_NAME.get(name)
        if entry is not None:
            return str(entry)
        name = name.rpartition(".")[0]
    return None
