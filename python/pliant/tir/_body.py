"""The bodies of loop functions, made once for each function that is held."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pliant._core import PrimFunc, PrimFuncBody

_bodies: WeakKeyDictionary[PrimFunc, PrimFuncBody] = WeakKeyDictionary()


def body_of(func: PrimFunc) -> PrimFuncBody:
    """The body of a function: the same objects as long as the function is held."""
    body = _bodies.get(func)
    if body is None:
        body = _bodies[func] = PrimFuncBody(func)
    return body


__all__ = ["body_of"]
