"""Small ONNX models that scenarios share, built with onnx's own helpers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
Dims = list[int | str]


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, Dims]],
    outputs: dict[str, tuple[int, Dims | None]],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 18,
) -> bytes:
    """Returns the bytes of an ONNX model. `inputs` and `outputs` map names to element types and
    dims.
    """
    constants = [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
        constants,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return bytes(proto.SerializeToString())


def conv_net(channels: int = 16) -> bytes:
    """Returns a model with a convolution, pooling over the image, and a linear layer. Its symbolic
    dims are batch, height and width.
    """
    r = np.random.default_rng(0)
    weights = {
        "w": r.standard_normal((channels, 3, 3, 3)).astype("float32") / 5,
        "head": r.standard_normal((channels, 10)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("GlobalAveragePool", ["a"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "head"], ["y"]),
    ]
    return model(nodes, {"x": (F32, ["batch", 3, "height", "width"])}, {"y": (F32, ["batch", 10])}, weights)


def mlp(width: int = 64) -> bytes:
    """Returns a model with two linear layers and a softmax over rows. Its symbolic dims are batch
    and seq.
    """
    r = np.random.default_rng(1)
    weights = {
        "a": r.standard_normal((32, width)).astype("float32") / 8,
        "b": r.standard_normal((width, 32)).astype("float32") / 8,
    }
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["o"]),
        helper.make_node("Add", ["o", "x"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    dims: Dims = ["batch", "seq", 32]
    return model(nodes, {"x": (F32, dims)}, {"y": (F32, dims)}, weights)


def write(data: bytes, folder: str, name: str = "model.onnx") -> Path:
    """Writes the bytes of a model to a file in a folder. Returns the path."""
    path = Path(folder) / name
    path.write_bytes(data)
    return path


def rss() -> float:
    """Returns the resident memory of this process in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmRSS")


def executable_mappings() -> int:
    """The number of executable mappings of this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum("x" in line.split()[1] for line in lines)
