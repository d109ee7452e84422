"""Schedules of loop functions: :class:`Schedule` transforms loops and blocks step by step, and :class:`Trace` records the steps."""

from __future__ import annotations

from pliant._core import BlockRV, LoopRV
from pliant.error import ScheduleError
from pliant.tir.schedule.schedule import Schedule
from pliant.tir.schedule.tensor_intrin import TensorIntrin
from pliant.tir.schedule.trace import ExprRV, Instruction, Trace

__all__ = ["BlockRV", "ExprRV", "Instruction", "LoopRV", "Schedule", "ScheduleError", "TensorIntrin", "Trace"]
