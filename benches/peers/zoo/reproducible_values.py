"""Values that are identical on every machine: weights and inputs of the models, from raw 64-bit
draws of PCG64."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

# How an input or a weight is generated: `zoo.json` has one for each.
Spec = dict[str, Any]
Case = dict[str, int]
Feeds = dict[str, np.ndarray]
Shape = tuple[int, ...]


class Rand:
    """Random values that depend only on the words of the seed, not on any library's algorithms."""

    def __init__(self, *seed: str) -> None:
        digest = hashlib.sha256("/".join(seed).encode()).digest()
        self.bits = np.random.PCG64(int.from_bytes(digest[:16], "little"))

    def raw(self, count: int) -> np.ndarray:
        """Returns `count` random 64-bit words."""
        return np.asarray(self.bits.random_raw(count)).astype("<u8")

    def normal(self, shape: Shape, std: float = 1.0, mean: float = 0.0) -> np.ndarray:
        """Returns approximately normal values N(mean, std): sums of four 16-bit uniform values,
        which are within 3.46 std of the mean.
        """
        count = math.prod(shape)
        sums = self.raw(count).view("<u2").reshape(count, 4).sum(1, dtype=np.int64)
        x: np.ndarray = (sums.astype(np.float32) - np.float32(131070)) * np.float32(math.sqrt(3.0) / 65536)
        return (x * np.float32(std) + np.float32(mean)).reshape(shape)

    def uniform(self, shape: Shape, lo: float, hi: float) -> np.ndarray:
        """Returns uniformly distributed numbers from `lo` (inclusive) to `hi` (exclusive)."""
        x = (self.raw(math.prod(shape)) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        return (x * np.float32(hi - lo) + np.float32(lo)).reshape(shape)

    def ints(self, shape: Shape, lo: int, hi: int) -> np.ndarray:
        """Returns random integers from `lo` (inclusive) to `hi` (exclusive)."""
        x = (self.raw(math.prod(shape)) >> np.uint64(33)) % np.uint64(hi - lo)
        return (x.astype(np.int64) + lo).reshape(shape)


def padding(rand: Rand, shape: Shape) -> np.ndarray:
    """Returns rows of 0 and 1 as a tokenizer pads them. The first row is all ones, and each other row changes to zeros at a
    random length.
    """
    mask, length = np.ones(shape, np.int64), shape[-1]
    for row in mask[1:]:
        row[int(rand.ints((), max(1, length // 2), length + 1)) :] = 0
    return mask


def make_input(spec: Spec, sizes: Case, rand: Rand, earlier_inputs: Feeds) -> np.ndarray:
    """Generates an input as the field `gen` of its entry in `zoo.json` states. `earlier_inputs` contains the inputs that were
    generated before, such as the token mask on which other inputs depend.
    """
    shape = tuple(sizes.get(size, size) for size in spec["shape"])
    match spec["gen"]:
        case "normal":
            x = rand.normal(shape)
        case "ints":
            x = rand.ints(shape, spec["lo"], spec["hi"])
        case "tokens":  # 0 where the mask is
            x = np.where(earlier_inputs[spec["mask"]] != 0, rand.ints(shape, spec["lo"], spec["hi"]), 0)
        case "mask":
            x = padding(rand, shape)
        case "const":
            x = np.full(shape, spec["value"])
        case other:
            raise ValueError(f"zoo.json names an unknown way to generate an input, 'gen': {other!r}")
    return np.ascontiguousarray(x, spec["dtype"])


def make_inputs(model: str, specs: list[Spec], case: Case) -> Feeds:
    """Generates all inputs of a case, in the order of the model's inputs."""
    inputs: Feeds = {}
    # Masks before their tokens.
    for spec in sorted(specs, key=lambda s: "mask" in s):
        rand = Rand("input", model, json.dumps(case, sort_keys=True), spec["name"])
        inputs[spec["name"]] = make_input(spec, case, rand, inputs)
    return {spec["name"]: inputs[spec["name"]] for spec in specs}
