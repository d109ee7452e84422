"""Runs programs that are written for Apache TVM: makes ``import tvm`` return Pliant.

``python -m pliant.tvm script.py ARGUMENTS`` runs a script, ``python -m pliant.tvm -m pytest ARGUMENTS`` a module, and
:func:`install` does the same for the rest of the process. The modules of TVM are those of Pliant with the same names, except for
those that TVM renamed, which :mod:`pliant.tvm._modules` maps to one implementation. Names that Pliant does not have raise
:class:`AbsentNameError`, which says what the name was, why it is absent and what to use instead. :func:`missing` lists them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pliant.tvm._absent_names import AbsentName, AbsentNameError, absent, absent_module, missing
from pliant.tvm._devices import ABSENT_DEVICES, device_constructor
from pliant.tvm._finder import install, resolve, uninstall

__all__ = ["AbsentName", "AbsentNameError", "install", "missing", "uninstall"]

__version__ = "0.27.0"
"""The newest version of TVM's API that Pliant follows."""


# Names of the module `tvm` that are in other modules of Pliant.
_MOVED = {name: "pliant.runtime" for name in ("Device", "Object", "const", "convert", "tensor")}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    target = resolve(f"tvm.{name}")
    if target is not None:
        value: Any = import_module(target)
    elif name in ("context", "TVMContext"):
        value = import_module("pliant").device
    elif name in ABSENT_DEVICES:
        value = device_constructor(name)
    elif (module := absent_module(f"tvm.{name}")) is not None:
        value = module
    else:
        reason = absent(f"tvm.{name}")
        if reason is not None:
            raise AbsentNameError(reason)
        try:
            value = getattr(import_module(_MOVED.get(name, "pliant")), name)
        except AttributeError:
            raise AttributeError(f"module 'tvm' has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(import_module("pliant"))})
