"""ONNX files: the time to import, compile and load all-MiniLM-L6-v2, and the memory that an import of 2 GB of weights needs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto, helper

import pliant
from peers import onnx_minilm
from pliant.frontend.onnx import from_onnx
from timing import require_release

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
from minilm import weights  # noqa: E402

GOAL = {"import and compile": 1.0, "load": 0.05, "memory": 200.0}
WEIGHT_BYTES = 2_000_000_000

# Memory is measured in a separate process, since freed memory does not return to the system at once.
MEMORY = """
import sys
from pliant.frontend.onnx import from_onnx

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))

from_onnx(sys.argv[1])
before = anonymous()
module = from_onnx(sys.argv[2])
print((anonymous() - before) / 1024)
"""


def best(run: Callable[[], object], repeat: int = 5) -> float:
    """Calls a function several times and returns the shortest time in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def large_model(folder: Path) -> Path:
    """Writes an ONNX model with `WEIGHT_BYTES` of external weights, and returns its path. The
    weights are never read.
    """
    rows, columns = 4096, WEIGHT_BYTES // 4 // 4096 // 16
    count = 16
    nodes, tensors, size = [], [], rows * columns * 4
    for i in range(count):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[rows, columns])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "weights.bin", "offset": str(i * size), "length": str(size)}.items():
            tensor.external_data.add(key=key, value=value)
        tensors.append(tensor)
        nodes.append(helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", rows])
    outputs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(count)]
    graph = helper.make_graph(nodes, "g", [x], outputs, tensors)
    path = folder / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(count * size)
    return path


def report(what: str, value: float, unit: str) -> None:
    """Prints a measured value next to the goal for it."""
    goal = GOAL[what]
    print(f"{what}: {value:.3f} {unit} (goal {goal} {unit}){'' if value <= goal else '  MISSED'}")


def main() -> None:
    """Prints the import, compile and load times, and the memory of a large import."""
    require_release()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, program = folder / "minilm.onnx", folder / "minilm.plx"
        onnx.save(onnx_minilm.model(weights.load_weights()), path)
        report("import and compile", best(lambda: pliant.compile(path)), "s")
        print(f"  of which import: {best(lambda: from_onnx(path)):.3f} s")
        pliant.compile(path).save(program)
        report("load", best(lambda: pliant.load(program)), "s")
        small = folder / "small.onnx"
        relu = helper.make_node("Relu", ["x"], ["y"])
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
        graph = helper.make_graph([relu], "g", [x], [onnx.ValueInfoProto(name="y")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), small)
        args = [sys.executable, "-c", MEMORY, str(small), str(large_model(folder))]
        added = subprocess.run(args, capture_output=True, text=True, check=True).stdout
        report("memory", float(added), "MB")


if __name__ == "__main__":
    main()
