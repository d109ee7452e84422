"""The operators as tensor expressions, for ``bb.emit_te``, operators and loop functions of your own.

Every operator of ``relax.op`` that has a loop form is here under its own name and with its own signature, made from its
declaration: ``topi.add(a, b)``, ``topi.nn.softmax(x)``, ``topi.image.resize2d(x, size)``. It is the loop form that
legalisation uses. What the field writes otherwise than ``relax.op`` stands in :mod:`pliant.topi.names`,
:mod:`pliant.topi.nn`, :mod:`pliant.topi.image` and :mod:`pliant.topi.vision`: other names and orders of arguments for the
same operators. Functions of the field that are no operators are formulas in :mod:`pliant.topi.transform`. The field's
modules ``topi.math``, ``broadcast``, ``reduction`` and ``tensor`` have the names that ``topi`` has.
"""

from __future__ import annotations

from typing import Any

from pliant.topi import _operator, broadcast, image, math, names, nn, reduction, tensor, transform, utils, vision
from pliant.topi.names import *  # noqa: F403
from pliant.topi.names import __all__ as _field_names
from pliant.topi.transform import *  # noqa: F403
from pliant.topi.transform import __all__ as _formulas

__all__ = [
    "broadcast",
    "image",
    "math",
    "nn",
    "reduction",
    "tensor",
    "utils",
    "vision",
    *_field_names,
    *_formulas,
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _operator.find(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(n.split(".")[0] for n in _operator.names())})
