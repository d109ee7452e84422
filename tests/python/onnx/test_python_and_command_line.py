"""Tests compiling, running, explaining and comparing ONNX models, from Python and from the command line of the wheel."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from make_model_files import BOOL, TESTS, model, node

import pliant
from pliant import relax
from pliant.frontend.onnx import check, from_onnx, operators

CORPUS = TESTS / "corpus" / "onnx"


def test_models_are_paths_bytes_and_protos() -> None:
    path = CORPUS / "layer.onnx"
    x = np.ones((3, 4), np.float32)
    results = [pliant.compile(m)(x).numpy() for m in (path, str(path), path.read_bytes(), onnx.load(path))]
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    with pytest.raises(TypeError, match="the model must be a path, bytes"):
        from_onnx(3)


def test_models_run_like_sessions() -> None:
    nodes = [node("Relu", "in.1 ", "out/a"), node("Exp", "out/a", "b")]
    compiled = pliant.compile(model(nodes, "out/a b", inputs={"in.1": ["n"]}))
    assert compiled.input_names == ["in.1"] and compiled.output_names == ["out/a", "b"]
    x = np.array([-1, 2], np.float32)
    both = compiled.run(None, {"in.1": x})
    assert [type(r) for r in both] == [np.ndarray, np.ndarray]
    np.testing.assert_array_equal(both[0], [0, 2])
    only = compiled.run(["b"], {"in.1": x})
    np.testing.assert_array_equal(only[0], both[1])
    with pytest.raises(ValueError, match="no input 'in.2'.*in.1"):
        compiled.run(None, {"in.2": x})
    with pytest.raises(ValueError, match="'feeds' has no value for input in.1"):
        compiled.run(None, {})
    with pytest.raises(ValueError, match="no output 'c'"):
        compiled.run(["c"], {"in.1": x})


def test_saved_programs_keep_names(tmp_path: Path) -> None:
    compiled = pliant.compile(model([node("Relu", "in.1", "out/a")], "out/a", inputs={"in.1": ["n"]}))
    compiled.save(tmp_path / "m.plx")
    loaded = pliant.load(tmp_path / "m.plx")
    np.testing.assert_array_equal(loaded.run(["out/a"], {"in.1": np.full(3, -1, np.float32)})[0], np.zeros(3))


def test_shapes_and_types_can_be_overridden() -> None:
    made = model([node("Relu", "x", "y")])
    module = from_onnx(made, shape_dict={"x": ["batch", 4]}, dtype_dict={"x": "float16"})
    compiled = pliant.compile(module)
    assert compiled.inputs[0].shape == ("batch", 4) and compiled.inputs[0].dtype == "float16"
    assert compiled(np.ones((2, 4), np.float16)).dtype == "float32"
    assert pliant.compile(from_onnx(made, dtype_dict="float64")).inputs[0].dtype == "float64"
    with pytest.raises(pliant.CompileError, match="input 'x' has 2 dims in the model file, but 1 in shape_dict"):
        from_onnx(made, shape_dict={"x": [4]})
    for wrong in ({"shape_dict": {"z": [1]}}, {"dtype_dict": {"z": "float32"}}):
        with pytest.raises(pliant.CompileError, match="no input 'z'"):
            from_onnx(made, **wrong)
    with pytest.raises(TypeError, match="float33"):
        from_onnx(made, dtype_dict="float33")


def test_weights_can_stay_parameters() -> None:
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    module = from_onnx(model([node("MatMul", "x w", "y")], constants={"w": w}), keep_params_in_input=True)
    x = np.ones((2, 4), np.float32)
    compiled = pliant.compile(module)
    np.testing.assert_allclose(compiled(x, w), x @ w)
    assert compiled.input_names == ["x", "w"]
    # The same function as in TVM.
    apart, params = relax.frontend.detach_params(module)
    np.testing.assert_array_equal(params["main"][0].numpy(), w)
    np.testing.assert_array_equal(pliant.compile(apart)(x, *params["main"]), x @ w)
    assert relax.frontend.detach_params(from_onnx(model([node("Neg", "x", "y")])))[1] == {}
    assert relax.frontend.onnx.from_onnx is from_onnx


def test_bfloat16_arrays_as_inputs_and_results() -> None:
    made = model([node("Add", "x x", "y")], inputs={"x": (onnx.TensorProto.BFLOAT16, ["n", 2])})
    x = np.array([[1, 2], [3, 4.5]], ml_dtypes.bfloat16)
    (y,) = pliant.compile(made).run(None, {"x": x.T})
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y.astype(np.float32), (x.T + x.T).astype(np.float32))


def troubled() -> onnx.ModelProto:
    nodes = [
        onnx.helper.make_node("Frob", ["x"], ["a"], name="first"),
        onnx.helper.make_node("Frob", ["a"], ["b"], name="second"),
        node("Transpose", "b", "c", perm=[0, 7]),
        node("Cast", "x", "s", to=onnx.TensorProto.STRING),
    ]
    made = model(nodes, "c s")
    # The declared type of `b` lets the report continue after the failed node.
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, ["n", 4]))
    return made


def test_report_contains_all_problems(tmp_path: Path) -> None:
    report = check(troubled(), reduce=tmp_path)
    assert not report.ok
    assert report.operators == {"Frob": 2, "Transpose": 1, "Cast": 1}
    found = {f.operator: f for f in report.findings}
    assert found["Frob"].nodes == ["Frob 'first'", "Frob 'second'"] and found["Frob"].kind == "unsupported"
    assert "Transpose" in found and "STRING" in found["Cast"].message
    text = str(report)
    assert "4 nodes of 3 operators" in text and "Frob (2 nodes)" in text
    assert len(report.reduced) == 3
    for path in report.reduced:
        again = check(path)
        assert len(again.findings) == 1 and len(onnx.load(path).graph.node) == 1
        assert again.findings[0].message in {f.message for f in report.findings}
    assert check(CORPUS / "shapes.onnx").ok


def test_reports_of_subgraphs() -> None:
    """Tests that the report of ``check`` counts the nodes of subgraphs, and reports an unsupported node in a subgraph."""
    inner = [onnx.helper.make_node("Frob", ["x"], ["r"], name="deep")]
    branch = onnx.helper.make_graph(inner, "g", [], [onnx.ValueInfoProto(name="r")])
    other = onnx.helper.make_graph([node("Neg", "x", "r")], "g", [], [onnx.ValueInfoProto(name="r")])
    made = model([node("If", "c", "y", then_branch=branch, else_branch=other)], inputs={"x": ["n"], "c": (BOOL, [])})
    report = check(made)
    assert report.operators == {"If": 1, "Frob": 1, "Neg": 1}
    assert [f.nodes for f in report.findings] == [["Frob 'deep'"]]


def test_operators_are_listed() -> None:
    names = operators()
    assert "Conv" in names and names == sorted(names) and len(names) > 100


def command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pliant._cli", *args], capture_output=True, text=True, check=False)


def test_wheel_has_the_command(tmp_path: Path) -> None:
    path = tmp_path / "troubled.onnx"
    onnx.save(troubled(), path)
    done = command("check", str(path))
    assert done.returncode == 1 and "Frob (2 nodes)" in done.stdout
    np.save(tmp_path / "i.npy", np.array([2, 0]))
    done = command("run", str(CORPUS / "indices.onnx"), "--input", f"i={tmp_path / 'i.npy'}", "--save", str(tmp_path / "y.npy"))
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.array([[6, 0], [7, 1], [8, 2]]))


def test_models_are_compared_node_by_node(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model([node("Relu", "x", "a"), node("Exp", "a", "b"), node("Add", "b b", "y")]), path)
    same = command("diff", str(path), "--against", "reference", "--shape", "n=50")
    assert same.returncode == 0 and "all outputs agree" in same.stdout, same.stderr
    # Implementations of the exponential may differ in the last bit.
    strict = command("diff", str(path), "--against", "reference", "--shape", "n=500", "--rtol", "0", "--atol", "0")
    assert strict.returncode == 1 and "the first node that differs is Exp 'b'" in strict.stdout, strict.stdout + strict.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("arguments", [("run",), ("bench", "--shape", "n=1..4"), ("compile",)])
def test_the_command_shows_progress_on_a_terminal(arguments: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model([node("Relu", "x", "y")], "y", inputs={"x": ["n", 4]}), path)
    name, *rest = arguments
    extra = ["--shape", "n=3"] if name == "run" else ["-o", str(tmp_path / "m.plx")] if name == "compile" else []
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "pliant._cli", name, str(path), *rest, *extra],
        stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm"},
    ) as child:  # fmt: skip
        os.close(theirs)
        # Writes to a terminal block unless somebody reads from it.
        reader = threading.Thread(target=drain, args=(ours,), daemon=True)
        reader.start()
        assert child.wait(timeout=60) == 0
    # The number of a closed descriptor can be reused, and the reader would then read from
    # another file.
    reader.join(timeout=10)
    assert not reader.is_alive()
    os.close(ours)


def drain(terminal: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(terminal, 1024):
            pass


def test_compile_error_contains_all_problems() -> None:
    nodes = [node("Relu", "missing", "a"), node("Foo", "x", "b"), node("Not", "x", "c")]
    broken = model(nodes, "a b c", inputs={"x": ["n"]})
    with pytest.raises(pliant.CompileError) as told:
        pliant.compile(broken)
    for words in ("the node reads 'missing'", "operator Foo is not supported", "input 0 is of float32"):
        assert words in str(told.value) and words in str(check(broken))


def test_missing_data_file_is_one_problem(tmp_path: Path) -> None:
    weights = {f"w{i}": np.ones(1024, np.float32) for i in range(6)}
    sums = [node("Add", f"{'x' if i == 0 else f's{i - 1}'} w{i}", f"s{i}") for i in range(6)]
    made = model(sums, "s5", inputs={"x": [1024]}, constants=weights)
    onnx.save_model(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    (tmp_path / "m.data").unlink()
    report = str(check(tmp_path / "m.onnx"))
    assert "1 problem:" in report and "initializers 'w0', 'w1', 'w2' and 3 more: the external data 'm.data'" in report


def test_tensor_elements_in_two_fields_are_rejected() -> None:
    made = model([node("Add", "x w", "y")], inputs={"x": [2]}, constants={"w": np.ones(2, np.float32)})
    made.graph.initializer[0].float_data.extend([3, 4])
    with pytest.raises(pliant.CompileError, match="must store its elements in one field, but stores them in raw_data and in float_data"):
        pliant.compile(made)


def test_sequence_inputs_from_several_files(tmp_path: Path) -> None:
    item = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n"])
    seq = onnx.helper.make_value_info("s", onnx.helper.make_sequence_type_proto(item))
    out = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node("ConcatFromSequence", "s", "y", axis=0)], "g", [seq], [out])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    files = []
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.full(i + 1, i, np.float32))
        files.append(f"--input=s={tmp_path / f'{i}.npy'}")
    for given, want in ((files[:1], "[0]"), (files, "[0, 1, 1]")):
        ran = command("run", str(tmp_path / "m.onnx"), *given)
        assert ran.returncode == 0 and want in ran.stdout, ran.stdout + ran.stderr


def heads(made: onnx.ModelProto) -> str:
    return "\n".join(line for line in str(check(made)).splitlines() if line.startswith("-"))


@pytest.mark.parametrize("before", ["Foo", "Relu", "Identity"])
def test_nested_and_downstream_problems_are_reported_together(before: str) -> None:
    def body(op: str, name: str) -> onnx.GraphProto:
        return onnx.helper.make_graph([node(op, "x", name)], name, [], [onnx.ValueInfoProto(name=name)])

    choice = onnx.helper.make_node("If", ["a"], ["b"], then_branch=body("Bar", "t"), else_branch=body("Baz", "e"))
    nodes = [node(before, "c", "a"), choice]
    told = heads(model(nodes, "b", inputs={"x": ["n"], "c": [] if before == "Relu" else (BOOL, [])}))
    assert ("of float32, but opset 18 accepts bool" in told) == (before == "Relu")
    assert "operator Bar" in told and "operator Baz" in told and ("operator Foo" in told) == (before == "Foo")


def test_attribute_problems_after_an_unknown_operator_are_reported() -> None:
    for made, words in (
        (node("GridSample", "a a", "y", mode="zzz"), "attribute 'mode' cannot be 'zzz'"),
        (node("Pad", "x a", "y", mode="zzz"), "attribute 'mode' cannot be 'zzz'"),
        (node("Cast", "a", "y", to=onnx.TensorProto.STRING), "element type STRING is not supported"),
        (node("Concat", "a x", "y"), "attribute 'axis' is missing"),
        (node("Softmax", "a", "y", axis=7), ""),
    ):
        told = heads(model([node("Foo", "x", "a"), made]))
        assert "operator Foo" in told and words in told and told.count("- ") == (2 if words else 1), told


def test_functions_after_an_unknown_operator_are_checked() -> None:
    opset = onnx.helper.make_opsetid("", 18)
    inner = onnx.helper.make_function("local", "f", ["q"], ["r"], [node("Bar", "q", "r")], [opset])
    made = model([node("Foo", "x", "a"), onnx.helper.make_node("f", ["a"], ["y"], domain="local")])
    made.functions.append(inner)
    made.opset_import.append(onnx.helper.make_opsetid("local", 1))
    assert "operator Foo" in heads(made) and "operator Bar" in heads(made)
