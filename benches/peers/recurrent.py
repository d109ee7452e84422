"""Recurrent layers as ONNX models, over sequences of 128 steps. The input size equals the number of units.

``python -m peers.recurrent``, within ``benches/``, measures them (see `layers` for the engines);
``--write`` replaces the tables in ``docs/internals/measurements/``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from peers.layers import Layer, main

STEPS = 128
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Operator, units, sequences, directions, and `linear_before_reset` of a GRU.
SHAPES = [
    ("LSTM", 64, 1, 1, False),
    ("LSTM", 256, 1, 1, False),
    ("LSTM", 512, 1, 1, False),
    ("LSTM", 256, 1, 2, False),
    ("LSTM", 256, 8, 1, False),
    ("GRU", 256, 1, 1, False),
    ("GRU", 256, 1, 1, True),
    ("GRU", 512, 1, 1, True),
    ("RNN", 512, 1, 1, False),
]


def layer(kind: str, units: int, sequences: int, directions: int, linear: bool) -> Layer:
    """Returns the ONNX model of a recurrent layer with a symbolic number of steps."""
    rand = np.random.default_rng(0)
    gates = GATES[kind] * units
    sizes = {"w": (gates, units), "r": (gates, units), "b": (2 * gates,)}
    bound = np.float32(np.sqrt(units))
    constants = {name: rand.uniform(-1, 1, (directions, *size)).astype(np.float32) / bound for name, size in sizes.items()}
    attributes: dict[str, Any] = {"linear_before_reset": 1} if linear else {}
    direction = "bidirectional" if directions == 2 else "forward"
    node = helper.make_node(kind, ["x", *constants], ["y"], hidden_size=units, direction=direction, **attributes)
    words = [f"{kind} of {units} units"]
    words += ["linear before reset"] * linear + ["both directions"] * (directions == 2) + [f"{sequences} sequences"] * (sequences > 1)
    x = rand.standard_normal((STEPS, sequences, units)).astype(np.float32)
    return Layer(", ".join(words), [node], {"x": x}, constants, ["steps", sequences, units])


if __name__ == "__main__":
    main("peers.recurrent", __doc__ or "", [layer(*shape) for shape in SHAPES])
