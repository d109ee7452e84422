"""The short face: compile a module once, call it at any shape."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant._core import IRModule, Model, PrimFunc
from pliant.error import UnsupportedError
from pliant.target import Target

if TYPE_CHECKING:
    from pliant._core.relax import Function

__all__ = ["Model", "compile", "load"]


def as_module(mod: IRModule | Function | PrimFunc) -> IRModule:
    """The module; a function on its own as a module of one function."""
    if isinstance(mod, IRModule):
        return mod
    if isinstance(mod, _core.relax.Function | PrimFunc):
        return IRModule.from_expr(mod)
    raise TypeError(f"expected an IRModule or a function, got {type(mod).__name__}")


def compile(
    mod: IRModule | Function | PrimFunc | str | os.PathLike[str],
    target: str | Target = "cranelift",
    **options: Any,
) -> Model:
    """Compiles a module, a function, or a script file (``.py``) into a model that is called at any shape.

    Options: ``threads``, ``opt_level``, ``pipeline``, ``disabled_passes``, ``required_passes``, ``verify``,
    ``dump_dir``, ``config``.
    """
    program: Any = _read(os.fspath(mod)) if isinstance(mod, str | os.PathLike) else mod
    options["target"] = Target(target).backend
    return Model(_core.compile_module(as_module(program), False, options))


def _read(path: str) -> Any:
    if not path.endswith(".py"):
        raise UnsupportedError(f"cannot read a model from '{path}': only script files (.py) are supported")
    from pliant.script import from_source

    with open(path, encoding="utf-8") as file:
        return from_source(file.read(), file=path)


def load(path: str | os.PathLike[str]) -> Model:
    """Loads a model that ``Model.save`` or ``export_library`` wrote."""
    return Model(_core.Executable.load(os.fspath(path)))
