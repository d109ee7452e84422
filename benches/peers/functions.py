"""Elementary functions, softmax and normalization as ONNX models, over rows of 768 elements.

``python -m peers.functions``, within ``benches/``, measures them (see `layers` for the engines);
``--write`` replaces the tables in ``docs/internals/measurements/``.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from peers.layers import Layer, main

COLUMNS = 768
ROWS = (16, 512)
KINDS = ("Exp", "Log", "Tanh", "Erf", "Sigmoid", "Gelu", "Softmax", "LayerNormalization")


def layer(kind: str, rows: int) -> Layer:
    """Returns the ONNX model of one operator with a symbolic number of rows."""
    rand = np.random.default_rng(0)
    # Positive, so that logarithms are finite.
    x = rand.uniform(0.01, 3.0, (rows, COLUMNS)).astype(np.float32)
    ones = {name: np.ones(COLUMNS, np.float32) for name in ("scale", "bias")}
    constants = ones if kind == "LayerNormalization" else {}
    node = helper.make_node(kind, ["x", *constants], ["y"])
    return Layer(f"{kind} of {rows} x {COLUMNS}", [node], {"x": x}, constants, ["rows", COLUMNS])


if __name__ == "__main__":
    main("peers.functions", __doc__ or "", [layer(kind, rows) for kind in KINDS for rows in ROWS])
