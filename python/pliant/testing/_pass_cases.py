"""The base class of tests that compare the result of a pass with an expected module."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from pliant import _core

__all__ = ["CompareBeforeAfter"]


def _program(value: Any) -> Any:
    """Converts a program of a test case: a module, a function, the source of a loop function, or a method that returns one."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, type) and not issubclass(value, BaseException):
        from pliant.script import from_source

        return from_source("@I.ir_module\n" + textwrap.dedent(inspect.getsource(value)), _names(value))
    if not inspect.isfunction(value):
        return value
    if list(inspect.signature(value).parameters) == ["self"]:
        return _program(value(None))
    from pliant.script import from_source

    return from_source("@T.prim_func\n" + textwrap.dedent(inspect.getsource(value)), dict(value.__globals__))


def _names(cls: type) -> dict[str, Any]:
    return dict(vars(inspect.getmodule(cls))) if inspect.getmodule(cls) is not None else {}


def _as_module(program: Any) -> Any:
    return program if isinstance(program, _core.IRModule) else _core.IRModule({"main": program})


class CompareBeforeAfter:
    """A test of a pass. Subclasses define ``before`` (or ``Before``), ``expected`` (or ``Expected``) and ``transform``.

    A program is a module, a function, a method that returns one, or the plain source of a loop function. ``transform`` is a pass
    or a method that returns one. ``expected`` may be an exception class, which the pass must raise. The test compares structure.
    """

    check_well_formed: bool = True

    def _part(self, name: str) -> Any:
        for candidate in (name, name.capitalize()):
            value = inspect.getattr_static(type(self), candidate, None)
            if value is not None:
                return value
        raise AttributeError(f"{type(self).__name__} defines neither {name} nor {name.capitalize()}")

    def _transform(self) -> Any:
        value = self._part("transform")
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, property):
            return value.fget(self)  # type: ignore[misc]
        return value(self) if inspect.isfunction(value) else value

    def test_compare(self) -> None:
        """Applies the pass and compares."""
        from pliant.ir import assert_structural_equal

        before, transform = _as_module(_program(self._part("before"))), self._transform()
        expected = self._part("expected")
        if isinstance(expected, type) and issubclass(expected, BaseException):
            import pytest

            with pytest.raises(expected):
                transform(before)
            return
        program = _program(expected)
        after = transform(before)
        assert_structural_equal(after if isinstance(program, _core.IRModule) else after["main"], program)
