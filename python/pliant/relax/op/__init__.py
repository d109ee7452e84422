"""The operators: ``relax.op.add(x, y)``, ``relax.op.nn.relu(x)``.

Each is made from its declaration, with its signature and documentation (``help(relax.op.matmul)``). Python numbers
take the data type of the tensor beside them, sequences of sizes are shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pliant import _core

if TYPE_CHECKING:
    from pliant._core.relax import Expr, StructInfo

_relax = _core.relax
_cache: dict[str, Any] = {}


class _Group(ModuleType):
    """A group of operators, such as ``relax.op.nn``."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"pliant.relax.op.{prefix}", f"The operators under ``R.{prefix}``.")
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return _find(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        return _names(self._prefix + ".")


def _names(prefix: str) -> list[str]:
    start = "relax." + prefix
    found = {n[len(start) :].split(".")[0] for n in _relax.op_names() if n.startswith(start)}
    return sorted(found)


def _find(path: str) -> Any:
    if path in _cache:
        return _cache[path]
    try:
        value: Any = _relax.get_op(path)
    except ValueError:
        if not _names(path + "."):
            raise AttributeError(f"no operator is called 'relax.{path}'") from None
        value = _Group(path)
    _cache[path] = value
    return value


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({"call_dps_packed", "call_packed", "call_pure_packed", "call_tir", *_names("")})


def call_tir(
    gvar: Expr,
    args: Expr | Sequence[Expr],
    out_sinfo: StructInfo | Sequence[StructInfo],
    tir_vars: Any = None,
) -> Expr:
    """Calls a loop function that writes new tensors of the types ``out_sinfo``."""
    return _relax.call_dps(False, gvar, args, out_sinfo, tir_vars)


def call_dps_packed(
    func: str | Expr, args: Expr | Sequence[Expr], out_sinfo: StructInfo | Sequence[StructInfo]
) -> Expr:
    """Calls a packed function that writes new tensors of the types ``out_sinfo``."""
    return _relax.call_dps(True, func, args, out_sinfo)


def call_pure_packed(func: str | Expr, *args: Any, sinfo_args: Any = None) -> Expr:
    """Calls a packed function that has no effect but its result."""
    return _relax.call_packed(True, func, *args, sinfo_args=sinfo_args)


def call_packed(func: str | Expr, *args: Any, sinfo_args: Any = None) -> Expr:
    """Calls a packed function."""
    return _relax.call_packed(False, func, *args, sinfo_args=sinfo_args)
