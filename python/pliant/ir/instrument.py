"""Instruments, which observe passes. Pass them to ``PassContext(instruments=[...])`` or
``pliant.compile``."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pliant import _core
from pliant._core import IRModule
from pliant._core.transform import CoreInstrument
from pliant.error import CompileError
from pliant.transform import PassInfo
from pliant.transform._pass_context import INSTRUMENT_METHODS as _METHODS

__all__ = [
    "DumpIR",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "WellFormedInstrument",
    "pass_instrument",
]


class PassInstrument:
    """The base class of instruments. Subclasses override the methods that they need. An instrument
    observes passes of all kinds: alone, in sequences and in compilations."""

    def enter_pass_ctx(self) -> None:
        """Called when the pass context is entered."""

    def exit_pass_ctx(self) -> None:
        """Called when the pass context is exited."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Returns whether a pass should run. Not called for passes in the ``required_pass`` of the pass context."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called before a pass runs. `mod` is its input."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called after a pass has run. `mod` is its result."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Makes an instrument from a class that defines any of the methods of :class:`PassInstrument`.

    >>> @pass_instrument
    ... class Count:
    ...     def __init__(self):
    ...         self.passes = 0
    ...     def run_after_pass(self, mod, info):
    ...         self.passes += 1

    Raises ``TypeError`` for a class that defines none of the methods, or a method with a similar
    name.
    """

    def make(cls: Any) -> Any:
        if not isinstance(cls, type):
            raise TypeError(f"pass_instrument expects a class, got {cls!r}")
        if not any(callable(getattr(cls, name, None)) for name in _METHODS):
            raise TypeError(f"class {cls.__name__} has none of the methods of an instrument: {', '.join(_METHODS)}")
        for name in vars(cls):
            near = [] if name in _METHODS or name.startswith("_") else get_close_matches(name, _METHODS, 1, 0.85)
            if near:
                raise TypeError(f"class {cls.__name__}: instruments have no method {name} (help: did you mean {near[0]}?)")
        if issubclass(cls, PassInstrument):
            return cls
        return functools.wraps(cls, updated=())(type(cls.__name__, (cls, PassInstrument), {}))

    return make if pi_cls is None else make(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Measures the duration of passes. The table lists a pass that runs inside another pass below that pass, with more
    indentation."""

    def __init__(self) -> None:
        self._core = CoreInstrument.timing()

    def enter_pass_ctx(self) -> None:
        """Clears the measurements of the previous context."""
        self._core.reset()

    def render(self) -> str:
        """Returns the durations since the context was entered, as an indented table."""
        return self._core.render()

    def entries(self) -> list[tuple[str, int, float]]:
        """Returns the name, nesting depth and duration in seconds of each pass, in the order in
        which the passes started."""
        return self._core.entries()


class DumpIR(PassInstrument):
    """Writes the module after every pass into a directory, as ``NN_pass.py``. With ``refresh``, the
    contents of the directory are deleted first."""

    def __init__(self, dump_dir: str | os.PathLike[str], refresh: bool = False) -> None:
        if refresh and os.path.isdir(dump_dir):
            shutil.rmtree(dump_dir)
        self._core = CoreInstrument.dump(dump_dir)


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes with these names.

    Raises ``TypeError`` for a string instead of a list of names.
    """

    def __init__(
        self, print_before_pass_names: Sequence[str] = (), print_after_pass_names: Sequence[str] = ()
    ) -> None:
        for names in (print_before_pass_names, print_after_pass_names):
            if isinstance(names, str):
                raise TypeError(f"PassPrintingInstrument takes lists of names (help: write [{names!r}])")
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Prints the input of a selected pass."""
        if info.name in self.before:
            _print("Before", mod, info)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Prints the result of a selected pass."""
        if info.name in self.after:
            _print("After", mod, info)


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Prints the input of the pass."""
        _print("Before", mod, info)


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Prints the result of the pass."""
        _print("After", mod, info)


def _print(when: str, mod: IRModule, info: PassInfo) -> None:
    print(f"# {when} {info.name}\n{mod.script()}")


class WellFormedInstrument(PassInstrument):
    """Verifies the module before and after every pass. Raises ``CompileError`` that names the pass
    which made the module invalid. ``check_struct_info`` is accepted for compatibility with TVM;
    types are always checked."""

    def __init__(self, check_struct_info: bool = True) -> None:
        self.check_struct_info = check_struct_info

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Raises ``CompileError`` if the input of the pass is not well-formed."""
        self._check(mod, f"before pass '{info.name}'")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Raises ``CompileError`` if the result of the pass is not well-formed."""
        self._check(mod, f"after pass '{info.name}'")

    def _check(self, mod: IRModule, when: str) -> None:
        problems = _core.verify_module(mod)
        if problems:
            raise CompileError(f"the module is not well-formed {when}: {'; '.join(problems[:5])}")
