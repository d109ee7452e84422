"""Blocks of sequence networks; each takes and returns a tensor of batch, length and features."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .network_builder import Net, Value
from .attention_masks import LOWEST, bucket_bias, causal, linear_bias, padding_bias, positions

Block = Callable[[Net, Value], Value]


def width(x: Value) -> int:
    """Returns the number of features of a sequence tensor."""
    return int(x.dims[-1])


def linear(net: Net, x: Value, out: int, bias: bool = True) -> Value:
    """Adds a dense layer: MatMul and Add, or Gemm over flattened rows."""
    d = width(x)
    if len(x.dims) == 3 and net.chance(0.25):
        rows = net.reshape(x, net.merged_dim(x.dims[0], x.dims[1]), d)
        y = net.op("Gemm", rows, net.weight(out, d, fan=d), net.weight(out, fan=9), dims=[rows.dims[0], out], transB=1)
        return net.reshape(y, x.dims[0], x.dims[1], out)
    y = net.matmul(x, net.weight(d, out))
    if not bias:
        return y
    b = net.weight(out, fan=9)
    return net.binary("Add", b, y) if net.chance(0.7) else net.binary("Add", y, b)


def layer_norm(net: Net, x: Value) -> Value:
    """Adds layer or RMS normalization, as one operator or decomposed."""
    d = width(x)
    scale, shift = net.weight(d, fan=9, mean=1), net.weight(d, fan=9)
    kind = net.pick("operator", "decomposed", "rms")
    if kind == "operator":
        return net.op("LayerNormalization", x, scale, shift, dims=x.dims, axis=-1, epsilon=1e-5)
    centred = x if kind == "rms" else net.binary("Sub", x, net.reduce("ReduceMean", x, [-1]))
    square = net.binary("Pow", centred, net.number(2)) if net.chance(0.6) else net.binary("Mul", centred, centred)
    deviation = net.unary("Sqrt", net.binary("Add", net.reduce("ReduceMean", square, [-1]), net.number(1e-5)))
    if kind == "rms":
        inverse = net.unary("Reciprocal", deviation) if net.chance(0.5) else net.binary("Div", net.number(1), deviation)
        return net.binary("Mul", scale, net.binary("Mul", x, inverse))
    return net.binary("Add", net.binary("Mul", net.binary("Div", centred, deviation), scale), shift)


def split_heads(net: Net, x: Value, heads: int, each: int) -> Value:
    """Reshapes features to attention heads."""
    return net.transpose(net.reshape(x, x.dims[0], x.dims[1], heads, each), 0, 2, 1, 3)


def rotary(net: Net, x: Value) -> Value:
    """Applies a rotary embedding to heads, with angles computed from positions."""
    s, d = x.dims[2], width(x)
    steps = net.op("Unsqueeze", net.cast(positions(net, s), "float32"), net.ints(1), dims=[s, 1])
    frequencies = net.constant((1.0 / 10000 ** (np.arange(0, d, 2, dtype=np.float32) / d)).reshape(1, -1).astype(np.float32))
    half = net.matmul(steps, frequencies) if net.chance(0.5) else net.binary("Mul", steps, frequencies)
    angles = net.concat([half, half], -1, d)
    cos, sin = net.unary("Cos", angles), net.unary("Sin", angles)
    a, b = net.split(x, -1, [d // 2, d // 2])
    turned = net.concat([net.unary("Neg", b), a], -1, d)
    return net.binary("Add", net.binary("Mul", x, cos), net.binary("Mul", turned, sin))


def scores_of(net: Net, q: Value, k: Value, each: int) -> Value:
    """Adds the attention scores: the scaled dot products of queries and keys."""
    kt = net.transpose(k, 0, 1, 3, 2)
    form = net.pick("divided", "multiplied", "both")
    if form == "both":
        root = net.number(each**-0.25)
        return net.matmul(net.binary("Mul", q, root), net.binary("Mul", kt, root))
    scores = net.matmul(q, kt)
    return (
        net.binary("Div", scores, net.number(math.sqrt(each)))
        if form == "divided"
        else net.binary("Mul", scores, net.number(each**-0.5))
    )


def repeated(net: Net, x: Value, times: int) -> Value:
    """Repeats the key and value heads of grouped-query attention by Expand and Reshape."""
    b, heads, t, d = x.dims
    five = net.op("Unsqueeze", x, net.ints(2), dims=[b, heads, 1, t, d])
    wide = net.op("Expand", five, net.sizes(b, heads, times, t, d), dims=[b, heads, times, t, d])
    return net.reshape(wide, b, int(heads) * times, t, d)


def attend(net: Net, x: Value, memory: Value, heads: int, plain: bool = False) -> Value:
    """Adds multi-head attention of `x` to `memory`, without norm or residual."""
    d = width(x)
    each = d // heads
    shared = net.pick(1, 1, 2) if heads % 2 == 0 else 1
    groups = heads // shared
    if memory is x and shared == 1 and net.chance(0.4):
        joined = linear(net, x, 3 * d)
        q, k, v = (split_heads(net, part, heads, each) for part in net.split(joined, -1, [d, d, d]))
    else:
        q = split_heads(net, linear(net, x, d), heads, each)
        k = split_heads(net, linear(net, memory, groups * each), groups, each)
        v = split_heads(net, linear(net, memory, groups * each), groups, each)
    if memory is x and each % 2 == 0 and net.chance(0.25) and not plain:
        q, k = rotary(net, q), rotary(net, k)
    if shared > 1:
        k, v = repeated(net, k, shared), repeated(net, v, shared)
    scores = masked(net, scores_of(net, q, k, each), plain)
    weights = net.op("Softmax", scores, dims=scores.dims, axis=-1)
    mixed = net.transpose(net.matmul(weights, v), 0, 2, 1, 3)
    return linear(net, net.reshape(mixed, x.dims[0], x.dims[1], d), d)


def masked(net: Net, scores: Value, plain: bool) -> Value:
    """Adds position biases and masks to attention scores."""
    b, heads, s, t = scores.dims
    if plain:
        return scores
    if net.chance(0.25):
        scores = net.binary("Add", scores, net.pick(bucket_bias, linear_bias)(net, int(heads), s, t))
    if s == t and net.chance(0.4):
        scores = net.op("Where", causal(net, s, t), scores, net.number(net.pick(-1e4, LOWEST)), dims=scores.dims)
    if (b, t) in net.masks and net.chance(0.7):
        scores = padding_bias(net, net.masks[b, t], s, scores)
    return scores


def attention(net: Net, x: Value) -> Value:
    """Adds self-attention with a residual and with a norm before or after it."""
    heads = net.pick(2, 4, 8)
    if net.chance(0.5):
        y = layer_norm(net, x)
        return net.binary("Add", x, attend(net, y, y, heads))
    return layer_norm(net, net.binary("Add", attend(net, x, x, heads), x))


def cross(net: Net, x: Value) -> Value:
    """Adds attention to another input sequence of a different length."""
    memory = net.inputs.get("memory")
    if memory is None:
        return attention(net, x)
    return layer_norm(net, net.binary("Add", attend(net, x, memory, net.pick(2, 4)), x))


def feed_forward(net: Net, x: Value) -> Value:
    """Adds a feed-forward network, gated or not, with norm and residual."""
    d = width(x)
    y, hidden = layer_norm(net, x), net.pick(d, 2 * d, 4 * d)
    form = net.pick("plain", "gated", "glu")
    if form == "plain":
        y = net.activation(linear(net, y, hidden))
    elif form == "gated":
        y = net.binary("Mul", net.activation(linear(net, y, hidden, False)), linear(net, y, hidden, False))
    else:
        a, b = net.split(linear(net, y, 2 * hidden), -1, [hidden, hidden])
        y = net.binary("Mul", a, net.unary("Sigmoid", b))
    return net.binary("Add", x, linear(net, y, d))


def convolved(net: Net, x: Value) -> Value:
    """Adds the convolution module of a Conformer, between transposes."""
    d = width(x)
    y = net.transpose(layer_norm(net, x), 0, 2, 1)
    gate = net.op("Conv", y, net.weight(2 * d, d, 1, fan=d), dims=[y.dims[0], 2 * d, y.dims[2]], kernel_shape=[1])
    a, b = net.split(gate, 1, [d, d])
    y = net.binary("Mul", a, net.unary("Sigmoid", b))
    k, dilation = net.pick((15, 1), (31, 1), (3, 2), (5, 4))
    pad = dilation * (k - 1) // 2
    attrs: dict[str, Any] = {"kernel_shape": [k], "group": d, "pads": [pad, pad], "dilations": [dilation]}
    y = net.op("Conv", y, net.weight(d, 1, k, fan=k), dims=y.dims, **attrs)
    y = net.op("Conv", net.activation(y), net.weight(d, d, 1, fan=d), dims=y.dims, kernel_shape=[1])
    return net.binary("Add", x, net.transpose(y, 0, 2, 1))


def temporal(net: Net, x: Value) -> Value:
    """Adds a dilated causal convolution as in a TCN: padded on the left, or padded on both sides
    and sliced.
    """
    d = width(x)
    k, dilation = net.pick(2, 3), net.pick(1, 2, 4, 8)
    pad = dilation * (k - 1)
    y = net.transpose(x, 0, 2, 1)
    attrs: dict[str, Any] = {"kernel_shape": [k], "dilations": [dilation]}
    if net.chance(0.5):
        y = net.op("Pad", y, net.ints(0, 0, pad, 0, 0, 0), dims=[*y.dims[:2], net.derived_dim(y.dims[2], lambda v: v + pad)])
        y = net.op("Conv", y, net.weight(d, d, k, fan=d * k), dims=[*y.dims[:2], x.dims[1]], **attrs)
    else:
        long = net.derived_dim(y.dims[2], lambda v: v + pad)
        y = net.op("Conv", y, net.weight(d, d, k, fan=d * k), dims=[*y.dims[:2], long], pads=[pad, pad], **attrs)
        y = net.slice(y, 2, 0, -pad, x.dims[1])
    return net.binary("Add", x, net.activation(net.transpose(y, 0, 2, 1)))


def recurrent(net: Net, x: Value) -> Value:
    """Adds a bidirectional LSTM or GRU, between transposes."""
    d, units = width(x), net.pick(16, 32)
    kind = net.pick("LSTM", "GRU")
    gates = {"LSTM": 4, "GRU": 3}[kind] * units
    weights = [net.weight(2, gates, d, fan=d), net.weight(2, gates, units, fan=units), net.weight(2, 2 * gates, fan=9)]
    steps = net.transpose(x, 1, 0, 2)
    attrs: dict[str, Any] = {"hidden_size": units, "direction": "bidirectional"}
    if kind == "GRU":
        attrs["linear_before_reset"] = net.pick(0, 1)
    operands: list[Value | None] = [steps, *weights]
    if net.chance(0.5):
        zeros = net.op("ConstantOfShape", net.sizes(2, x.dims[0], units), dims=[2, x.dims[0], units])
        operands += [None, zeros, zeros] if kind == "LSTM" else [None, zeros]
    y = net.op(kind, *operands, dims=[x.dims[1], 2, x.dims[0], units], **attrs)
    y = net.reshape(net.transpose(y, 0, 2, 1, 3), x.dims[1], x.dims[0], 2 * units)
    return layer_norm(net, net.binary("Add", x, linear(net, net.transpose(y, 1, 0, 2), d)))


def chunked(net: Net, x: Value) -> Value:
    """Adds attention within chunks: the sequence is padded to a multiple of the chunk length,
    reshaped, and finally sliced.
    """
    b, s, d = x.dims
    size = net.pick(8, 16)
    chunks = net.derived_dim(s, lambda v: -(-v // size))
    m = net.ints(size)
    count = net.binary("Div", net.binary("Add", net.size_of(s), net.ints(size - 1)), m)
    missing = net.binary("Sub", net.binary("Mul", count, m), net.size_of(s))
    zero = net.ints(0)
    pads = net.op("Concat", *[zero] * 4, missing, zero, dims=[6], dtype="int64", axis=0)
    padded = net.op("Pad", x, pads, dims=[b, net.derived_dim(s, lambda v: -(-v // size) * size), d])
    tokens = net.reshape(padded, net.merged_dim(b, chunks), size, d)
    tokens = attend(net, tokens, tokens, net.pick(2, 4), plain=True)
    y = net.reshape(tokens, *padded.dims)
    return net.binary("Add", x, net.slice(y, 1, 0, net.size_of(s), s))


def masked_mean(net: Net, x: Value) -> Value:
    """Computes the mean over all tokens that the mask keeps, and adds it to every token."""
    mask = net.masks.get(x.dims[:2])
    if mask is None:
        return net.binary("Add", x, net.reduce("ReduceMean", x, [1]))
    three = net.cast(net.op("Unsqueeze", mask, net.ints(2), dims=[*mask.dims, 1], dtype="int64"), "float32")
    if net.chance(0.5):
        shape = net.op("Shape", x, dims=[3], dtype="int64")
        three = net.op("Expand", three, shape, dims=x.dims)
    total = net.reduce("ReduceSum", net.binary("Mul", x, three), [1])
    count = net.reduce("ReduceSum", three, [1])
    count = net.op("Clip", count, net.number(1e-9), None, dims=count.dims)
    return net.binary("Add", x, net.binary("Div", total, count))


def shifted(net: Net, x: Value) -> Value:
    """Mixes each token with the one before it, as RWKV does."""
    b, s, d = x.dims
    if net.chance(0.5):
        before = net.op("Pad", x, net.ints(0, 1, 0, 0, -1, 0), dims=x.dims)
    else:
        first = net.op("ConstantOfShape", net.sizes(b, 1, d), dims=[b, 1, d])
        cut = net.slice(x, 1, 0, -1, net.derived_dim(s, lambda v: v - 1))
        before = net.concat([first, cut], 1, s)
    mix = net.constant(net.rand.random(width(x), np.float32))
    return net.binary("Add", net.binary("Mul", x, mix), net.binary("Mul", before, net.binary("Sub", net.number(1), mix)))


def averaged(net: Net, x: Value) -> Value:
    """Computes with CumSum the mean over each token and all tokens before it, and adds the mean to the token."""
    s = x.dims[1]
    total = net.op("CumSum", x, net.constant(np.int64(1)), dims=x.dims)
    count = net.binary("Add", net.cast(positions(net, s), "float32"), net.number(1))
    return net.binary("Add", x, net.binary("Div", total, net.op("Unsqueeze", count, net.ints(1), dims=[s, 1])))


def embedded(net: Net, x: Value) -> Value:
    """Adds learnt position embeddings, which are gathered or sliced from a table."""
    s, d = x.dims[1], width(x)
    table = net.weight(512, d, fan=9)
    if net.chance(0.5):
        return net.binary("Add", x, net.op("Gather", table, positions(net, s), dims=[s, d], axis=0))
    return net.binary("Add", x, net.slice(table, 0, 0, net.size_of(s), s))


def token(net: Net, x: Value) -> Value:
    """Prepends a learnt token to the sequence."""
    b, s, d = x.dims
    wide = net.op("Expand", net.weight(1, 1, width(x), fan=1), net.sizes(b, 1, d), dims=[b, 1, d])
    return net.concat([wide, x], 1, net.derived_dim(s, lambda v: v + 1))


def strided(net: Net, x: Value) -> Value:
    """Halves the length by a strided convolution, or by stacking pairs of frames."""
    b, s, d = x.dims
    if net.min_extent(s) < 6:
        return feed_forward(net, x)
    if net.chance(0.6):
        y = net.transpose(x, 0, 2, 1)
        half = net.derived_dim(s, lambda v: (v - 1) // 2 + 1)
        attrs: dict[str, Any] = {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}
        y = net.op("Conv", y, net.weight(width(x), width(x), 3, fan=3 * width(x)), dims=[b, d, half], **attrs)
        return net.transpose(net.activation(y), 0, 2, 1)
    count = net.binary("Div", net.size_of(s), net.ints(2))
    pairs = net.derived_dim(s, lambda v: v // 2)
    end = net.binary("Mul", count, net.ints(2))
    cut = net.slice(x, 1, 0, end, net.derived_dim(s, lambda v: v // 2 * 2))
    target = net.op("Concat", net.size_of(b), count, net.ints(2 * width(x)), dims=[3], dtype="int64", axis=0)
    return linear(net, net.op("Reshape", cut, target, dims=[b, pairs, 2 * width(x)]), width(x))


def reversed_sum(net: Net, x: Value) -> Value:
    """Reverses the sequence, applies a dense layer to it, and adds the result to the original sequence."""
    flipped = net.slice(x, 1, -1, -(2**63), x.dims[1], -1)
    return net.binary("Add", x, linear(net, flipped, width(x)))


def zeroed(net: Net, x: Value) -> Value:
    """Sets the tokens that the mask excludes to zero."""
    mask = net.masks.get(x.dims[:2])
    if mask is None:
        return feed_forward(net, x)
    keep = net.cast(net.op("Unsqueeze", mask, net.ints(-1), dims=[*mask.dims, 1], dtype="int64"), "bool")
    return net.op("Where", keep, x, net.number(0), dims=x.dims)


def einsums(net: Net, x: Value) -> Value:
    """Adds attention written with Einsum."""
    b, s = x.dims[:2]
    heads = 4
    each = width(x) // heads
    q, k, v = (
        net.op("Einsum", x, net.weight(width(x), heads, each), dims=[b, s, heads, each], equation="abc,cde->abde")
        for _ in range(3)
    )
    scores = net.op("Einsum", q, k, dims=[b, heads, s, s], equation="bqhd,bkhd->bhqk")
    scores = net.binary("Mul", scores, net.number(each**-0.5))
    weights = net.op("Softmax", masked(net, scores, False), dims=scores.dims, axis=3)
    mixed = net.op("Einsum", weights, v, dims=[b, s, heads, each], equation="bhqk,bkhd->bqhd")
    out = net.op("Einsum", mixed, net.weight(heads, each, width(x), fan=width(x)), dims=x.dims, equation="bshd,hde->bse")
    return net.binary("Add", x, out)


def additive(net: Net, x: Value) -> Value:
    """Adds additive attention: sums of all pairs of queries and keys, broadcast to rank 4."""
    b, s = x.dims[:2]
    rows = net.op("Unsqueeze", linear(net, x, 8), net.ints(2), dims=[b, s, 1, 8])
    columns = net.op("Unsqueeze", linear(net, x, 8, False), net.ints(1), dims=[b, 1, s, 8])
    hidden = net.unary("Tanh", net.binary("Add", rows, columns))
    scores = net.op("Squeeze", net.matmul(hidden, net.weight(8, 1)), net.ints(-1), dims=[b, s, s])
    return net.binary("Add", x, net.matmul(net.op("Softmax", scores, dims=scores.dims, axis=-1), x))


BLOCKS: list[Block] = [
    attention,
    attention,
    attention,
    cross,
    feed_forward,
    feed_forward,
    convolved,
    temporal,
    recurrent,
    chunked,
    masked_mean,
    shifted,
    averaged,
    embedded,
    token,
    strided,
    reversed_sum,
    zeroed,
    einsums,
    additive,
]
