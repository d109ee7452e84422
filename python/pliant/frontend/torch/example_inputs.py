"""Example inputs for tracing: torch specializes a program to dims that are 0 or 1 in its example inputs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pliant.error import CompileError

TRACED_SIZE = 2
"""The size that replaces a size of 0 or 1 of a dynamic dim. All dims get the same size, since they may have to be equal."""


def enlarged_examples(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Repeats example inputs along the dims that ``dynamic_shapes`` declares as dynamic and that have size 0 or 1.

    Returns the inputs unchanged if their structure does not match that of ``dynamic_shapes``, for which torch has errors. Raises
    ``CompileError`` for an axis that an example input does not have.
    """
    parameters = inspect.signature(module.forward).parameters
    try:
        arguments = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except TypeError:
        return args, kwargs
    if isinstance(shapes, Mapping):
        declared = dict(shapes)
    elif isinstance(shapes, list | tuple):
        declared = dict(zip(arguments, shapes, strict=False))
    else:
        return args, kwargs
    new_args: list[Any] = []
    new_kwargs: dict[str, Any] = {}
    for name, value in arguments.items():
        kind = parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named = declared.get(name, declared)
            new_kwargs.update((k, _enlarged(v, named.get(k) if isinstance(named, Mapping) else None)) for k, v in value.items())
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            new_args.extend(_enlarged(value, declared.get(name)))
        elif name in kwargs:
            new_kwargs[name] = _enlarged(value, declared.get(name))
        else:
            new_args.append(_enlarged(value, declared.get(name)))
    return tuple(new_args), {name: new_kwargs[name] for name in kwargs}


def _enlarged(value: Any, declared: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _enlarged_tensor(value, declared)
    if isinstance(value, Mapping) and isinstance(declared, Mapping):
        return type(value)({k: _enlarged(v, declared.get(k)) for k, v in value.items()})  # type: ignore[call-arg]
    if type(value) in (list, tuple) and isinstance(declared, list | tuple) and len(value) == len(declared):
        return type(value)(map(_enlarged, value, declared))
    return value


def _enlarged_tensor(value: torch.Tensor, declared: Any) -> torch.Tensor:
    if isinstance(declared, Mapping):
        entries: Sequence[tuple[Any, Any]] = list(declared.items())
    elif isinstance(declared, list | tuple):
        entries = list(enumerate(declared))
    else:
        return value
    for axis, entry in entries:
        if not isinstance(axis, int) or not _is_dynamic(entry):
            continue
        if not -value.ndim <= axis < value.ndim:
            raise CompileError(
                f"dynamic_shapes declares axis {axis}, but the example input of shape {tuple(value.shape)} has {value.ndim} axes"
            )
        if value.shape[axis] < TRACED_SIZE:
            shape = list(value.shape)
            shape[axis] = TRACED_SIZE
            value = value.expand(shape).contiguous() if value.shape[axis] == 1 else value.new_zeros(shape)
    return value


def _is_dynamic(entry: Any) -> bool:
    return entry is not None and not isinstance(entry, int) and "STATIC" not in str(entry)
