"""Operators by name, under the module name of Relay."""

from __future__ import annotations

from typing import Any

from pliant._absent import absent_attribute
from pliant.ir import Op
from pliant.tvm.relay.op import op_attrs

__all__ = ["get", "op_attrs"]

get = Op.get


def __getattr__(name: str) -> Any:
    raise absent_attribute(__name__, name)
