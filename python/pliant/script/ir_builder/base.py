"""The builder and its frames."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from pliant import _core

__all__ = ["IRBuilder", "IRBuilderFrame"]

_relax = _core.relax
_local = threading.local()
Frame = TypeVar("Frame", bound="IRBuilderFrame")
Value = TypeVar("Value")


class IRBuilderFrame:
    """A part of a program under construction: a module, a function, a block or a branch. ``with frame:`` opens it."""

    def __enter__(self) -> Self:
        IRBuilder.current().frames.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        IRBuilder.current().frames.pop()
        if kind is None:
            self.finish()

    def finish(self) -> None:
        """Adds the finished part to the enclosing frame. Subclasses define it."""

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Calls a function when the frame is finished."""
        finish = self.finish

        def then() -> None:
            finish()
            callback()

        self.finish = then  # type: ignore[method-assign]


class IRBuilder:
    """A program under construction. ``with IRBuilder() as builder:`` makes it the current one, and ``builder.get()`` returns the
    finished module or function."""

    def __init__(self) -> None:
        self.frames: list[IRBuilderFrame] = []
        self.names: dict[Any, str] = {}
        self.result: Any = None

    def __enter__(self) -> IRBuilder:
        _stack().append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _stack().pop()

    @staticmethod
    def current() -> IRBuilder:
        """Returns the innermost builder of this thread. Raises ``ValueError`` if there is none."""
        if not _stack():
            raise ValueError("no builder is open (help: write this inside `with IRBuilder() as builder:`)")
        return _stack()[-1]

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is open."""
        return bool(_stack())

    @staticmethod
    def name(s: str, v: Value) -> Value:
        """Names a variable that the current builder has created, and returns it."""
        IRBuilder.current().names[v] = s
        return v

    @staticmethod
    def name_many(s: list[str], vs: list[Any]) -> list[Any]:
        """Names several variables."""
        return [IRBuilder.name(name, var) for name, var in zip(s, vs, strict=True)]

    def get(self) -> Any:
        """Returns the finished module or function. Raises ``ValueError`` if there is none."""
        if self.result is None:
            raise ValueError("nothing was built: the builder has neither a finished module nor a finished function")
        return self.result

    def find(self, kind: type[Frame], what: str) -> Frame:
        """Returns the innermost open frame of a kind. Raises ``ValueError``, with ``what`` in the message, if there is none."""
        found = self.find_optional(kind)
        if found is None:
            raise ValueError(f"{what} needs an open {kind.__name__}")
        return found

    def find_optional(self, kind: type[Frame]) -> Frame | None:
        """Returns the innermost open frame of a kind, or ``None``."""
        return next((frame for frame in reversed(self.frames) if isinstance(frame, kind)), None)


def _stack() -> list[IRBuilder]:
    stack: list[IRBuilder] | None = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack
