"""The operators: ``relax.op.add(x, y)``, ``relax.op.nn.relu(x)``.

Each is made from its declaration, with its signature and documentation (``help(relax.op.matmul)``). Python numbers
take the data type of the tensor beside them, sequences of sizes are shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
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


def register_op(name: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Makes an operator of a function from tensors to a tensor (or several) of ``te``, and gives it back.

    The positional parameters are its operands, the keyword-only ones its attributes. The type of a call follows from
    the shape and data type of what the function makes, for symbolic sizes too; there is nothing else to write.

    >>> @relax.op.register_op("my.scaled_sum")
    ... def scaled_sum(x, y, *, scale=1.0):
    ...     return te.compute(x.shape, lambda *i: (x(*i) + y(*i)) * scale)
    >>> relax.op.my.scaled_sum(a, b, scale=2.0)       # R.my.scaled_sum in a script
    """
    if callable(name):
        return register_op()(name)  # type: ignore[no-any-return]

    def register(func: Callable[..., Any]) -> Any:
        operands, attrs = [], []
        own = name or func.__name__
        for p in inspect.signature(func).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                if p.default is not p.empty:
                    raise TypeError(
                        f"operator '{own}': operand '{p.name}' cannot have a default (help: attributes are "
                        f"keyword-only parameters, after a *)"
                    )
                operands.append(p.name)
            elif p.kind is p.KEYWORD_ONLY:
                attrs.append((p.name, [] if p.default is p.empty else [p.default]))
            else:
                raise TypeError(f"operator '{own}': *{p.name} stands for any number of operands; name each of them")
        path = _relax.register_te_op(own, operands, attrs, func)
        _cache.pop(path, None)
        globals().pop(path, None)
        return _find(path)

    return register


def __dir__() -> list[str]:
    return sorted({"register_op", "call_dps_packed", "call_packed", "call_pure_packed", "call_tir", *_names("")})


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
