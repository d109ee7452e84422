"""[`Case`, `OperatorCase`]: an ONNX model with symbolic dims and the sizes at which the search runs
it.
"""

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
    """Returns a random number generator that depends on the seed alone."""
    digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def extent(dim: str, sizes: Sizes) -> int:
    """Evaluates a dim at the given sizes. A dim is an integer, a symbol, or a Python arithmetic
    expression over symbols.
    """
    return int(eval(dim, {"__builtins__": {}}, dict(sizes)))


@dataclass(frozen=True)
class Operand:
    """An input or constant of a generated model: its dims, its element type, and how its values are
    generated.
    """

    dims: str
    fill: Fill
    dtype: str = "float32"

    def values(self, rand: np.random.Generator, sizes: Sizes) -> np.ndarray:
        """Generates the values of this operand at the given sizes."""
        shape = tuple(extent(d, sizes) for d in self.dims.split())
        return np.asarray(self.fill(rand, shape)).reshape(shape).astype(self.dtype, order="C")

    def declared(self) -> list[int | str]:
        """Returns the dims as the model declares them: integers, and names of symbols."""
        return [int(d) if d.isdigit() else d for d in self.dims.split()]


def normal(dims: str, dtype: str = "float32", scale: float = 1.0) -> Operand:
    """Returns an operand with normally distributed values."""
    return Operand(dims, lambda rand, shape: rand.standard_normal(shape, np.float32) * np.float32(scale), dtype)


def uniform(dims: str, lo: float, hi: float, dtype: str = "float32") -> Operand:
    """Returns an operand with uniformly distributed values."""
    return Operand(dims, lambda rand, shape: rand.random(shape, np.float32) * np.float32(hi - lo) + np.float32(lo), dtype)


def ints(dims: str, lo: int, hi: int, dtype: str = "int64") -> Operand:
    """Returns an operand with random integers from `lo` (inclusive) to `hi` (exclusive)."""
    return Operand(dims, lambda rand, shape: rand.integers(lo, hi, shape), dtype)


def bools(dims: str) -> Operand:
    """Returns a bool operand in which true and false are equally likely."""
    return Operand(dims, lambda rand, shape: rand.integers(0, 2, shape), "bool")


def generated(dims: str, fill: Fill, dtype: str = "float32") -> Operand:
    """Returns an operand whose values come from a function of the random generator and the
    shape.
    """
    return Operand(dims, fill, dtype)


@dataclass
class Case:
    """A model and the sizes at which it runs. Model and inputs are created by functions on demand,
    since most cases are filtered out.
    """

    name: str
    model: Callable[[], onnx.ModelProto]
    feeds: Callable[[Sizes], Feeds]
    sizes: Sequence[Sizes]
    # Allowed difference, relative to the largest absolute value of an output; None compares shapes and types only.
    error: float | None = 1e-4
    # Integer outputs may be off by this much (requantization).
    step: int = 0
    # Outputs without defined order of elements are sorted before they are compared.
    unordered: bool = False


@dataclass
class OperatorCase:
    """A test case of one operator: a small ONNX model, and the sizes at which it runs."""

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
        """Returns the display name of the case: its operator and variant."""
        return " ".join(filter(None, [f"{self.domain}.{self.op}" if self.domain else self.op, self.variant]))

    def case(self) -> Case:
        """Converts this test case of an operator to a `Case`."""
        return Case(self.name(), self.model, self.feeds, self.sizes, self.error, self.step, self.unordered)

    def feeds(self, sizes: Sizes) -> Feeds:
        """Generates the input arrays at the given sizes."""
        return {k: x.values(rng(self.name(), k, sorted(sizes.items())), sizes) for k, x in self.inputs.items()}

    def model(self) -> onnx.ModelProto:
        """Builds the ONNX model of this test case."""
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
    """Builds an ONNX model from nodes. The types of its outputs are inferred."""
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
    """Builds a subgraph for If or Loop. `outputs` maps output names to element types."""
    infos = [helper.make_tensor_value_info(key, kind, None) for key, kind in outputs.items()]
    return helper.make_graph(nodes, name, list(inputs), infos)


def grid(**values: Sequence[int]) -> list[dict[str, int]]:
    """Returns a list of sizes; the i-th entry combines the i-th value of each symbol."""
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64
BOOL = TensorProto.BOOL
