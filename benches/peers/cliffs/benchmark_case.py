"""A case: a model with symbolic dims and the sizes it runs at."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

Feeds = dict[str, Any]
Sizes = Mapping[str, int]
# Makes the values of an input from a shape.
Fill = Callable[[np.random.Generator, tuple[int, ...]], Any]

MICROSOFT = "com.microsoft"


def rng(*seed: object) -> np.random.Generator:
    """A generator that depends on the seed alone."""
    digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def extent(dim: str, sizes: Sizes) -> int:
    """The value of a dim: an integer, a symbol, or Python arithmetic over symbols."""
    return int(eval(dim, {"__builtins__": {}}, dict(sizes)))


@dataclass(frozen=True)
class Operand:
    """A model input or a constant: its dims, element type and values."""

    dims: str
    fill: Fill
    dtype: str = "float32"

    def values(self, rand: np.random.Generator, sizes: Sizes) -> np.ndarray:
        """Values at the given sizes."""
        shape = tuple(extent(d, sizes) for d in self.dims.split())
        return np.asarray(self.fill(rand, shape)).reshape(shape).astype(self.dtype, order="C")

    def declared(self) -> list[int | str]:
        """Dims as the model declares them: integers, and names of symbols."""
        return [int(d) if d.isdigit() else d for d in self.dims.split()]


def normal(dims: str, dtype: str = "float32", scale: float = 1.0) -> Operand:
    """Normally distributed values."""
    return Operand(dims, lambda rand, shape: rand.standard_normal(shape, np.float32) * np.float32(scale), dtype)


def uniform(dims: str, lo: float, hi: float, dtype: str = "float32") -> Operand:
    """Uniformly distributed values."""
    return Operand(dims, lambda rand, shape: rand.random(shape, np.float32) * np.float32(hi - lo) + np.float32(lo), dtype)


def ints(dims: str, lo: int, hi: int, dtype: str = "int64") -> Operand:
    """Integers from `lo` to `hi`, exclusive."""
    return Operand(dims, lambda rand, shape: rand.integers(lo, hi, shape), dtype)


def bools(dims: str) -> Operand:
    """True and false, evenly."""
    return Operand(dims, lambda rand, shape: rand.integers(0, 2, shape), "bool")


def generated(dims: str, fill: Fill, dtype: str = "float32") -> Operand:
    """Values of a function of generator and shape."""
    return Operand(dims, fill, dtype)


@dataclass
class Case:
    """A model and its sizes; the functions are deferred, since most cases of a table are filtered out."""

    name: str
    model: Callable[[], onnx.ModelProto]
    feeds: Callable[[Sizes], Feeds]
    sizes: Sequence[Sizes]
    # Allowed difference, relative to the largest absolute value of an output; None compares shapes and types only.
    error: float | None = 1e-4
    # Integer outputs may be off by this much (requantisation).
    step: int = 0
    # Outputs without defined order of elements are sorted before they are compared.
    unordered: bool = False


@dataclass
class OperatorCase:
    """A model of few nodes, written as a row of the operator tables."""

    op: str
    inputs: Mapping[str, Operand]
    sizes: Sequence[Sizes]
    constants: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    # What distinguishes this row from others of its operator.
    variant: str = ""
    outputs: Sequence[str] = ("y",)
    domain: str = ""
    opset: int = 21
    error: float | None = 1e-4
    step: int = 0
    unordered: bool = False
    # Names of the node's operands in order; by default the inputs, then the constants.
    order: Sequence[str] | None = None
    # All nodes, where there are several or where operands are optional.
    nodes: Sequence[NodeProto] | None = None

    def name(self) -> str:
        """Operator and variant."""
        return " ".join(filter(None, [f"{self.domain}.{self.op}" if self.domain else self.op, self.variant]))

    def case(self) -> Case:
        """The row as a case."""
        return Case(self.name(), self.model, self.feeds, self.sizes, self.error, self.step, self.unordered)

    def feeds(self, sizes: Sizes) -> Feeds:
        """Inputs at the given sizes."""
        return {k: x.values(rng(self.name(), k, sorted(sizes.items())), sizes) for k, x in self.inputs.items()}

    def model(self) -> onnx.ModelProto:
        """The ONNX model."""
        operands = list(self.order) if self.order is not None else [*self.inputs, *self.constants]
        nodes = self.nodes or [helper.make_node(self.op, operands, self.outputs, domain=self.domain, **self.attrs)]
        constants = {}
        for name, value in self.constants.items():
            x = value.values(rng(self.name(), name), {}) if isinstance(value, Operand) else np.asarray(value)
            constants[name] = x
        inputs = {k: (x.dtype, x.declared()) for k, x in self.inputs.items()}
        return make_model(nodes, inputs, [o for o in self.outputs if o], constants, self.opset)


def make_model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, tuple[str, Sequence[int | str]]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray],
    opset: int,
) -> onnx.ModelProto:
    """A model whose output types are inferred."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(dims))
        for name, (dtype, dims) in inputs.items()
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        infos,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10 if opset < 24 else 11)


def branch(name: str, nodes: Sequence[NodeProto], outputs: Mapping[str, int], inputs: Sequence[Any] = ()) -> GraphProto:
    """A subgraph; `outputs` maps names to element types."""
    infos = [helper.make_tensor_value_info(key, kind, None) for key, kind in outputs.items()]
    return helper.make_graph(nodes, name, list(inputs), infos)


def grid(**values: Sequence[int]) -> list[dict[str, int]]:
    """Sizes: the i-th of each symbol together."""
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL
