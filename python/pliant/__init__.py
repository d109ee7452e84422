"""Pliant: a compiler for tensor programs with symbolic shapes.

>>> import pliant
>>> model = pliant.compile(module)      # once, with symbolic shapes
>>> model(x)                            # at any shape

Names follow Apache TVM: ``pliant.script`` (``I``, ``R``, ``T``), ``pliant.relax``, ``pliant.te``,
``pliant.tir``, ``pliant.arith``, ``pliant.runtime``. Submodules are imported on first use.
"""

from __future__ import annotations

import copyreg
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pliant import _core, _host_functions
from pliant._core import CancelToken, Profile, build_info, cpu, device
from pliant.error import (
    AssertionFailed,
    BoundsError,
    CallError,
    CancelledError,
    CompileError,
    DTypeError,
    DivisionError,
    ExecutableError,
    InternalError,
    PliantError,
    ScheduleError,
    ScriptError,
    ShapeError,
    TimeLimitError,
    UnsupportedError,
    VMError,
)



def _reduce_ir(node: Any) -> tuple[Any, ...]:
    from pliant.ir._module_json import reduce_to_json

    return reduce_to_json(node)


for _class in (_core.IRModule, _core.PrimFunc, _core.relax.Function):
    copyreg.pickle(_class, _reduce_ir)  # type: ignore[arg-type]

# Makes the extension's submodules importable by their full names.
sys.modules["pliant._core.relax"] = _core.relax
sys.modules["pliant._core.transform"] = _core.transform
_host_functions.register()

if TYPE_CHECKING:
    from pliant import (
        arith,
        error,
        ir,
        nd,
        relax,
        runtime,
        script,
        target,
        te,
        testing,
        tir,
        topi,
        transform,
    )
    from pliant._explorer import explore
    from pliant._export import export_library
    from pliant._model import Model, build, compile, load
    from pliant.ir import IRModule, instrument
    from pliant.registry import get_global_func, register_func, register_global_func
    from pliant.runtime.data_type import DataType, DataTypeCode

__version__: str = _core.build_info()["version"]

TVMError = PliantError
"""The name of :class:`PliantError` in code written for TVM."""

_SUBMODULES = frozenset(
    {
        "arith",
        "error",
        "frontend",
        "ir",
        "nd",
        "registry",
        "relax",
        "runtime",
        "script",
        "target",
        "te",
        "testing",
        "tir",
        "topi",
        "transform",
        "tvm",
    }
)
_LAZY = {
    "DataType": "pliant.runtime.data_type",
    "DataTypeCode": "pliant.runtime.data_type",
    "IRModule": "pliant.ir",
    "instrument": "pliant.ir",
    "Model": "pliant._model",
    "explore": "pliant._explorer",
    "export_library": "pliant._export",
    "build": "pliant._model",
    "compile": "pliant._model",
    "load": "pliant._model",
    "get_global_func": "pliant.registry",
    "register_func": "pliant.registry",
    "register_global_func": "pliant.registry",
}

__all__ = [
    "AssertionFailed",
    "BoundsError",
    "CallError",
    "CancelToken",
    "CancelledError",
    "CompileError",
    "DTypeError",
    "DataType",
    "DataTypeCode",
    "DivisionError",
    "ExecutableError",
    "IRModule",
    "InternalError",
    "Model",
    "PliantError",
    "Profile",
    "ScheduleError",
    "ScriptError",
    "ShapeError",
    "TVMError",
    "TimeLimitError",
    "UnsupportedError",
    "VMError",
    "arith",
    "build",
    "build_info",
    "compile",
    "cpu",
    "device",
    "error",
    "explore",
    "export_library",
    "get_global_func",
    "instrument",
    "ir",
    "load",
    "nd",
    "register_func",
    "register_global_func",
    "relax",
    "runtime",
    "script",
    "target",
    "te",
    "testing",
    "tir",
    "topi",
    "transform",
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        value: Any = import_module(f"pliant.{name}")
    elif name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    else:
        from pliant._absent import absent_attribute

        raise absent_attribute(__name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
