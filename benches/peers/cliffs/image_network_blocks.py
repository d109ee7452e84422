"""Blocks of image networks; each takes and returns a tensor of batch, channels, height and width."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .network_builder import Dim, Net, Value

Block = Callable[[Net, Value], Value]


def channels(x: Value) -> int:
    """Returns the number of channels of an image tensor."""
    return int(x.dims[1])


def conv(
    net: Net, x: Value, filters: int, k: int = 3, stride: int = 1, dilation: int = 1, groups: int = 1, bias: bool | None = None
) -> Value:
    """Adds a convolution whose padding keeps height and width at stride 1."""
    pad = dilation * (k - 1) // 2
    per = channels(x) // groups
    operands = [net.weight(filters, per, k, k, fan=per * k * k)]
    if bias if bias is not None else net.chance(0.6):
        operands.append(net.weight(filters, fan=100))
    spatial = [
        d if stride == 1 else net.derived_dim(d, lambda v: (v + 2 * pad - dilation * (k - 1) - 1) // stride + 1)
        for d in x.dims[2:]
    ]
    attrs: dict[str, Any] = {
        "kernel_shape": [k, k],
        "pads": [pad] * 4,
        "strides": [stride] * 2,
        "dilations": [dilation] * 2,
        "group": groups,
    }
    return net.op("Conv", x, *operands, dims=[x.dims[0], filters, *spatial], **attrs)


def batch_norm(net: Net, x: Value) -> Value:
    """Adds batch normalization with constant statistics."""
    c = channels(x)
    statistics = [net.constant(net.rand.random(c, np.float32) + np.float32(0.5)) for _ in range(4)]
    return net.op("BatchNormalization", x, *statistics, dims=x.dims)


def group_norm(net: Net, x: Value) -> Value:
    """Adds group normalization as torch exports it: InstanceNormalization with groups as
    channels.
    """
    groups = math.gcd(4, channels(x))
    per = net.merged_dim(channels(x) // groups, *x.dims[2:])
    rows = net.reshape(x, x.dims[0], groups, per)
    ones, zeros = net.constant(np.ones(groups, np.float32)), net.constant(np.zeros(groups, np.float32))
    normed = net.op("InstanceNormalization", rows, ones, zeros, dims=rows.dims)
    shape = net.op("Shape", x, dims=[4], dtype="int64")
    back = net.op("Reshape", normed, shape, dims=x.dims)
    scaled = net.binary("Mul", back, net.weight(channels(x), 1, 1, fan=9, mean=1))
    return net.binary("Add", scaled, net.weight(channels(x), 1, 1, fan=9))


def normed(net: Net, x: Value) -> Value:
    """Adds one of the normalizations, chosen at random."""
    kind = net.pick("batch", "batch", "group", "instance")
    if kind == "instance" and min(net.min_extent(d) for d in x.dims[2:]) > 3:
        c = channels(x)
        return net.op("InstanceNormalization", x, net.weight(c, fan=9, mean=1), net.weight(c, fan=9), dims=x.dims)
    return group_norm(net, x) if kind == "group" else batch_norm(net, x)


def basic(net: Net, x: Value) -> Value:
    """Adds a convolution, a normalization and an activation."""
    c = channels(x)
    groups = net.pick(1, 1, 1, 2, 4)
    filters = net.pick(16, 24, 32, 48)
    groups = groups if c % groups == 0 and filters % groups == 0 else 1
    dilation = net.pick(1, 1, 1, 2, 3)
    return net.activation(normed(net, conv(net, x, filters, net.pick(1, 3, 3, 5), 1, dilation, groups)))


def down(net: Net, x: Value) -> Value:
    """Adds a block that halves height and width."""
    if min(net.min_extent(d) for d in x.dims[2:]) < 6:
        return basic(net, x)
    kind = net.pick("conv", "depthwise", "MaxPool", "AveragePool", "patches")
    if kind == "conv":
        return net.activation(normed(net, conv(net, x, net.pick(16, 32, 48), net.pick(3, 5, 7), 2)))
    if kind == "depthwise":
        return net.activation(conv(net, conv(net, x, channels(x), 3, 2, 1, channels(x)), net.pick(16, 32, 48), 1))
    if kind == "patches":
        spatial = [net.derived_dim(d, lambda v: (v - 2) // 2 + 1) for d in x.dims[2:]]
        weights = net.weight(32, channels(x), 2, 2, fan=4 * channels(x))
        return net.op("Conv", x, weights, dims=[x.dims[0], 32, *spatial], kernel_shape=[2, 2], strides=[2, 2])
    k, pad = net.pick((2, 0), (3, 1))
    spatial = [net.derived_dim(d, lambda v: (v + 2 * pad - k) // 2 + 1) for d in x.dims[2:]]
    return net.op(kind, x, dims=[*x.dims[:2], *spatial], kernel_shape=[k, k], strides=[2, 2], pads=[pad] * 4)


def pool(net: Net, x: Value) -> Value:
    """Adds pooling that keeps height and width, with several windows in parallel as in SPP."""
    if net.chance(0.5):
        k = net.pick(3, 5)
        kind = net.pick("MaxPool", "AveragePool")
        return net.op(kind, x, dims=x.dims, kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4)
    narrow = conv(net, x, 8, 1)
    parts = [narrow]
    for k in (5, 9, 13):
        parts.append(net.op("MaxPool", narrow, dims=narrow.dims, kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4))
    return net.activation(conv(net, net.concat(parts, 1, 32), 24, 1))


def squeeze(net: Net, x: Value) -> Value:
    """Adds a squeeze-and-excitation block."""
    c = channels(x)
    kind = net.pick("GlobalAveragePool", "ReduceMean")
    pooled = net.op(kind, x, dims=[*x.dims[:2], 1, 1]) if kind == "GlobalAveragePool" else net.reduce(kind, x, [2, 3])
    gate = conv(net, net.unary("Relu", conv(net, pooled, max(4, c // 4), 1, bias=True)), c, 1, bias=True)
    return net.binary("Mul", x, net.unary(net.pick("Sigmoid", "HardSigmoid"), gate))


def inverted(net: Net, x: Value) -> Value:
    """Adds an inverted residual block of MobileNet."""
    c = channels(x)
    wide = net.activation(batch_norm(net, conv(net, x, 2 * c, 1)))
    deep = net.activation(batch_norm(net, conv(net, wide, 2 * c, net.pick(3, 5), 1, net.pick(1, 1, 2), 2 * c)))
    out = batch_norm(net, conv(net, squeeze(net, deep) if net.chance(0.5) else deep, c, 1))
    return net.binary("Add", x, out)


def residual(net: Net, x: Value) -> Value:
    """Adds a residual block."""
    c = channels(x)
    y = conv(net, net.activation(normed(net, conv(net, x, c, 3))), c, 3)
    y = net.binary("Add", normed(net, y), x)
    return net.unary("Relu", y) if net.chance(0.7) else y


def pyramid(net: Net, x: Value) -> Value:
    """Adds parallel dilated convolutions and image pooling, as in ASPP."""
    parts = [net.unary("Relu", conv(net, x, 12, 3, 1, d)) for d in (1, 2, net.pick(4, 6))]
    pooled = net.op("GlobalAveragePool", x, dims=[*x.dims[:2], 1, 1])
    small = conv(net, pooled, 12, 1)
    target = net.sizes(x.dims[0], 12, *x.dims[2:])
    if net.chance(0.5):
        parts.append(net.op("Expand", small, target, dims=[x.dims[0], 12, *x.dims[2:]]))
    else:
        parts.append(resized(net, small, target, (x.dims[2], x.dims[3]), net.pick("linear", "nearest")))
    return net.activation(conv(net, net.concat(parts, 1, 48), net.pick(16, 32), 1))


def resized(net: Net, x: Value, target: Value, spatial: tuple[Dim, Dim], mode: str) -> Value:
    """Adds a resize to a size that the network computes."""
    how = "asymmetric" if mode == "nearest" else net.pick("half_pixel", "pytorch_half_pixel", "align_corners")
    attrs = {"mode": mode, "coordinate_transformation_mode": how}
    if mode == "nearest":
        attrs["nearest_mode"] = "floor"
    return net.op("Resize", x, None, None, target, dims=[*x.dims[:2], *spatial], **attrs)


def unet(net: Net, x: Value) -> Value:
    """Adds a U-Net level: downsampling, a block, upsampling to the size of the skip connection, and
    concatenation.
    """
    if min(net.min_extent(d) for d in x.dims[2:]) < 6:
        return residual(net, x)
    low = residual(net, down(net, x))
    c = channels(low)
    kind = net.pick("resize", "transposed", "shuffle")
    if kind == "resize":
        target = net.sizes(low.dims[0], c, *x.dims[2:])
        up = resized(net, low, target, (x.dims[2], x.dims[3]), net.pick("nearest", "linear"))
    else:
        up = cropped(net, doubled(net, low, kind), x)
    return net.activation(conv(net, net.concat([up, x], 1, channels(up) + channels(x)), net.pick(16, 32), 3))


def doubled(net: Net, x: Value, kind: str) -> Value:
    """Doubles height and width by a transposed convolution or a pixel shuffle, and adds two rows
    and columns, which a later block crops.
    """
    x = net.op(
        "Pad", x, net.ints(0, 0, 0, 0, 0, 0, 1, 1), dims=[*x.dims[:2], *(net.derived_dim(d, lambda v: v + 1) for d in x.dims[2:])]
    )
    spatial = [net.derived_dim(d, lambda v: 2 * v) for d in x.dims[2:]]
    c = channels(x)
    if kind == "transposed":
        k = net.pick(2, 4)
        pads = [(k - 2) // 2] * 4
        return net.op(
            "ConvTranspose",
            x,
            net.weight(c, 16, k, k, fan=4 * c),
            dims=[x.dims[0], 16, *spatial],
            kernel_shape=[k, k],
            strides=[2, 2],
            pads=pads,
        )
    wide = conv(net, x, 64, 1)
    if net.chance(0.5):
        return net.op("DepthToSpace", wide, dims=[x.dims[0], 16, *spatial], blocksize=2, mode=net.pick("DCR", "CRD"))
    six = net.reshape(wide, x.dims[0], 16, 2, 2, *x.dims[2:])
    twice = [net.binary("Mul", net.size_of(d), net.ints(2)) for d in x.dims[2:]]
    target = net.op("Concat", net.size_of(x.dims[0]), net.ints(16), *twice, dims=[4], dtype="int64", axis=0)
    return net.op("Reshape", net.transpose(six, 0, 1, 4, 2, 5, 3), target, dims=[x.dims[0], 16, *spatial])


def cropped(net: Net, x: Value, like: Value) -> Value:
    """Crops an image to the height and width of another tensor, by slices."""
    for axis in (2, 3):
        x = net.slice(x, axis, 0, net.size_of(like.dims[axis]), like.dims[axis])
    return x


def shuffle(net: Net, x: Value) -> Value:
    """Adds a channel shuffle after a grouped convolution."""
    c, g = channels(x), net.pick(2, 4)
    if c % g:
        return basic(net, x)
    y = conv(net, x, c, 1, 1, 1, g)
    five = net.reshape(y, x.dims[0], g, c // g, *x.dims[2:])
    return net.reshape(net.transpose(five, 0, 2, 1, 3, 4), *x.dims)


def partial(net: Net, x: Value) -> Value:
    """Adds a cross-stage partial block: the channels are split, one half is convolved, and both are
    concatenated.
    """
    c = channels(x)
    a, b = net.split(x, 1, [c // 2, c - c // 2])
    y = net.activation(conv(net, b, channels(b), 3))
    z = net.binary("Add", b, net.activation(conv(net, y, channels(b), 3)))
    return net.activation(conv(net, net.concat([a, y, z], 1, c // 2 + 2 * (c - c // 2)), net.pick(16, 32), 1))


def even(net: Net, x: Value, multiple: int) -> Value:
    """Pads height and width at their ends to multiples of a number, by shape arithmetic."""
    pads = []
    for dim in x.dims[2:]:
        m = net.ints(multiple)
        rest = net.binary("Mod", net.size_of(dim), m)
        pads.append(net.binary("Mod", net.binary("Sub", m, rest), m))
    zeros = net.ints(0)
    pad = net.op("Concat", *[zeros] * 6, *pads, dims=[8], dtype="int64", axis=0)
    spatial = [net.derived_dim(d, lambda v: -(-v // multiple) * multiple) for d in x.dims[2:]]
    return net.op("Pad", x, pad, dims=[*x.dims[:2], *spatial], mode="constant")


def focus(net: Net, x: Value) -> Value:
    """Adds space-to-depth by strided slices, as in YOLO's Focus."""
    x = even(net, x, 2)
    half = [net.derived_dim(d, lambda v: v // 2) for d in x.dims[2:]]
    parts = []
    for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)):
        rows = net.slice(x, 2, i, 2**31, half[0], 2)
        parts.append(net.slice(rows, 3, j, 2**31, half[1], 2))
    return net.activation(conv(net, net.concat(parts, 1, 4 * channels(x)), 32, 3))


