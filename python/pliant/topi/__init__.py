"""The operators as tensor expressions, for ``bb.emit_te``, user-defined operators and loop
functions.

Every operator of ``relax.op`` with a tensor expression has a function here with the same name and
signature, generated from its declaration: ``topi.add(a, b)``, ``topi.nn.softmax(x)``,
``topi.image.resize2d(x, size)``. The function builds the same tensor expression to which calls of
the operator are lowered.

If TVM's ``topi`` uses another name or order of arguments than ``relax.op``, the function is defined
in :mod:`pliant.topi.tvm_signatures`, :mod:`pliant.topi.nn`, :mod:`pliant.topi.image` or
:mod:`pliant.topi.vision`. Functions of TVM's ``topi`` that are not operators are defined in
:mod:`pliant.topi.transform`. The modules ``topi.math``, ``topi.broadcast``, ``topi.reduction`` and
``topi.tensor`` have the same names as ``topi`` itself.

Invalid arguments raise ``ValueError``, or ``CompileError`` if the operator's type rule rejects
them. A requirement on symbolic sizes is checked at run time and raises ``ShapeError`` or
``BoundsError``.
"""

from __future__ import annotations

from typing import Any

from pliant.topi import (
    _operator_wrapper,
    broadcast,
    image,
    math,
    nn,
    reduction,
    tensor,
    transform,
    tvm_signatures,
    utils,
    vision,
)
from pliant.topi.transform import *  # noqa: F403
from pliant.topi.transform import __all__ as _formulas
from pliant.topi.tvm_signatures import *  # noqa: F403
from pliant.topi.tvm_signatures import __all__ as _tvm_names

__all__ = [
    "broadcast",
    "image",
    "math",
    "nn",
    "reduction",
    "tensor",
    "utils",
    "vision",
    *_tvm_names,
    *_formulas,
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _operator_wrapper.find(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(n.split(".")[0] for n in _operator_wrapper.names())})
