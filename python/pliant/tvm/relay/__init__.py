"""The names of ``tvm.relay`` that graph functions of Relax use: operators by name, their attributes and types.

Relay itself is absent: its operators have other signatures than those of Relax. Text of Relay modules is imported by
``relax.frontend`` where available.
"""

from __future__ import annotations

from typing import Any

from pliant import _core
from pliant._absent import absent_attribute
from pliant.ir import GlobalVar, Op
from pliant.relax.ty import FuncType, TupleType
from pliant.tvm.relay import op

__all__ = ["Call", "Constant", "Expr", "FuncType", "Function", "GlobalVar", "If", "Op", "Tuple", "TupleGetItem", "TupleType", "Var", "op"]

_relax = _core.relax
Call = _relax.Call
Constant = _relax.Constant
Expr = _relax.Expr
Function = _relax.Function
If = _relax.If
Tuple = _relax.Tuple
TupleGetItem = _relax.TupleGetItem
Var = _relax.Var


def __getattr__(name: str) -> Any:
    raise absent_attribute(__name__, name)
