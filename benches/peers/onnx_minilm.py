"""all-MiniLM-L6-v2 as an ONNX model with symbolic `batch` and `seq`.

`data/minilm.onnx` is the exported graph without its large tensors; `data/minilm.json` maps each removed tensor to a tensor of the
checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

DATA = Path(__file__).parent / "data"


def _key(tensor: TensorProto) -> str | None:
    """Returns the key in `minilm.json` of a tensor that was removed from the graph, or None for any
    other tensor.
    """
    if tensor.data_location != TensorProto.EXTERNAL:
        return None
    return {e.key: e.value for e in tensor.external_data}.get("key")


def model(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Returns the ONNX model with the weights of the checkpoint filled in."""
    fills = json.loads((DATA / "minilm.json").read_text())["inits"]
    proto = onnx.load(DATA / "minilm.onnx", load_external_data=False)
    for tensor in proto.graph.initializer:
        key = _key(tensor)
        if key is None:
            continue
        fill = fills[key]
        array = weights[fill["tensor"]]
        if "perm" in fill:
            array = array.transpose(fill["perm"])
        tensor.raw_data = np.ascontiguousarray(array, "<f4").tobytes()
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    return proto


def cases() -> list[dict[str, int]]:
    """Returns the shapes at which the model is timed."""
    return json.loads((DATA / "minilm.json").read_text())["cases"]
