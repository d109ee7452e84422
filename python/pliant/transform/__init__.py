"""Passes, which map modules to modules: built-in passes by name, passes of the user, and sequences.

>>> mod = relax.transform.LegalizeOps()(mod)
>>> seq = Sequential([relax.transform.ToNonDataflow(), my_pass, relax.transform.CallTIRRewrite()])
>>> with PassContext(opt_level=3, instruments=[PassTimingInstrument()]):
...     mod = seq(mod)

``transform.<name>`` is the constructor of the built-in pass with this name.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

from pliant import _core
from pliant._core.transform import CorePass
from pliant.transform._external_codegen import FuseOpsByPattern, RunCodegen
from pliant.transform._pass_context import PassContext, register_config_option
from pliant.transform._pass_classes import (
    CoreBackedPass,
    FunctionPass,
    ModulePass,
    Pass,
    PassInfo,
    PrintIR,
    Sequential,
    function_pass,
    module_pass,
    prim_func_pass,
)

__all__ = [
    "FunctionPass",
    "FuseOpsByPattern",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "RunCodegen",
    "Sequential",
    "function_pass",
    "get_pass",
    "list_passes",
    "module_pass",
    "prim_func_pass",
    "register_config_option",
]


def get_pass(name: str) -> Pass:
    """Returns the pass or pipeline with this name or alias, with its default parameters.

    Raises ``ValueError`` for an unknown name, and for a pass that requires parameters.
    """
    try:
        return CoreBackedPass(CorePass(name))
    except ValueError:
        if name not in dict(list_passes()):
            raise
        raise ValueError(
            f"the pass {name!r} requires parameters (help: write "
            f"relax.transform.{name}(...))"
        ) from None


def list_passes() -> list[tuple[str, str]]:
    """Returns the name and description of each built-in pass."""
    return [(name, doc) for name, _, doc, level in _core.transform.pass_table() if level != "pipeline"]


def _with_option(name: str, error: TypeError) -> str:
    """Returns the error message for an invalid option of a pass, with the names of the pass and the
    option.
    """
    text = str(error)
    options = re.findall(r"while processing '(\w+)'", " ".join(getattr(error, "__notes__", ())))
    place = "".join(f"{option}: " for option in options[:1])
    return text if name in text else f"{name}: {place}{text}"


def _constructor(name: str) -> Any:
    """Returns the constructor of a pass, or ``None`` for an unknown name. A pass with parameters
    has a constructor in the extension module."""
    result = getattr(_core.transform, name, None)
    if name[:1].isupper() and result is not None and not inspect.isclass(result):

        @functools.wraps(result)
        def with_parameters(*args: Any, **kwargs: Any) -> Pass:
            try:
                return CoreBackedPass(result(*args, **kwargs))
            except TypeError as error:
                raise TypeError(_with_option(name, error)) from None

        return with_parameters
    for known, aliases, doc, level in _core.transform.pass_table():
        if level != "pipeline" and (name == known or name in aliases):

            def make() -> Pass:
                return get_pass(known)

            make.__name__ = make.__qualname__ = name
            make.__doc__ = f"{doc}."
            return make
    return None


def __getattr__(name: str) -> Any:
    value = None if name.startswith("_") else _constructor(name)
    if value is None:
        raise AttributeError(f"no pass is called {name!r}{_hint(name)}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    try:
        CorePass(name)
    except ValueError as error:
        return str(error).partition("'")[2].partition("'")[2]
    return ""


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for name, _ in list_passes())})
