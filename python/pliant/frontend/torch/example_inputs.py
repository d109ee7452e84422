"""Example inputs for tracing: torch specializes a program to dims that are 0 or 1 in its example inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

TRACED_SIZE = 2
"""The size that replaces a size of 0 or 1 of a dynamic dim. All dims get the same size, since they may have to be equal."""


def enlarged_examples(args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Repeats example inputs along the dims that ``dynamic_shapes`` declares as dynamic and that have size 0 or 1."""
    if isinstance(shapes, Mapping):
        declared = list(shapes.values())
        by_name = {name: shapes.get(name) for name in kwargs}
    elif isinstance(shapes, list | tuple):
        declared = list(shapes)
        if len(declared) == 1 and _is_list_of_shapes(declared[0], args):
            declared = list(declared[0])
        by_name = dict(zip(kwargs, declared[len(args) :], strict=False))
    else:
        return args, kwargs
    new = tuple(_enlarged(a, declared[i] if i < len(declared) else None) for i, a in enumerate(args))
    return new, {name: _enlarged(v, by_name.get(name)) for name, v in kwargs.items()}


def _is_list_of_shapes(declared: Any, args: tuple[Any, ...]) -> bool:
    """Whether an entry declares the shapes of all arguments: those of a parameter ``*args``."""
    if not isinstance(declared, list | tuple) or len(declared) != len(args) or not isinstance(args[0], torch.Tensor):
        return False
    return any(isinstance(d, Mapping | list | tuple) for d in declared)


def _enlarged(value: Any, declared: Any) -> Any:
    if declared is None:
        return value
    if isinstance(value, torch.Tensor):
        return _enlarged_tensor(value, declared)
    if isinstance(value, Mapping) and isinstance(declared, Mapping):
        return type(value)({k: _enlarged(v, declared.get(k)) for k, v in value.items()})  # type: ignore[call-arg]
    if type(value) in (list, tuple) and isinstance(declared, list | tuple):
        return type(value)(_enlarged(v, d) for v, d in zip(value, declared, strict=False))
    return value


def _enlarged_tensor(value: torch.Tensor, declared: Any) -> torch.Tensor:
    entries = declared.items() if isinstance(declared, Mapping) else enumerate(declared)
    for axis, entry in entries:
        if isinstance(axis, int) and _is_dynamic(entry) and value.shape[axis] < TRACED_SIZE:
            shape = list(value.shape)
            shape[axis] = TRACED_SIZE
            value = value.expand(shape).contiguous() if value.shape[axis] == 1 else value.new_zeros(shape)
    return value


def _is_dynamic(entry: Any) -> bool:
    return entry is not None and not isinstance(entry, int) and "STATIC" not in str(entry)
