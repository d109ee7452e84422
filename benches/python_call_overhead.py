"""The overhead of a call from Python: a function that adds 1 to four floats."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import pliant
from pliant import script
from timing import interleaved, require_release

SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.add(x, R.const(1.0, "float32"))
            R.output(y)
        return y
"""


def peer_model() -> bytes:
    """Returns the measured function, `x + 1`, as an ONNX model for ONNX Runtime."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    graph = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "g", [x], [y], [one])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(proto)
    return proto.SerializeToString()


def main() -> None:
    """Prints the microseconds of a call in Pliant and in ONNX Runtime."""
    require_release()
    model = pliant.compile(script.from_source(SCRIPT))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(peer_model(), options, providers=["CPUExecutionProvider"])
    x = np.zeros(4, np.float32)
    feed = {"x": x}
    vm = pliant.relax.VirtualMachine(pliant.relax.build(script.from_source(SCRIPT)), pliant.cpu())
    main_function = vm["main"]
    times = interleaved({
        "pliant model(x)": lambda: model(x),
        "pliant vm['main'](x)": lambda: main_function(x),
        "ONNX Runtime": lambda: peer.run(None, feed),
    })
    for name, seconds in times.items():
        print(f"{name:22} {seconds * 1e6:8.2f} us   {seconds / times['ONNX Runtime']:.2f} of ONNX Runtime")


if __name__ == "__main__":
    main()
