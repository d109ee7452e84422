"""Checks of schedules, with the names of ``tvm.tir.schedule.testing``."""

from __future__ import annotations

from typing import Any

from pliant._core import IRModule, PrimFunc
from pliant.ir import assert_structural_equal

__all__ = ["assert_structural_equal_ignore_global_symbol", "verify_trace_roundtrip"]


def _named(obj: Any) -> Any:
    return obj.with_attr("global_symbol", "main") if isinstance(obj, PrimFunc) else obj


def assert_structural_equal_ignore_global_symbol(lhs: Any, rhs: Any, *args: Any, **options: Any) -> None:
    """Raises ``ValueError`` if two functions or modules differ in more than names, symbols and visibility."""
    assert_structural_equal(_named(lhs), _named(rhs), *args, **options)


def verify_trace_roundtrip(sch: Any, mod: PrimFunc | IRModule, *, debug_mask: Any = "all", text_format: Any = None) -> Any:
    """Applies the trace of a schedule to a function or module and raises ``ValueError`` if the result differs from that of the
    schedule. Returns the new schedule."""
    from pliant.tir.schedule import Schedule

    again = Schedule(mod)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    for name in [var.name_hint for var in sch.mod.get_global_vars()]:
        assert_structural_equal_ignore_global_symbol(again.mod[name], sch.mod[name])
    return again
