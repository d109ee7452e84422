"""The workloads: ONNX models with the inputs of their cases, and programs of single and of fused
operators at two shapes each."""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compare_builds.build_environments import ROOT

Dims = tuple[str | int, ...]
Workload = dict[str, Any]
"""A workload as `worker_process` reads it: `name`, `memory` (whether peak memory is measured), and either `model` and `files` (inputs), or
`source`, `inputs`, `small` and `large`."""

CONV = {"n": 1, "h": 14, "w": 14}, {"n": 2, "h": 56, "w": 57}


@dataclass(frozen=True)
class Program:
    """A program with symbolic dims. `body` is one or more statements, the last of which defines
    `out`; the input `ids` contains indices below `n`, all others contain floats."""

    name: str
    body: str
    inputs: dict[str, Dims]
    small: dict[str, int] = field(default_factory=lambda: {"n": 8, "m": 64})
    large: dict[str, int] = field(default_factory=lambda: {"n": 1024, "m": 1023})

    def source(self) -> str:
        """Returns the source text of the program in the script language."""
        params = []
        for name, dims in self.inputs.items():
            text = "".join(f"{dim!r}, " for dim in dims).replace("'", '"')
            params.append(f'{name}: R.Tensor(({text}), "{dtype(name)}")')
        lines = "".join(f"            {line}\n" for line in self.body.split("; "))
        return (
            "@I.ir_module\nclass Module:\n    @R.function\n"
            f"    def main({', '.join(params)}):\n        with R.dataflow():\n{lines}            R.output(out)\n        return out\n"
        )

    def workload(self) -> Workload:
        """Returns the program as the JSON object that `worker_process` reads."""
        inputs = [{"dims": dims, "dtype": dtype(name)} for name, dims in self.inputs.items()]
        cases = {"small": self.small, "large": self.large}
        return {"name": self.name, "memory": self.name.startswith("fused/"), "source": self.source(), "inputs": inputs} | cases


def dtype(name: str) -> str:
    """Returns the element type of a program's input by its name."""
    return "int64" if name == "ids" else "float32"


X: dict[str, Dims] = {"x": ("n", "m")}
XY: dict[str, Dims] = X | {"y": ("n", "m")}
ROW: dict[str, Dims] = {"g": ("m",), "b": ("m",)}
PRODUCT: dict[str, Dims] = {"x": ("n", "k"), "w": ("k", "m")}
MNK = {"n": 4, "k": 64, "m": 48}, {"n": 256, "k": 512, "m": 500}
HEADS: dict[str, Dims] = {"x": ("b", "s", 8, 64), "y": ("b", "s", 8, 64), "z": ("b", "s", 8, 64)}
SEQ = {"b": 1, "s": 16}, {"b": 2, "s": 256}
IMAGE: dict[str, Dims] = {"x": ("n", 32, "h", "w")}
FILTER: dict[str, Dims] = {"w": (32, 32, 3, 3)}

