"""The script language: TVMScript as text and as decorated Python.

>>> from pliant.script import ir as I, relax as R, tir as T
>>> @I.ir_module
... class Module:
...     @R.function
...     def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
...         return R.add(x, x)

The decorators read the source of the decorated object. ``from_source`` reads a text. Python
evaluates names and expressions that are not part of the language.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pliant import _core
from pliant.script import _decorate, ir, relax, tir
from pliant.script.ir import ir_module

if TYPE_CHECKING:
    from pliant._core import IRModule, PrimFunc
    from pliant._core.relax import Function
    from pliant.relax.dpl import PatternMatchingRewriter

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir"]


def from_source(
    program: str | type | FunctionType,
    extra_vars: dict[str, Any] | None = None,
    check_well_formed: bool = True,
    *,
    file: str = "<str>",
) -> IRModule | Function | PrimFunc | PatternMatchingRewriter:
    """Parses a text, or the source of a class or function. Returns a module or a single function. A
    class decorated with ``@R.rewriter`` in the text yields the rewriter.

    ``extra_vars`` are additional names for the text, and ``file`` is its name in messages. With
    ``check_well_formed=False``, the rules of the IR are not verified. Raises
    :class:`pliant.ScriptError` with the line of the error.
    """
    if not isinstance(program, str):
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        if caller is None:
            raise RuntimeError(_decorate.NO_CALLER_FRAME)
        return _decorate.parse(program, caller, check_well_formed)
    names = dict(extra_vars or {})
    result = _core.parse_script(program, file, 1, 0, names, {}, _decorate.macros_used(program, [names]))
    name = None
    if isinstance(result, tuple):
        name, result = result
    if check_well_formed:
        _decorate.check(result, file)
    return result if name is None else relax.rewriter_of(result, name)


parse = from_source
