"""``I``: the decorators of modules."""

from __future__ import annotations

import inspect
from typing import Any

from pliant.script._decorate import NO_CALLER_FRAME, parse
from pliant.script._script_name_placeholders import ScriptName

_PATH = "pliant.script.ir"


def ir_module(mod: type | None = None, check_well_formed: bool = True, **options: Any) -> Any:
    """Makes a module from a class whose functions are decorated with ``R.function`` and
    ``T.prim_func``. ``options`` are ignored.

    Raises ``ScriptError`` if the class is not a valid script.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        raise RuntimeError(NO_CALLER_FRAME)
    scope = caller

    def decorate(cls: type) -> Any:
        if not inspect.isclass(cls):
            raise TypeError(f"@I.ir_module decorates a class, not {type(cls).__name__}")
        return parse(cls, scope, check_well_formed)

    return decorate if mod is None else decorate(mod)


ir_module.__pliant_path__ = f"{_PATH}.ir_module"  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return ScriptName(f"{_PATH}.{name}")
