"""Pliant as a backend of the package ``onnx``: ``onnx.backend.base.Backend`` for its tests and for tools that take one.

>>> import pliant.onnx_backend as backend
>>> backend.prepare(onnx.load("model.onnx")).run([x])

It needs the package ``onnx``, which nothing else of Pliant does.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from pliant._model import Model
from pliant._model import compile as compile_model

__all__ = ["PliantBackend", "PliantBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]

# What the runners of tests hand through, which is theirs to look at.
_TEST_OPTIONS = ("rtol", "atol")


class PliantBackendRep(BackendRep):
    """A compiled model that takes arrays and gives arrays."""

    def __init__(self, model: Model, graph: onnx.GraphProto) -> None:
        self.model = model
        self._outputs = list(graph.output)

    def run(self, inputs: Any, *, timeout: float | None = None, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on a sequence of inputs in order, or a mapping by name. Sequences are lists of arrays, and an optional
        without a value is ``None``. ``timeout`` is the time limit of the run in seconds; a run that exceeds it raises
        ``TimeLimitError``."""
        if kwargs:
            raise TypeError(f"run takes no options but timeout, got {', '.join(kwargs)}")
        names = self.model.input_names
        if isinstance(inputs, Mapping):
            feeds = {name: fed(value) for name, value in inputs.items()}
        else:
            given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
            if len(given) > len(names):
                raise ValueError(f"{len(given)} inputs are given, but the model takes {len(names)}")
            feeds = {name: fed(value) for name, value in zip(names, given, strict=False)}
        results = self.model.run(None, feeds, timeout=timeout)
        return tuple(told(value, info.type) for value, info in zip(results, self._outputs, strict=True))


class PliantBackend(Backend):
    """Compiles models for the processor of this machine."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether all of the model can be imported."""
        from pliant.error import CompileError, UnsupportedError
        from pliant.frontend.onnx import from_onnx

        if not cls.supports_device(device):
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from_onnx(model, allow_specialization=True)
        except (CompileError, UnsupportedError):
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PliantBackendRep:
        """Compiles the model; ``kwargs`` are those of ``pliant.compile``. Tools that take a backend run a model at the
        sizes that it has, so that its symbols may be fixed unless ``allow_specialization`` says otherwise."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device '{device}': Pliant runs on 'CPU'")
        options = {k: v for k, v in kwargs.items() if k not in _TEST_OPTIONS}
        if "allow_specialization" in options:
            return PliantBackendRep(compile_model(model, **options), model.graph)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* would be fixed")
            return PliantBackendRep(compile_model(model, allow_specialization=True, **options), model.graph)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Runs one node; ``opset_version`` says which version of the operator it is, the newest otherwise."""
        version = kwargs.pop("opset_version", None)
        names = [n for n in node.input if n]
        given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
        values = [np.asarray(v) for v in given]
        if len(names) != len(values):
            raise ValueError(f"{len(values)} inputs are given, but the node reads {len(names)}")
        infos = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in zip(names, values, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=o) for o in node.output if o]
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        own = onnx.helper.make_opsetid(node.domain, version or newest(node))
        model = onnx.helper.make_model(graph, opset_imports=[own])
        return cls.prepare(model, device, **kwargs).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only the CPU."""
        return device.split(":")[0] == "CPU"


def newest(node: onnx.NodeProto) -> int:
    """The newest version of the operator sets that knows the node's operator."""
    if onnx.defs.has(node.op_type, node.domain):
        version: int = onnx.defs.get_schema(node.op_type, domain=node.domain).since_version
        return version
    return 1


def fed(value: Any) -> Any:
    """An input as the machine takes it. Integers of less than 8 bits stand in bytes, and floats of 8 and less by their
    codes; NumPy knows both from ``ml_dtypes``."""
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [fed(v) for v in value]
    array = np.asarray(value)
    if array.dtype.name.startswith(("float8", "float4")):
        return array.view(np.uint8)
    held = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}.get(array.dtype.name)
    return array if held is None else array.astype(held)


def told(value: Any, declared: onnx.TypeProto) -> Any:
    """A result in the element type that the model declares for it."""
    element = declared.tensor_type.elem_type
    if not isinstance(value, np.ndarray) or not element:
        return value
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    if dtype == value.dtype or value.dtype not in (np.int8, np.uint8):
        return value
    if dtype.name.startswith(("float8", "float4")):
        return value.view(dtype)
    return value.astype(dtype) if dtype.name.removeprefix("u") in ("int4", "int2") else value


is_compatible = PliantBackend.is_compatible
prepare = PliantBackend.prepare
run_model = PliantBackend.run_model
run_node = PliantBackend.run_node
supports_device = PliantBackend.supports_device
