"""Imports modules that ``torch.fx.symbolic_trace`` returned, with TVM's signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.fx
from torch.export import Dim

from pliant._core import IRModule
from pliant.error import UnsupportedError
from pliant.frontend.torch.compiling import export
from pliant.frontend.torch.data_types import torch_dtype
from pliant.frontend.torch.exported_program import from_exported_program

EXAMPLE_SIZE = 3
"""The size of symbolic dims in the example inputs."""


def from_fx(
    model: torch.fx.GraphModule,
    input_info: Sequence[tuple[Sequence[Any], str]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[Any, Callable[..., Any]] | None = None,
) -> IRModule:
    """Imports a graph module. It is exported with example inputs, and imported as by :func:`from_exported_program`.

    ``input_info`` has the shape and the data type of each input. A size is a number, or the name or variable of a symbolic dim.
    ``custom_convert_map`` must be empty: register operators with ``relax.op.register_op`` instead.

    Raises ``UnsupportedError`` for unsupported operators, ``CompileError`` if torch cannot export the module, and ``TypeError``
    for an invalid ``input_info``.
    """
    if custom_convert_map:
        raise UnsupportedError("custom_convert_map is not supported: export the model with supported operators")
    dims: dict[str, Any] = {}
    examples, shapes = [], []
    for shape, dtype in input_info:
        entries = {axis: dims.setdefault(name, Dim(name)) for axis, name in enumerate(map(_name, shape)) if name}
        sizes = [EXAMPLE_SIZE if axis in entries else int(size) for axis, size in enumerate(shape)]
        examples.append(torch.zeros(sizes, dtype=torch_dtype(dtype)))
        shapes.append(entries or None)
    program = export(model, {"args": tuple(examples), "dynamic_shapes": tuple(shapes)})
    return from_exported_program(
        program,
        keep_params_as_input=keep_params_as_input,
        unwrap_unit_return_tuple=unwrap_unit_return_tuple,
        no_bind_return_tuple=no_bind_return_tuple,
    )


def _name(size: Any) -> str | None:
    """The name of a symbolic size, or ``None`` for a number."""
    if isinstance(size, int):
        return None
    name = size if isinstance(size, str) else getattr(size, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"input_info: expected a size, a name or a variable, got {size!r}")
    return name
