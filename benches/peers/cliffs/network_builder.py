"""[`Net`]: builds networks as ONNX exporters write them, with nodes for shape arithmetic, reshapes with 0 and -1, and layers
decomposed into several nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, helper

# A static size, or the label of a symbolic one.
Dim = int | str


@dataclass(frozen=True)
class Value:
    """A tensor of the network under construction."""

    name: str
    dims: tuple[Dim, ...]
    dtype: str = "float32"


@dataclass
class Net:
    """A network under construction. The network runs at several sizes, and each label (symbolic dim)
    has one extent for each of them.
    """

    rand: np.random.Generator
    extents: dict[str, tuple[int, ...]] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, Value] = field(default_factory=dict)
    # A tensor and axis that has each label.
    origin: dict[str, tuple[Value, int]] = field(default_factory=dict)
    # Padding masks of sequences by their labels of batch and length.
    masks: dict[tuple[Dim, ...], Value] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)

    def pick(self, *choices: Any) -> Any:
        """Chooses one of several values at random."""
        return choices[int(self.rand.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        """Returns true with probability `p`."""
        return bool(self.rand.random() < p)

    def label(self, name: str, extents: Sequence[int]) -> str:
        """Creates a new label (symbolic dim)."""
        unique = name if name not in self.extents else f"{name}{len(self.extents)}"
        self.extents[unique] = tuple(extents)
        return unique

    def min_extent(self, dim: Dim) -> int:
        """Returns the smallest extent of a dim over all sizes."""
        return dim if isinstance(dim, int) else min(self.extents[dim])

    def extents_of(self, dim: Dim) -> tuple[int, ...]:
        """Returns the extents of a dim at all sizes."""
        return self.extents[dim] if isinstance(dim, str) else (dim,) * len(next(iter(self.extents.values())))

    def derived_dim(self, dim: Dim, function: Any) -> Dim:
        """Returns a dim whose extents are a function of another dim's extents."""
        values = [int(function(v)) for v in self.extents_of(dim)]
        return self.label("d", values) if isinstance(dim, str) else values[0]

    def merged_dim(self, *dims: Dim) -> Dim:
        """Returns a dim that is the product of the given dims."""
        if all(isinstance(d, int) for d in dims):
            return math.prod(int(d) for d in dims)
        return self.label("p", [math.prod(v) for v in zip(*(self.extents_of(d) for d in dims), strict=True)])

    def register(self, value: Value) -> Value:
        """Records this tensor as the source from which Shape nodes read the size of each label that first occurs in its dims."""
        for axis, dim in enumerate(value.dims):
            if isinstance(dim, str):
                self.origin.setdefault(dim, (value, axis))
        return value

    def add_input(self, name: str, dims: Sequence[Dim], dtype: str = "float32") -> Value:
        """Adds a model input."""
        self.inputs[name] = self.register(Value(name, tuple(dims), dtype))
        return self.inputs[name]

    def op(self, kind: str, *operands: Value | None, dims: Sequence[Dim], dtype: str = "float32", **attrs: Any) -> Value:
        """Adds a node with one output and returns the output."""
        return self.ops(kind, *operands, dims=[dims], dtype=dtype, **attrs)[0]

    def ops(
        self, kind: str, *operands: Value | None, dims: Sequence[Sequence[Dim]], dtype: str = "float32", **attrs: Any
    ) -> list[Value]:
        """Adds a node with several outputs and returns them."""
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(len(dims))]
        self.nodes.append(helper.make_node(kind, [o.name if o else "" for o in operands], names, **attrs))
        return [self.register(Value(name, tuple(d), dtype)) for name, d in zip(names, dims, strict=True)]

    def constant(self, value: Any) -> Value:
        """Adds a constant tensor."""
        x = np.asarray(value)
        name = f"c{len(self.constants)}"
        self.constants[name] = x
        return Value(name, x.shape, str(x.dtype))

    def number(self, value: float) -> Value:
        """Adds a float32 scalar constant."""
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> Value:
        """Adds a constant int64 vector."""
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int, fan: int | None = None, mean: float = 0.0) -> Value:
        """Adds a constant weight with normally distributed values, divided by the square root of
        `fan`, the number of terms that are summed (by default the first dim).
        """
        fan = fan if fan is not None else shape[0]
        return self.constant(
            (self.rand.standard_normal(shape, np.float32) / np.float32(math.sqrt(fan)) + np.float32(mean)).astype(np.float32)
        )

    def binary(self, kind: str, a: Value, b: Value) -> Value:
        """Adds an elementwise operator of two operands, with broadcasting."""
        rank = max(len(a.dims), len(b.dims))
        pairs = zip((1,) * (rank - len(a.dims)) + a.dims, (1,) * (rank - len(b.dims)) + b.dims, strict=True)
        dims = [y if x == 1 else x for x, y in pairs]
        boolean = kind in ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual", "And", "Or")
        return self.op(kind, a, b, dims=dims, dtype="bool" if boolean else a.dtype)

    def unary(self, kind: str, x: Value, **attrs: Any) -> Value:
        """Adds an elementwise function of one operand."""
        return self.op(kind, x, dims=x.dims, dtype=x.dtype, **attrs)

    def cast(self, x: Value, dtype: str) -> Value:
        """Adds a conversion of the element type."""
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.op("Cast", x, dims=x.dims, dtype=dtype, to=to)

    def size_of(self, dim: Dim) -> Value:
        """Adds nodes that compute a dim as an int64 vector of one element."""
        if isinstance(dim, int):
            return self.ints(dim)
        value, axis = self.origin[dim]
        form = self.pick("gather", "slice", "range")
        if form == "range":
            return self.op("Shape", value, dims=[1], dtype="int64", start=axis, end=axis + 1)
        shape = self.op("Shape", value, dims=[len(value.dims)], dtype="int64")
        if form == "slice":
            return self.op("Slice", shape, self.ints(axis), self.ints(axis + 1), self.ints(0), dims=[1], dtype="int64")
        scalar = self.op("Gather", shape, self.constant(np.int64(axis)), dims=[], dtype="int64", axis=0)
        return self.op("Unsqueeze", scalar, self.ints(0), dims=[1], dtype="int64")

    def scalar_size(self, dim: Dim) -> Value:
        """Adds nodes that compute a dim as an int64 scalar."""
        return self.op("Squeeze", self.size_of(dim), self.ints(0), dims=[], dtype="int64")

    def sizes(self, *dims: Dim) -> Value:
        """Adds nodes that compute several dims as an int64 vector."""
        if all(isinstance(d, int) for d in dims):
            return self.ints(*(int(d) for d in dims))
        return self.op("Concat", *(self.size_of(d) for d in dims), dims=[len(dims)], dtype="int64", axis=0)

    def reshape(self, x: Value, *dims: Dim) -> Value:
        """Adds a reshape as exporters write it: constants 0 and -1 where possible, otherwise sizes
        read by Shape nodes.
        """
        literal: list[int | None] = [d if isinstance(d, int) else None for d in dims]
        for axis, dim in enumerate(dims):
            same = axis < len(x.dims) and x.dims[axis] == dim
            if literal[axis] is None and same and self.chance(0.6):
                literal[axis] = 0
        known = [d for d in dims if isinstance(d, str) and d in self.origin]
        missing = [axis for axis, value in enumerate(literal) if value is None]
        unavailable = [axis for axis in missing if dims[axis] not in known]
        # One size can be inferred, and has to be where no tensor has it yet.
        if unavailable or (missing and self.chance(0.7)):
            literal[unavailable[0] if unavailable else missing[-1]] = -1
        if None not in literal:
            target = self.ints(*(int(v) for v in literal if v is not None))
        else:
            parts = [self.size_of(d) if v is None else self.ints(v) for d, v in zip(dims, literal, strict=True)]
            target = self.op("Concat", *parts, dims=[len(dims)], dtype="int64", axis=0)
        return self.op("Reshape", x, target, dims=dims, dtype=x.dtype)

    def transpose(self, x: Value, *perm: int) -> Value:
        """Adds a transpose."""
        return self.op("Transpose", x, dims=[x.dims[p] for p in perm], dtype=x.dtype, perm=perm)

    def slice(self, x: Value, axis: int, start: int | Value, end: int | Value, dim: Dim, step: int = 1) -> Value:
        """Adds a slice of one axis. The bounds are constants, or vectors of one element."""
        bounds = [self.ints(b) if isinstance(b, int) else b for b in (start, end)]
        dims = [dim if i == axis else d for i, d in enumerate(x.dims)]
        return self.op("Slice", x, *bounds, self.ints(axis), self.ints(step), dims=dims, dtype=x.dtype)

    def concat(self, values: Sequence[Value], axis: int, dim: Dim) -> Value:
        """Adds a concatenation along an axis."""
        axis %= len(values[0].dims)
        dims = [dim if i == axis else d for i, d in enumerate(values[0].dims)]
        return self.op("Concat", *values, dims=dims, dtype=values[0].dtype, axis=axis)

    def split(self, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
        """Splits a tensor into parts of constant sizes, by Split or by slices."""
        axis %= len(x.dims)
        dims = [[size if i == axis else d for i, d in enumerate(x.dims)] for size in sizes]
        if self.chance(0.7):
            return self.ops("Split", x, self.ints(*sizes), dims=dims, dtype=x.dtype, axis=axis)
        ends = np.cumsum(sizes)
        return [self.slice(x, axis, int(e - s), int(e), s) for s, e in zip(sizes, ends, strict=True)]

    def matmul(self, a: Value, b: Value) -> Value:
        """Adds a matrix product with broadcast batch dims."""
        rank = max(len(a.dims), len(b.dims))
        pad = [(1,) * (rank - len(v.dims)) + v.dims for v in (a, b)]
        batch = [y if x == 1 else x for x, y in zip(pad[0][:-2], pad[1][:-2], strict=True)]
        return self.op("MatMul", a, b, dims=[*batch, a.dims[-2], b.dims[-1]])

    def reduce(self, kind: str, x: Value, axes: Sequence[int], keep: bool = True) -> Value:
        """Adds a reduction over constant axes."""
        axes = [a % len(x.dims) for a in axes]
        dims = [1 if i in axes else d for i, d in enumerate(x.dims) if keep or i not in axes]
        return self.op(kind, x, self.ints(*axes), dims=dims, dtype=x.dtype, keepdims=int(keep))

    def activation(self, x: Value) -> Value:
        """Adds an activation, which is often decomposed into several nodes."""
        kind = self.pick(
            "Relu",
            "silu",
            "hardswish",
            "gelu",
            "tanh gelu",
            "Relu6",
            "LeakyRelu",
            "Tanh",
            "Gelu",
            "softplus",
            "mish",
            "HardSwish",
            "PRelu",
        )
        match kind:
            case "silu":
                return self.binary("Mul", x, self.unary("Sigmoid", x))
            case "hardswish":
                clipped = self.op("Clip", self.binary("Add", x, self.number(3)), self.number(0), self.number(6), dims=x.dims)
                return self.binary("Div", self.binary("Mul", x, clipped), self.number(6))
            case "gelu":
                inner = self.unary("Erf", self.binary("Div", x, self.number(math.sqrt(2))))
                return self.binary("Mul", self.binary("Mul", x, self.binary("Add", inner, self.number(1))), self.number(0.5))
            case "tanh gelu":
                cube = self.binary("Mul", self.binary("Pow", x, self.number(3)), self.number(0.044715))
                inner = self.unary("Tanh", self.binary("Mul", self.binary("Add", x, cube), self.number(0.7978846)))
                return self.binary("Mul", self.binary("Mul", x, self.number(0.5)), self.binary("Add", inner, self.number(1)))
            case "Relu6":
                return self.op("Clip", x, self.number(0), self.number(6), dims=x.dims)
            case "softplus" | "mish":
                soft = self.unary("Softplus", x)
                return soft if kind == "softplus" else self.binary("Mul", x, self.unary("Tanh", soft))
            case "PRelu":
                slopes = (int(x.dims[1]), 1, 1) if len(x.dims) == 4 and isinstance(x.dims[1], int) else (1,)
                return self.op("PRelu", x, self.constant(self.rand.random(slopes, np.float32)), dims=x.dims)
            case _:
                return self.unary(kind, x)
