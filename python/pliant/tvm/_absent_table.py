"""The table of :func:`pliant.tvm.missing`: names (without ``tvm.``, separated by spaces, modules with a slash), what they are in TVM, why Pliant does not
have them, and what to use instead."""

from __future__ import annotations

ABSENT: list[tuple[str, str, str, str]] = [
    (
        "meta_schedule/ auto_scheduler/ autotvm/",
        "search for schedules by measurements",
        "loop functions are scheduled by rules for all sizes, without tuning",
        "pliant.compile, which schedules all functions, or tir.Schedule for a schedule by hand",
    ),
]
