"""Builds attention masks and position biases in the forms that ONNX exporters write."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from .network_builder import Dim, Net, Value

LOWEST = float(np.finfo(np.float32).min)


def positions(net: Net, dim: Dim) -> Value:
    """Adds nodes that compute the int64 vector 0, 1, ..., dim - 1."""
    return net.op("Range", net.constant(np.int64(0)), net.scalar_size(dim), net.constant(np.int64(1)), dims=[dim], dtype="int64")


def causal(net: Net, s: Dim, t: Dim) -> Value:
    """Adds a causal mask that is true where a query may attend: by Trilu of ones, or by comparing
    positions.
    """
    if net.chance(0.5):
        ones = net.op(
            "ConstantOfShape",
            net.sizes(s, t),
            dims=[s, t],
            dtype="float32",
            value=numpy_helper.from_array(np.ones(1, np.float32)),
        )
        return net.cast(net.op("Trilu", ones, dims=[s, t], upper=0), "bool")
    rows = net.op("Unsqueeze", positions(net, s), net.ints(1), dims=[s, 1], dtype="int64")
    columns = net.op("Unsqueeze", positions(net, t), net.ints(0), dims=[1, t], dtype="int64")
    return net.binary("LessOrEqual", columns, rows) if net.chance(0.5) else net.unary("Not", net.binary("Greater", columns, rows))


def padding_bias(net: Net, mask: Value, s: Dim, scores: Value) -> Value:
    """Adds nodes that apply an int64 padding mask to attention scores, in a random one of the forms that exporters write."""
    b, t = mask.dims
    four = net.op("Unsqueeze", mask, net.ints(1, 2), dims=[b, 1, 1, t], dtype="int64")
    form = net.pick("bert", "expand", "where", "equal")
    if form == "bert":
        inverse = net.binary("Sub", net.number(1), net.cast(four, "float32"))
        return net.binary("Add", scores, net.binary("Mul", inverse, net.number(net.pick(-10000.0, LOWEST))))
    if form == "where":
        return net.op("Where", net.cast(four, "bool"), scores, net.number(LOWEST), dims=scores.dims)
    if form == "equal":
        hidden = net.binary("Equal", four, net.constant(np.int64(0)))
        shape = net.op("Shape", scores, dims=[4], dtype="int64")
        wide = net.op("Expand", hidden, shape, dims=scores.dims, dtype="bool")
        return net.op("Where", wide, net.number(LOWEST), scores, dims=scores.dims)
    wide = net.op("Expand", four, net.sizes(b, 1, s, t), dims=[b, 1, s, t], dtype="int64")
    inverse = net.binary("Sub", net.number(1), net.cast(wide, "float32"))
    bias = net.op("Where", net.cast(inverse, "bool"), net.number(LOWEST), inverse, dims=inverse.dims)
    return net.binary("Add", scores, bias)


def bucket_bias(net: Net, heads: int, s: Dim, t: Dim) -> Value:
    """Adds a relative position bias: clipped distances that index a learnt table."""
    rows = net.op("Unsqueeze", positions(net, s), net.ints(1), dims=[s, 1], dtype="int64")
    columns = net.op("Unsqueeze", positions(net, t), net.ints(0), dims=[1, t], dtype="int64")
    offset = net.binary("Sub", columns, rows)
    clipped = net.op("Clip", offset, net.constant(np.int64(-8)), net.constant(np.int64(8)), dims=[s, t], dtype="int64")
    index = net.binary("Add", clipped, net.constant(np.int64(8)))
    table = net.op("Gather", net.weight(17, heads, fan=1), index, dims=[s, t, heads], axis=0)
    return net.op("Unsqueeze", net.transpose(table, 2, 0, 1), net.ints(0), dims=[1, heads, s, t])


def linear_bias(net: Net, heads: int, s: Dim, t: Dim) -> Value:
    """Adds an ALiBi bias to attention scores: slopes of the heads times distances."""
    offsets = net.cast(net.binary("Sub", net.op("Unsqueeze", positions(net, t), net.ints(0), dims=[1, t], dtype="int64"),
        net.op("Unsqueeze", positions(net, s), net.ints(1), dims=[s, 1], dtype="int64")), "float32")  # fmt: skip
    slopes = net.constant((2.0 ** -np.arange(1, heads + 1, dtype=np.float32)).reshape(heads, 1, 1))
    return net.binary("Mul", slopes, net.unary("Neg", net.unary("Abs", offsets)))
