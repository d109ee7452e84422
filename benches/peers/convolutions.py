"""Transposed and dilated convolutions of one image as ONNX models with channels first.

``python -m peers.convolutions``, within ``benches/``, measures them (see `layers` for the engines);
``--write`` replaces the tables in ``docs/internals/measurements/``.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from peers.layers import Layer, main

# Height and width of the input, channels, filters, filter size, stride, dilation, transposed.
SHAPES = [
    (64, 64, 32, 4, 2, 1, True),
    (16, 256, 128, 4, 2, 1, True),
    (64, 32, 32, 3, 1, 1, True),
    (64, 64, 32, 2, 2, 1, True),
    (32, 128, 64, 2, 2, 1, True),
    (56, 64, 64, 3, 1, 2, False),
    (28, 128, 128, 3, 1, 4, False),
]


def layer(size: int, channels: int, filters: int, kernel: int, stride: int, dilation: int, transposed: bool) -> Layer:
    """Returns the ONNX model of one convolution with a bias and with symbolic height and width."""
    rand = np.random.default_rng(0)
    order = (channels, filters) if transposed else (filters, channels)
    weights = rand.standard_normal((*order, kernel, kernel)) / np.sqrt(channels * kernel * kernel)
    constants = {"w": weights.astype(np.float32), "b": rand.standard_normal(filters).astype(np.float32)}
    pad = (kernel - stride) // 2 if transposed else dilation * (kernel // 2)
    kind = "ConvTranspose" if transposed else "Conv"
    node = helper.make_node(
        kind, ["x", *constants], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2, dilations=[dilation] * 2, pads=[pad] * 4
    )
    name = f"{size} x {size} x {channels} to {filters}, {kernel} x {kernel} / {stride}"
    name += ", transposed" if transposed else f", dilation {dilation}"
    x = rand.standard_normal((1, channels, size, size)).astype(np.float32)
    return Layer(name, [node], {"x": x}, constants, [1, channels, "height", "width"])


if __name__ == "__main__":
    main("peers.convolutions", __doc__ or "", [layer(*shape) for shape in SHAPES])
