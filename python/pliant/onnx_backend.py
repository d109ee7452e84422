"""Pliant as a backend of the package ``onnx``. This module implements ``onnx.backend.base.Backend``
for the test suite of ``onnx`` and for tools that use backends.

>>> import pliant.onnx_backend as backend
>>> backend.prepare(onnx.load("model.onnx")).run([x])

This module requires the package ``onnx``. The rest of Pliant does not.
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

# Options of the test runners, which Pliant does not use.
_TEST_OPTIONS = ("rtol", "atol")


class PliantBackendRep(BackendRep):
    """A compiled model that takes and returns NumPy arrays."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, *, timeout: float | None = None, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model and returns a tuple of outputs. ``inputs`` is a sequence in the order of
        the model's inputs, or a mapping by name. ONNX sequences are lists of arrays, and an absent
        optional value is ``None``.

        A run that takes longer than ``timeout`` seconds raises ``TimeLimitError``. Raises
        ``TypeError`` for other options, and ``ValueError`` for too many, missing or unknown inputs.
        """
        if kwargs:
            raise TypeError(f"run takes no option other than timeout, got {', '.join(kwargs)}")
        names = self.model.input_names
        if isinstance(inputs, Mapping):
            feeds = dict(inputs)
        else:
            given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
            if len(given) > len(names):
                raise ValueError(f"{len(given)} inputs are passed, but the model takes {len(names)}")
            feeds = dict(zip(names, given, strict=False))
        return tuple(self.model.run(None, feeds, timeout=timeout))


class PliantBackend(Backend):
    """Compiles models for the CPU of this machine."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the device is the CPU and the whole model can be imported."""
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
        """Compiles a model. ``kwargs`` are options of ``pliant.compile``.

        Tools that use backends run a model at its own sizes. Therefore symbols may be replaced by
        fixed sizes unless ``allow_specialization`` is ``False``. Raises ``ValueError`` for a device
        other than the CPU, and the errors of ``pliant.compile``.
        """
        if not cls.supports_device(device):
            raise ValueError(f"the device '{device}' is not supported; Pliant runs on 'CPU'")
        options = {k: v for k, v in kwargs.items() if k not in _TEST_OPTIONS}
        if "allow_specialization" in options:
            return PliantBackendRep(compile_model(model, **options))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* would be fixed")
            return PliantBackendRep(compile_model(model, allow_specialization=True, **options))

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Runs a single node and returns a tuple of outputs. ``opset_version`` is the version of
        the operator set, by default the newest one that defines the operator.

        Raises ``ValueError`` for a wrong number of inputs.
        """
        version = kwargs.pop("opset_version", None)
        names = [n for n in node.input if n]
        given = list(inputs) if isinstance(inputs, Sequence) else [inputs]
        values = [np.asarray(v) for v in given]
        if len(names) != len(values):
            raise ValueError(f"{len(values)} inputs are passed, but the node reads {len(names)}")
        infos = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in zip(names, values, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=o) for o in node.output if o]
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        own = onnx.helper.make_opsetid(node.domain, version or _newest_version(node))
        model = onnx.helper.make_model(graph, opset_imports=[own])
        return cls.prepare(model, device, **kwargs).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU, which is the only supported device."""
        return device.split(":")[0] == "CPU"


def _newest_version(node: onnx.NodeProto) -> int:
    """Returns the opset version in which the operator of a node was last changed, or 1 for an unknown operator."""
    if onnx.defs.has(node.op_type, node.domain):
        version: int = onnx.defs.get_schema(node.op_type, domain=node.domain).since_version
        return version
    return 1


is_compatible = PliantBackend.is_compatible
prepare = PliantBackend.prepare
run_model = PliantBackend.run_model
run_node = PliantBackend.run_node
supports_device = PliantBackend.supports_device
