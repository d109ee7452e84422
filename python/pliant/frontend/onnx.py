"""ONNX models as modules, every symbolic dimension kept.

>>> from pliant.frontend.onnx import from_onnx
>>> module = from_onnx("model.onnx")
>>> model = pliant.compile(module)

``pliant.compile("model.onnx")`` does both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pliant import _core
from pliant._core import IRModule

__all__ = ["from_onnx"]

Source = str | os.PathLike[str] | bytes
"""A path, or the bytes of a model. A ``ModelProto`` of the package ``onnx`` is taken too."""


def from_onnx(
    model: Source | Any,
    shape_dict: Mapping[str, Sequence[int | str]] | None = None,
    dtype_dict: Mapping[str, str] | str | None = None,
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
) -> IRModule:
    """Imports an ONNX model, whose graph becomes the function ``main``.

    Named dims become symbols; nothing is specialised. ``shape_dict`` gives dims of inputs in place of those that the
    file declares: numbers, or names of symbols. With ``keep_params_in_input`` the initializers become parameters behind
    the inputs and are found in the function's attribute ``params``, as TVM has it; else they are constants.

    Raises ``CompileError`` for a file that breaks ONNX's rules and ``UnsupportedError`` for what is not supported,
    with every node that is concerned.
    """
    if dtype_dict is not None:
        raise TypeError("dtype_dict is not taken: element types are those that the model declares")
    if opset is not None:
        raise TypeError("opset is not taken: the model says which it uses")
    del sanitize_input_names  # Names are made valid always.
    shapes = {name: list(dims) for name, dims in (shape_dict or {}).items()}
    module, params, _, _ = _core.import_onnx(source_of(model), keep_params_in_input, shapes)
    if keep_params_in_input:
        module["main"] = module["main"].with_attr("params", list(params.values()))
    return module


def source_of(model: Source | Any) -> str | bytes:
    """What the importer reads: a path or bytes."""
    if isinstance(model, bytes):
        return model
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return data
    raise TypeError(f"expected a path, bytes or an onnx.ModelProto, got {type(model).__name__}")