def convnext(net: Net, x: Value) -> Value:
    """Adds a ConvNeXt block: depthwise 7 x 7 convolution, layer norm and a pointwise network with
    channels last.
    """
    c = channels(x)
    y = net.transpose(conv(net, x, c, 7, 1, 1, c), 0, 2, 3, 1)
    y = net.op("LayerNormalization", y, net.weight(c, fan=9, mean=1), net.weight(c, fan=9), dims=y.dims, axis=-1, epsilon=1e-6)
    y = net.binary("Add", net.matmul(y, net.weight(c, 2 * c)), net.weight(2 * c, fan=9))
    y = net.binary("Add", net.matmul(net.activation(y), net.weight(2 * c, c)), net.weight(c, fan=9))
    return net.binary("Add", x, net.transpose(net.binary("Mul", y, net.weight(c, fan=9)), 0, 3, 1, 2))


def windows(net: Net, x: Value) -> Value:
    """Adds Swin's window attention: pad, optional cyclic shift, attention within windows, reverse
    shift, crop.
    """
    from .sequence_network_blocks import attend

    size, c = net.pick(4, 7), channels(x)
    if c % 4:
        return residual(net, x)
    y = net.transpose(even(net, x, size), 0, 2, 3, 1)
    n, h, w = y.dims[0], y.dims[1], y.dims[2]
    shifted = net.chance(0.5)
    y = rolled(net, y, size // 2) if shifted else y
    rows, columns = (net.derived_dim(d, lambda v: v // size) for d in (h, w))
    parts = [net.binary("Div", net.size_of(d), net.ints(size)) for d in (h, w)]
    batch = net.size_of(n) if net.chance(0.5) else net.ints(-1)
    target = net.op("Concat", batch, parts[0], net.ints(size), parts[1], net.ints(size, c), dims=[6], dtype="int64", axis=0)
    six = net.op("Reshape", y, target, dims=[n, rows, size, columns, size, c])
    total = net.merged_dim(n, rows, columns)
    tokens = net.reshape(net.transpose(six, 0, 1, 3, 2, 4, 5), total, size * size, c)
    tokens = attend(net, tokens, tokens, heads=4)
    six = net.transpose(net.reshape(tokens, n, rows, columns, size, size, c), 0, 1, 3, 2, 4, 5)
    y = net.reshape(six, n, h, w, c)
    y = rolled(net, y, -(size // 2)) if shifted else y
    return net.binary("Add", x, cropped(net, net.transpose(y, 0, 3, 1, 2), x))


def rolled(net: Net, x: Value, shift: int) -> Value:
    """Adds a cyclic shift of axes 1 and 2, by slices and concatenation."""
    # The part that moves has a static size.
    first = abs(shift)
    for axis in (1, 2):
        dim = x.dims[axis]
        rest = net.derived_dim(dim, lambda v: v - first)
        if shift > 0:
            parts = [net.slice(x, axis, first, 2**63 - 1, rest), net.slice(x, axis, 0, first, first)]
        else:
            parts = [net.slice(x, axis, -first, 2**63 - 1, first), net.slice(x, axis, 0, -first, rest)]
        x = net.concat(parts, axis, dim)
    return x


def non_local(net: Net, x: Value) -> Value:
    """Adds attention between all positions of an image."""
    x = down(net, x)
    c = channels(x)
    if math.prod(max(net.extents_of(d)) for d in x.dims[2:]) > 2500:
        return x
    area = net.merged_dim(*x.dims[2:])
    q, k, v = (net.reshape(conv(net, x, n, 1), x.dims[0], n, area) for n in (8, 8, c))
    scores = net.op("Softmax", net.matmul(net.transpose(q, 0, 2, 1), k), dims=[x.dims[0], area, area], axis=-1)
    mixed = net.matmul(v, net.transpose(scores, 0, 2, 1))
    return net.binary("Add", x, net.reshape(mixed, *x.dims))


def coordinates(net: Net, x: Value) -> Value:
    """Appends normalized pixel coordinates as channels."""
    extra = []
    for axis in (2, 3):
        size = net.scalar_size(x.dims[axis])
        steps = net.op("Range", net.constant(np.int64(0)), size, net.constant(np.int64(1)), dims=[x.dims[axis]], dtype="int64")
        last = net.cast(net.binary("Sub", size, net.constant(np.int64(1))), "float32")
        line = net.binary("Div", net.cast(steps, "float32"), net.op("Max", last, net.number(1), dims=[]))
        axes, dims = (([0, 1, 3], [1, 1, x.dims[2], 1]), ([0, 1, 2], [1, 1, 1, x.dims[3]]))[axis - 2]
        plane = net.op("Unsqueeze", line, net.ints(*axes), dims=dims)
        target = net.sizes(x.dims[0], 1, *x.dims[2:])
        extra.append(net.op("Expand", plane, target, dims=[x.dims[0], 1, *x.dims[2:]]))
    return net.activation(conv(net, net.concat([x, *extra], 1, channels(x) + 2), net.pick(16, 32), 3))


def gates(net: Net, x: Value) -> Value:
    """Adds a spatial attention gate, as in CBAM."""
    means = [net.reduce(kind, x, [1]) for kind in ("ReduceMean", "ReduceMax")]
    gate = conv(net, net.concat(means, 1, 2), 1, 7)
    return net.binary("Mul", x, net.unary("Sigmoid", gate))


def reflected(net: Net, x: Value) -> Value:
    """Adds a convolution with reflection padding."""
    if min(net.min_extent(d) for d in x.dims[2:]) < 4:
        return basic(net, x)
    c = channels(x)
    wide = [net.derived_dim(d, lambda v: v + 2) for d in x.dims[2:]]
    y = net.op("Pad", x, net.ints(0, 0, 1, 1, 0, 0, 1, 1), dims=[*x.dims[:2], *wide], mode=net.pick("reflect", "edge"))
    return net.op("Conv", y, net.weight(c, c, 3, 3, fan=9 * c), dims=x.dims, kernel_shape=[3, 3])


def channels_last(net: Net, x: Value) -> Value:
    """Adds a convolution as tf2onnx writes it: transposes around it, with bias and activation in
    channels-last layout.
    """
    c = channels(x)
    y = net.transpose(conv(net, x, c, 3, bias=False), 0, 2, 3, 1)
    y = net.activation(net.binary("Add", y, net.weight(c, fan=9)))
    y = net.transpose(y, 0, 3, 1, 2)
    y = net.transpose(conv(net, y, c, 1, bias=False), 0, 2, 3, 1)
    return net.transpose(net.binary("Add", y, net.transpose(x, 0, 2, 3, 1)), 0, 3, 1, 2)


BLOCKS: list[Block] = [
    basic,
    basic,
    down,
    down,
    pool,
    squeeze,
    inverted,
    residual,
    pyramid,
    unet,
    shuffle,
    partial,
    focus,
    convnext,
    windows,
    non_local,
    coordinates,
    gates,
    reflected,
    channels_last,
]
