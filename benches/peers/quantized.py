"""Layers of quantized ONNX models (QDQ): dequantized 8-bit operands, a bias, an activation and requantization.

``python -m peers.quantized``, within ``benches/``, measures them (see `layers` for the engines);
``--write`` replaces the tables in ``docs/internals/measurements/``.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from peers.engines import Feeds
from peers.layers import Layer, main

# Height and width of the input, channels, filters, filter size, stride, groups.
CONVOLUTIONS = [
    (56, 64, 64, 3, 1, 1),
    (28, 128, 128, 3, 1, 1),
    (14, 256, 256, 3, 1, 1),
    (56, 64, 128, 3, 2, 1),
    (56, 64, 256, 1, 1, 1),
    (14, 1024, 256, 1, 1, 1),
    (56, 144, 144, 3, 1, 144),
    (14, 576, 576, 3, 1, 576),
]
# Rows, columns, inner.
PRODUCTS = [(1, 1024, 1024), (8, 1024, 1024), (64, 1536, 384), (512, 1024, 1024)]
# Results are 8-bit integers, which may differ by one because of rounding.
ERROR = 1.5 / 128


def quantized_layer(
    name: str, x: tuple[int, ...], dims: list[int | str], weights: tuple[int, ...], filters: int, node: NodeProto
) -> Layer:
    """Returns the ONNX model of a quantized layer around `node`, which computes `p` from the dequantized operands `xf` and `wf`.
    `filters` is the number of output channels: the first dim of the weights of `Conv`, or the last dim of the weights of
    `MatMul`.
    """
    rand = np.random.default_rng(0)
    axis = 0 if node.op_type == "Conv" else 1
    # The scale of the weights keeps results near 1.
    inner = int(np.prod(weights)) // filters
    scales = (rand.random(filters) + 0.5).astype(np.float32) / 64 / np.sqrt(inner).astype(np.float32)
    constant_values = {
        "xs": np.float32(0.02),
        "xz": np.uint8(120),
        "w": rand.integers(-127, 128, weights).astype(np.int8),
        "ws": scales,
        "wz": np.zeros(filters, np.int8),
        "b": rand.integers(-9000, 9000, filters).astype(np.int32),
        "bs": scales * np.float32(0.02),
        "ys": np.float32(0.02),
        "yz": np.uint8(0),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["bf"], axis=0),
        node,
        *([] if axis == 0 else [helper.make_node("Add", ["p", "bf"], ["a"])]),
        helper.make_node("Relu", ["p" if axis == 0 else "a"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    constants: Feeds = {key: np.asarray(value) for key, value in constant_values.items()}
    return Layer(name, nodes, {"x": rand.integers(0, 256, x).astype(np.uint8)}, constants, dims, ERROR)


def convolution(size: int, channels: int, filters: int, kernel: int, stride: int, groups: int) -> Layer:
    """Returns a quantized convolution of one image with symbolic height and width."""
    pad = kernel // 2
    node = helper.make_node("Conv", ["xf", "wf", "bf"], ["p"], strides=[stride] * 2, pads=[pad] * 4, group=groups)
    name = f"{size} x {size} x {channels} to {filters}, {kernel} x {kernel} / {stride}"
    name += ", depthwise" if groups > 1 else ""
    weights = (filters, channels // groups, kernel, kernel)
    return quantized_layer(name, (1, channels, size, size), [1, channels, "height", "width"], weights, filters, node)


def product(rows: int, columns: int, inner: int) -> Layer:
    """Returns a quantized matrix product with a symbolic number of rows."""
    node = helper.make_node("MatMul", ["xf", "wf"], ["p"])
    return quantized_layer(f"{rows} x {columns} x {inner}", (rows, inner), ["rows", inner], (inner, columns), columns, node)


if __name__ == "__main__":
    layers = [*(convolution(*shape) for shape in CONVOLUTIONS), *(product(*shape) for shape in PRODUCTS)]
    main("peers.quantized", __doc__ or "", layers)