PROGRAMS = [
    Program("op/call", "out = R.add(x, y)", {"x": ("n",), "y": ("n",)}, {"n": 4}, {"n": 64}),
    Program("op/add", "out = R.add(x, y)", XY),
    Program("op/exp", "out = R.exp(x)", X),
    Program("op/where", "a = R.less(x, y); out = R.where(a, x, y)", XY),
    Program("op/sum of rows", "out = R.sum(x, axis=1)", X),
    Program("op/sum of columns", "out = R.sum(x, axis=0)", X),
    Program("op/cumsum", "out = R.cumsum(x, axis=1)", X),
    Program("op/softmax", "out = R.nn.softmax(x, axis=-1)", X),
    Program("op/layer_norm", "out = R.nn.layer_norm(x, g, b, axes=[-1])", X | ROW),
    Program("op/permute_dims", "out = R.permute_dims(x)", X),
    Program("op/concat", "out = R.concat((x, y), axis=1)", XY),
    Program("op/take", "out = R.take(x, ids, axis=0)", X | {"ids": ("k",)}, {"n": 8, "m": 64, "k": 5}, {"n": 1024, "m": 1023, "k": 700}),
    Program("op/topk", "out = R.topk(x, k=5, axis=1)", X, large={"n": 256, "m": 1023}),
    Program("op/matmul", "out = R.matmul(x, w)", PRODUCT, *MNK),
    Program("op/conv2d", "out = R.nn.conv2d(x, w, padding=1)", IMAGE | FILTER, *CONV),
    Program("op/conv2d depthwise", "out = R.nn.conv2d(x, w, padding=1, groups=32)", IMAGE | {"w": (32, 1, 3, 3)}, *CONV),
    Program("op/max_pool2d", "out = R.nn.max_pool2d(x, 2, strides=2)", IMAGE, *CONV),
    Program("op/attention", "out = R.nn.attention(x, y, z)", HEADS, *SEQ),
    Program("fused/elementwise", "a = R.multiply(x, y); b = R.add(a, x); c = R.tanh(b); out = R.nn.relu(c)", XY),
    Program("fused/elementwise and sum", "a = R.subtract(x, y); c = R.multiply(a, a); out = R.mean(c, axis=1)", XY),
    Program("fused/residual and layer_norm", "a = R.add(x, y); out = R.nn.layer_norm(a, g, b, axes=[-1])", XY | ROW),
    Program("fused/dense and gelu", "a = R.matmul(x, w); c = R.add(a, b); out = R.nn.gelu(c)", PRODUCT | {"b": ("m",)}, *MNK),
    Program(
        "fused/gated dense",
        "a = R.matmul(x, w); b = R.matmul(x, v); c = R.nn.silu(a); out = R.multiply(c, b)",
        PRODUCT | {"v": ("k", "m")},
        *MNK,
    ),
    Program("fused/scores", "a = R.matmul(x, w); c = R.add(a, b); out = R.nn.softmax(c, axis=-1)", PRODUCT | {"b": ("n", "m")}, *MNK),
    Program(
        "fused/conv2d, bias and relu",
        "a = R.nn.conv2d(x, w, padding=1); c = R.add(a, b); out = R.nn.relu(c)",
        IMAGE | FILTER | {"b": (32, 1, 1)},
        *CONV,
    ),
    Program("fused/transposes", "a = R.permute_dims(x); b = R.permute_dims(y); c = R.add(a, b); out = R.exp(c)", XY),
]


class NoWorkloads(Exception):
    """Raised if there is no workload to run. The message is one line."""


def model(path: Path, inputs: Path) -> Workload | None:
    """Returns the workload for a model with the `.npz` input files of a folder, or None if there
    are no such files.
    """
    files = [str(file) for file in sorted(inputs.glob("*.npz"))]
    return {"name": path.stem, "memory": True, "model": str(path), "files": files} if files else None


def models_of(folder: Path) -> list[Workload]:
    """Returns the workloads of all models in a folder: `NAME.onnx` with inputs in `NAME.d`, or a
    subfolder with both for each model.
    """
    folder = folder.resolve()
    if not folder.is_dir():
        raise NoWorkloads(f"{folder}: no such folder of models")
    flat = [model(path, path.with_suffix(".d")) for path in sorted(folder.glob("*.onnx"))]
    nested = [model(path, path.parent) for path in sorted(folder.glob("*/*.onnx"))]
    result = [workload for workload in [*flat, *nested] if workload]
    if not result:
        raise NoWorkloads(f"{folder}: no models with inputs (NAME.onnx and NAME.d/*.npz, or NAME/*.onnx and NAME/*.npz)")
    return result


def models_of_peers(patterns: list[str]) -> Iterator[Workload]:
    """Yields the workloads of the models in `peers.zoo`, which are created in `target/zoo`."""
    known = json.loads((ROOT / "benches/peers/zoo/zoo.json").read_text())["models"]
    names = [name for name in known if matches(name, patterns)]
    if not names:
        return
    try:
        from peers import zoo
    except ImportError as error:
        raise NoWorkloads(f"the models of peers/zoo need the package {error.name}; --zoo FOLDER gives others") from error
    for name in names:
        try:
            folder = zoo.folder(name, ROOT / "target" / "zoo")
        except RuntimeError as error:
            print(f"without {name}: {error}", file=sys.stderr)
            continue
        result = model(folder / f"{name}.onnx", folder)
        if result:
            yield result


def matches(name: str, patterns: list[str]) -> bool:
    """Whether a workload's name matches one of the patterns. Without patterns, every name
    matches.
    """
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def workloads(folder: Path | None, patterns: list[str]) -> list[Workload]:
    """Returns the programs and models whose names match the patterns."""
    result = [program.workload() for program in PROGRAMS]
    result += models_of_peers(patterns) if folder is None else models_of(folder)
    result = [workload for workload in result if matches(workload["name"], patterns)]
    if not result:
        raise NoWorkloads(f"no model or program matches {' or '.join(patterns)}")
    return result
