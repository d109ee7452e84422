"""``T``: loop functions. Scalar functions also work outside scripts, as in ``pliant.tir``."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from pliant import _core
from pliant.script._decorate import NO_CALLER_FRAME, in_class_body, parse
from pliant.script._script_name_placeholders import ScriptName
from pliant.tir import op as _op

_PATH = "pliant.script.tir"
_DTYPES = {
    *("bool", "float16", "bfloat16", "float32", "float64"),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
}


def prim_func(
    f: FunctionType | None = None, private: bool = False, check_well_formed: bool = True, **options: Any
) -> Any:
    """Makes a loop function from the source of a Python function. Inside a class, the decorator of
    the class parses the function. The parser reads ``private`` from the source, and ``options`` are
    ignored.

    Raises ``ScriptError`` if the function is not a valid script.
    """
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None:
        raise RuntimeError(NO_CALLER_FRAME)
    scope = caller

    def decorate(func: FunctionType) -> Any:
        if not inspect.isfunction(func):
            raise TypeError(f"@T.prim_func decorates a function, not {type(func).__name__}")
        return func if in_class_body(scope) else parse(func, scope, check_well_formed)

    return decorate if f is None else decorate(f)


func = prim_func
prim_func.__pliant_path__ = f"{_PATH}.prim_func"  # type: ignore[attr-defined]


class _DType(ScriptName):
    """A data type. ``T.int64()`` is a new variable, and ``T.int64(3)`` is a constant."""

    __slots__ = ("_dtype",)

    def __init__(self, dtype: str) -> None:
        super().__init__(f"{_PATH}.{dtype}")
        self._dtype = dtype

    def __call__(self, value: Any = None, *args: Any, **kwargs: Any) -> Any:
        if value is None:
            return _core.Var("v", self._dtype)
        return _core.tir_const(value, self._dtype)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value: Any
    if name in _DTYPES:
        value = _DType(name)
    elif name in (*_op.__all__, "max", "min"):
        value = getattr(_op, name)
        value.__pliant_path__ = f"{_PATH}.{name}"
    else:
        value = ScriptName(f"{_PATH}.{name}")
    globals()[name] = value
    return value
