"""The operators: ``relax.op.add(x, y)``, ``relax.op.nn.relu(x)``.

The signature and documentation of an operator come from its declaration
(``help(relax.op.matmul)``). Python numbers get the data type of the tensor operands, and sequences
of sizes are shapes. A call raises ``TypeError`` for arguments that do not match the signature, and
``CompileError`` for operands of invalid types.
"""

from __future__ import annotations

from typing import Any

from pliant.relax.op import _calls, _user_operators
from pliant.relax.op._operator_lookup import find as _find
from pliant.relax.op._operator_lookup import names as _names
from pliant.relax.op._calls import (
    call_dps_packed,
    call_kernel,
    call_packed,
    call_pure_packed,
    call_py_func,
    call_tir,
)
from pliant.relax.op._user_operators import register_op


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _find(name)


def __dir__() -> list[str]:
    return sorted({*_calls.__all__, *_user_operators.__all__, *_names("")})


for _group in ("nn", "image", "signal", "vision", "memory", "inspect", "builtin", "grad"):
    _find(_group)
