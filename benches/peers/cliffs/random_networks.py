"""Builds random, valid networks with symbolic dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from . import image_network_blocks, sequence_network_blocks
from .network_builder import Net, Value
from .benchmark_case import Case, Feeds, Sizes, make_model, rng


def padded(rand: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Returns a 0/1 mask of sequences that end at random lengths of at least 1."""
    lengths = rand.integers(1 + shape[1] // 2, shape[1] + 1, (shape[0], 1))
    return (np.arange(shape[1])[None] < lengths).astype(np.int64)


def image_input(net: Net) -> Value:
    """Adds an image input. At random, also adds a first layer that halves height and width."""
    n = net.label("n", (1, int(net.rand.integers(1, 4)))) if net.chance(0.8) else 1
    spatial = [(int(net.rand.integers(9, 40)), int(net.rand.integers(48, 112))) for _ in range(2)]
    x = net.add_input("image", [n, 3, net.label("h", spatial[0]), net.label("w", spatial[1])])
    return image_network_blocks.down(net, x) if net.chance(0.6) else image_network_blocks.basic(net, x)


def sequence_input(net: Net) -> Value:
    """Adds an input of features or token ids, with an optional mask and an optional second
    sequence.
    """
    b = net.label("b", (1, int(net.rand.integers(1, 5))))
    s = net.label("s", (int(net.rand.integers(3, 30)), int(net.rand.integers(60, 300))))
    d = net.pick(32, 64, 128)
    if net.chance(0.7):
        net.masks[b, s] = net.add_input("mask", [b, s], "int64")
    if net.chance(0.3):
        t = net.label("t", (int(net.rand.integers(2, 30)), int(net.rand.integers(60, 200))))
        net.add_input("memory", [b, t, d])
        if net.chance(0.5):
            net.masks[b, t] = net.add_input("memory_mask", [b, t], "int64")
    if net.chance(0.5):
        ids = net.add_input("ids", [b, s], "int64")
        return net.op("Gather", net.weight(100, d, fan=1), ids, dims=[b, s, d])
    return sequence_network_blocks.linear(net, net.add_input("x", [b, s, 24]), d)


def applied(net: Net, x: Value, module: Any, count: int) -> Value:
    """Applies `count` random blocks to a tensor. `module` provides the blocks, for images or for sequences."""
    for _ in range(count):
        block = net.pick(*module.BLOCKS)
        net.used.append(block.__name__)
        x = block(net, x)
    return x


def flattened(net: Net, x: Value) -> Value:
    """Reshapes an image to a sequence of its positions with 32 features."""
    x = image_network_blocks.conv(net, image_network_blocks.down(net, x), 32, 1)
    rows = net.reshape(x, x.dims[0], 32, net.merged_dim(*x.dims[2:]))
    return net.transpose(rows, 0, 2, 1)


def restored(net: Net, x: Value, like: Value) -> Value:
    """Reshapes a sequence of positions back to an image."""
    return net.reshape(net.transpose(x, 0, 2, 1), x.dims[0], x.dims[2], *like.dims[2:])


def finished(net: Net, x: Value) -> list[Value]:
    """Adds the outputs of the network: the final tensor, or the result of a classifier."""
    if net.chance(0.4):
        return [x]
    axes = [2, 3] if len(x.dims) == 4 else [1]
    pooled = net.reduce("ReduceMean", x, axes, keep=False)
    features = int(pooled.dims[1])
    logits = net.op("Gemm", pooled, net.weight(10, features, fan=features), net.weight(10, fan=9), dims=[x.dims[0], 10], transB=1)
    return [net.op("Softmax", logits, dims=logits.dims, axis=-1), x]


def build(seed: int, index: int) -> tuple[Net, list[Value]]:
    """Builds a random network and returns it with its outputs."""
    net = Net(rng("network", seed, index))
    kind = net.pick("image", "image", "sequence", "sequence", "mixed")
    count = int(net.rand.integers(2, 6))
    if kind == "sequence":
        return net, finished(net, applied(net, sequence_input(net), sequence_network_blocks, count))
    x = applied(net, image_input(net), image_network_blocks, count)
    if kind == "mixed":
        tokens = flattened(net, x)
        net.used.append("flattened")
        x = applied(net, tokens, sequence_network_blocks, int(net.rand.integers(1, 4)))
    return net, finished(net, x)


def case(seed: int, index: int) -> Case:
    """Returns a random network as a case with a small and a large size."""
    net, outputs = build(seed, index)
    dims = {d for x in net.inputs.values() for d in x.dims if isinstance(d, str)}
    sizes = [{d: net.extents[d][i] for d in sorted(dims)} for i in range(2)]

    def model() -> onnx.ModelProto:
        inputs = {name: (x.dtype, x.dims) for name, x in net.inputs.items()}
        return make_model(net.nodes, inputs, [o.name for o in outputs], net.constants, 20)

    def feeds(at: Sizes) -> Feeds:
        generated: Feeds = {}
        for name, x in net.inputs.items():
            rand, shape = rng(seed, index, name, sorted(at.items())), tuple(at[d] if isinstance(d, str) else d for d in x.dims)
            if x.dtype == "int64":
                generated[name] = padded(rand, shape) if "mask" in name else rand.integers(0, 100, shape)
            else:
                generated[name] = rand.standard_normal(shape, np.float32)
        return generated

    return Case(f"random {seed}:{index} {'+'.join(net.used)}", model, feeds, sizes, error=1e-3)
