"""Tests that Ctrl-C ends everything that runs for a long time: programs, kernels, compilations."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

# A process started in the background may ignore Ctrl-C from the start.
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupted(code: str, folder: Path, after: float = 0.5) -> subprocess.CompletedProcess[str]:
    """Runs a program that prints 'ready', sends it Ctrl-C until it ends, and returns the finished
    process.
    """
    path = folder / "program.py"
    path.write_text(HEED_CTRL_C + textwrap.dedent(code))
    process = subprocess.Popen(
        [sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(60):
            time.sleep(after)
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                continue
            return subprocess.CompletedProcess(process.args, process.returncode, out, err)
        pytest.fail("the program goes on after 60 signals")
    finally:
        process.kill()


def test_ctrl_c_while_running(tmp_path: Path) -> None:
    end = interrupted(
        """
        import numpy as np
        from pliant import relax
        ib = relax.ExecBuilder()
        with ib.function("main", num_inputs=1):
            ib.emit_call("vm.builtin.copy", args=[ib.r(0)], dst=ib.r(1))
            ib.emit_goto(-1)
            ib.emit_ret(ib.r(1))
        vm = relax.VirtualMachine(ib.get())
        print("ready", flush=True)
        try:
            vm["main"](np.ones(1))
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("interrupted")
        """,
        tmp_path,
    )
    assert end.returncode == 0 and "interrupted" in end.stdout, end.stderr


def test_ctrl_c_while_compiling(tmp_path: Path) -> None:
    end = interrupted(
        """
        import pliant
        from pliant import relax, te, tir
        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo((tir.Var("n", "int64"), 4), "float32"))
        with bb.function("main", [x]), bb.dataflow():
            v = x
            for i in range(3000):
                v = bb.emit_te(lambda A: te.compute(A.shape, lambda a, b: A[a, b] * float(i), name="f"), v)
            bb.emit_func_output(bb.emit_output(v))
        mod = bb.get()
        print("ready", flush=True)
        try:
            pliant.compile(mod)
            print("finished")
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("interrupted")
        """,
        tmp_path,
        after=0.2,
    )
    assert end.returncode == 0 and ("interrupted" in end.stdout or "finished" in end.stdout), end.stderr


# Programs that define `run`, which takes minutes.
LONG_RUNS = {
    "a kernel that reads the same elements again and again": """
        from pliant.script import ir as I, relax as R, tir as T

        @I.ir_module
        class Module:
            @T.prim_func(private=True)
            def f(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
                T.evaluate(
                    T.call_kernel(
                        "matmul",
                        x=T.view(a, [1, 1, 1 << 40], strides=[0, 0, 0]),
                        weight=T.view(b, [1, 1 << 40, 1], strides=[0, 0, 0]),
                        out=T.view(c, [1, 1, 1], strides=[0, 0, 0]),
                    )
                )

            @R.function
            def main(a: R.Tensor((64,), "float32"), b: R.Tensor((64,), "float32")):
                cls = Module
                return R.call_tir(cls.f, (a, b), out_sinfo=R.Tensor((64,), "float32"))

        model, a, b = pliant.compile(Module), np.ones(64, "float32"), np.ones(64, "float32")
        run = lambda: model(a, b)
        """,
    "an operator on tensors of unknown rank": """
        from pliant.script import relax as R

        @R.function
        def main(x: R.Tensor(dtype="float32"), w: R.Tensor(dtype="float32")):
            return R.nn.conv1d(x, w)

        model = pliant.compile(main)
        model(np.ones((1, 1, 4), "float32"), np.ones((1, 1, 2), "float32"))
        x, w = np.ones((1, 1, 2**22), "float32"), np.ones((1, 1, 2**21), "float32")
        run = lambda: model(x, w)
        """,
    "an ONNX node on tensors of unknown rank": """
        from onnx import TensorProto, ValueInfoProto, helper

        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "w")]
        graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "g", inputs, [ValueInfoProto(name="y")])
        model = pliant.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
        model(np.ones((1, 1, 4), "float32"), np.ones((1, 1, 2), "float32"))
        x, w = np.ones((1, 1, 2**22), "float32"), np.ones((1, 1, 2**21), "float32")
        run = lambda: model(x, w)
        """,
    "a determinant": """
        from onnx import TensorProto, helper

        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "n"])]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])]
        graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"])], "g", inputs, outputs)
        model = pliant.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
        x = np.random.default_rng(0).random((10000, 10000), "float32")
        run = lambda: model(x)
        """,
    "a loop of scalar operations inside of an ONNX node on tensors of unknown rank": """
        from onnx import TensorProto, helper

        def value(name, dtype, shape=()):
            return helper.make_tensor_value_info(name, dtype, list(shape) if shape is not None else None)

        body = helper.make_graph(
            [helper.make_node("Add", ["i", "a"], ["b"]), helper.make_node("Identity", ["go"], ["on"])],
            "body",
            [value("i", TensorProto.INT64), value("go", TensorProto.BOOL), value("a", TensorProto.INT64)],
            [value("on", TensorProto.BOOL), value("b", TensorProto.INT64)],
        )
        graph = helper.make_graph(
            [helper.make_node("Loop", ["n", "", "z"], ["y"], body=body)],
            "g",
            [value("n", TensorProto.INT64, None), value("z", TensorProto.INT64, None)],
            [value("y", TensorProto.INT64, None)],
        )
        model = pliant.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
        n, z = np.array(2**50), np.array(0)
        run = lambda: model(n, z)
        """,
}


@pytest.mark.parametrize("program", LONG_RUNS.values(), ids=LONG_RUNS)
def test_ctrl_c_during_a_long_call(program: str, tmp_path: Path) -> None:
    start = "import numpy as np\nimport pliant\n"
    end = """
try:
    print("ready", flush=True)
    run()
except KeyboardInterrupt:
    # The process ends now; further signals are not to end it with an error.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("interrupted")
"""
    result = interrupted(start + textwrap.dedent(program) + end, tmp_path)
    assert result.returncode == 0 and "interrupted" in result.stdout, result.stderr
