"""The operators as tensor expressions, for ``bb.emit_te``, user-defined operators and loop
functions.

Every operator of ``relax.op`` with a tensor expression has a function here with the same name and
signature, generated from its declaration: ``topi.add(a, b)``, ``topi.nn.softmax(x)``,
``topi.image.resize2d(x, size)``. The function builds the same tensor expression to which calls of
the operator are lowered.

If TVM's ``topi`` uses another name or order of arguments than ``relax.op``, the function is defined
in :mod:`pliant.topi.names`, :mod:`pliant.topi.nn`, :mod:`pliant.topi.image` or
:mod:`pliant.topi.vision`. Functions of TVM's ``topi`` that are not operators are defined in
:mod:`pliant.topi.transform`. The modules ``topi.math``, ``topi.broadcast``, ``topi.reduction`` and
``topi.tensor`` have the same names as ``topi`` itself.

Invalid arguments raise ``ValueError``, or ``CompileError`` if the operator's type rule rejects
them. A requirement on symbolic sizes is checked at run time and raises ``ShapeError`` or
``BoundsError``.
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
