"""Checks the inputs that a module overwrites, before it runs.

A compiled model computes the new values of mutated inputs, and copies them at the end of a call. This equals in-place execution
only if no other argument shares their memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from pliant.error import CallError


def check_mutated_inputs(arguments: Mapping[str, Any], mutated: Sequence[str]) -> None:
    """Raises ``CallError`` if a mutated argument cannot be overwritten or shares memory with another argument.

    Arguments whose memory is interleaved, such as even and odd columns of one tensor, count as sharing memory.
    """
    extents = {name: _extent(x) for name, x in arguments.items()}
    for name in mutated:
        _check_writable(name, arguments[name])
        start, end = extents[name]
        for other, (other_start, other_end) in extents.items():
            if other != name and start < other_end and other_start < end:
                problem = f"which shares memory with the argument {other}: pass a copy of one of them"
                raise CallError(f"the model overwrites the argument {name}, {problem}")


def _check_writable(name: str, x: Any) -> None:
    problem = None
    if isinstance(x, torch.Tensor):
        if x.requires_grad and torch.is_grad_enabled():
            problem = "which requires a gradient: call the model under torch.no_grad()"
        elif any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride(), strict=True)):
            problem = "some elements of which share memory: pass a clone"
    elif not isinstance(x, np.ndarray):
        problem = f"which must be a tensor or an array, but is of type {type(x).__name__}"
    elif not x.flags.writeable:
        problem = "which is read-only: pass a copy"
    if problem is not None:
        raise CallError(f"the model overwrites the argument {name}, {problem}")


def _extent(x: Any) -> tuple[int, int]:
    """The addresses of the first byte of a tensor or array and of the first byte after it. Equal if it has no elements."""
    if isinstance(x, torch.Tensor):
        address, item, strides = x.data_ptr(), x.element_size(), [s * x.element_size() for s in x.stride()]
    elif isinstance(x, np.ndarray):
        address, item, strides = x.ctypes.data, x.itemsize, list(x.strides)
    else:
        return 0, 0
    if 0 in x.shape:
        return 0, 0
    spans = [(size - 1) * stride for size, stride in zip(x.shape, strides, strict=True)]
    return address + sum(s for s in spans if s < 0), address + sum(s for s in spans if s > 0) + item
