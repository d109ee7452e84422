"""Operators that communicate between workers. Pliant runs one worker, so they return their operand."""

from __future__ import annotations

from pliant.error import UnsupportedError
from pliant.relax.frontend.nn.core import Tensor, current_builder

_REDUCTIONS = ("sum", "prod", "min", "max", "avg")


def _alone(x: Tensor, name: str) -> Tensor:
    return Tensor(_expr=current_builder().emit(x._expr, name))


def ccl_allreduce(x: Tensor, op_type: str = "sum", in_group: bool = True, name: str = "ccl_allreduce") -> Tensor:
    """Combines the tensors of all workers by ``op_type``: ``"sum"``, ``"prod"``, ``"min"``, ``"max"`` or ``"avg"``. With one
    worker, the result is ``x``. Raises ``ValueError`` for another ``op_type``."""
    if op_type not in _REDUCTIONS:
        raise ValueError(f"ccl_allreduce: op_type must be one of {', '.join(_REDUCTIONS)}, got {op_type!r}")
    return _alone(x, name)


def ccl_allgather(x: Tensor, num_workers: int, name: str = "ccl_allgather") -> Tensor:
    """Concatenates the tensors of all workers along the first dim. Raises ``UnsupportedError`` for more than one worker."""
    if num_workers != 1:
        raise UnsupportedError(f"ccl_allgather: Pliant runs one worker, got num_workers={num_workers}")
    return _alone(x, name)


def ccl_broadcast_from_worker0(x: Tensor, name: str = "broadcast_from_worker") -> Tensor:
    """Broadcasts the tensor of the first worker. With one worker, the result is ``x``."""
    return _alone(x, name)


__all__ = ["ccl_allgather", "ccl_allreduce", "ccl_broadcast_from_worker0"]
