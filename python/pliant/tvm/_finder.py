"""Makes ``import tvm`` and the imports of its modules return modules of Pliant."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from pliant import _core
from pliant.tvm._absent_names import AbsentImportError, AbsentNameError, absent, absent_module, missing
from pliant.tvm._modules import RENAMED

__all__ = ["install", "is_installed", "resolve", "uninstall"]

# The modules of an installed TVM that `install` replaced, by name.
_replaced: dict[str, ModuleType] = {}


def resolve(name: str) -> str | None:
    """Returns the name of the module of Pliant that a module of TVM corresponds to, or ``None``."""
    if name == "tvm":
        return "pliant.tvm"
    if name in RENAMED:
        return RENAMED[name]
    parent, _, last = name.rpartition(".")
    inside = resolve(parent)
    if inside is None:
        return None
    candidates = [f"{inside}.{last}"]
    if parent == "tvm":
        candidates.append(f"pliant.{last}")
    for candidate in candidates:
        if not last.startswith("_") or candidate in RENAMED.values():
            if candidate in sys.modules or _exists(candidate):
                return candidate
    return None


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


class _AliasLoader(Loader):
    """Loads a module of TVM as the module of Pliant with the name ``target``."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced the specification by that of the alias.
        module.__spec__ = self._spec
        if not hasattr(module, "__path__"):
            # `from module import name` reports the reason for an absent name only for packages.
            module.__path__ = []


class _RootLoader(Loader):
    """Loads the module ``tvm``, whose names are those of :mod:`pliant.tvm`. Scripts recognize the module by its name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        names = import_module("pliant.tvm")
        module.__dict__.update(
            __doc__=names.__doc__,
            __version__=names.__version__,
            __getattr__=lambda name: getattr(names, name),
            __dir__=lambda: dir(names),
        )


class _AbsentLoader(Loader):
    """Loads a module that Pliant does not have."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return absent_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Finder(MetaPathFinder):
    """Finds the modules of TVM."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "tvm" or fullname.startswith("tvm."):
            if fullname == "tvm":
                return ModuleSpec(fullname, _RootLoader(), is_package=True)
            found = resolve(fullname)
            if found is not None:
                return ModuleSpec(fullname, _AliasLoader(found), is_package=True)
            if absent_module(fullname) is not None:
                return ModuleSpec(fullname, _AbsentLoader(), is_package=True)
            reason = absent(fullname)
            if reason is not None:
                raise AbsentImportError(reason, fullname)
        return None


class _AbsentNameFinder(MetaPathFinder):
    """Reports the reason for a name that a module does not have. ``from pliant.relax import x`` looks for a module
    ``pliant.relax.x`` if there is no such attribute."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("pliant."):
            reason = absent(fullname)
            if reason is not None:
                raise AbsentImportError(reason, fullname)
        return None


_finders = (_Finder(), _AbsentNameFinder())


def install() -> None:
    """Makes ``import tvm`` return Pliant in the rest of the process.

    Modules that have already imported ``tvm`` keep what they imported. Calling this function again has no effect.
    """
    if is_installed():
        return
    for name in [name for name in sys.modules if name == "tvm" or name.startswith("tvm.")]:
        _replaced[name] = sys.modules.pop(name)
    sys.meta_path.insert(0, _finders[0])
    sys.meta_path.append(_finders[1])
    _core.set_tvm_compatibility(True)
    import_module("tvm")
    _add_renamed_modules()
    for name in {entry.name.rpartition(".")[0] for entry in missing()}:
        target = resolve(name)
        if target is not None:
            _report_absent_names(import_module(target))


def _add_renamed_modules() -> None:
    """Makes renamed modules attributes of their packages: ``tvm.ir.op`` is used without an import."""
    for name, target in RENAMED.items():
        parent, _, last = name.rpartition(".")
        package = resolve(parent)
        if parent == "tvm" or package is None:
            continue
        module = import_module(package)
        if last not in vars(module):
            setattr(module, last, import_module(target))


def _report_absent_names(module: ModuleType) -> None:
    """Makes a module report the reason for names of TVM that it does not have."""
    fallback = vars(module).get("__getattr__")
    if getattr(fallback, "reports_absent_names", False):
        return

    def attribute(name: str) -> Any:
        try:
            if fallback is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return fallback(name)
        except AttributeError:
            reason = None if name.startswith("__") else absent(f"{module.__name__}.{name}")
            found = absent_module(f"{module.__name__}.{name}")
            if found is not None:
                return found
            if reason is None:
                raise
        raise AbsentNameError(reason)

    attribute.reports_absent_names = True  # type: ignore[attr-defined]
    module.__getattr__ = attribute  # type: ignore[method-assign]


def uninstall() -> None:
    """Reverts :func:`install`: ``import tvm`` returns the installed package, if there is one."""
    if not is_installed():
        return
    for finder in _finders:
        sys.meta_path.remove(finder)
    _core.set_tvm_compatibility(False)
    for name in [name for name in sys.modules if name == "tvm" or name.startswith("tvm.")]:
        del sys.modules[name]
    sys.modules.update(_replaced)
    _replaced.clear()


def is_installed() -> bool:
    """Whether ``tvm`` is Pliant."""
    return _finders[0] in sys.meta_path
