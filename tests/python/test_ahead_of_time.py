"""Programs that are compiled ahead of time: every kind of file at every size, the documentation page and its examples, the headers,
wrong arguments of the C interface, and stopped and concurrent runs."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from compiled_program import (
    ARGUMENT,
    INTERRUPTED,
    PROGRAM,
    RUN,
    SYMBOLIC,
    TIME_LIMIT,
    CompiledProgram,
    COptions,
    CTensor,
    Library,
    ProgramError,
)
from onnx import TensorProto, helper

import pliant
from pliant.script import ir as I, relax as R

pytestmark = pytest.mark.skipif(
    "PLIANT_RUNTIME_LIBRARY" not in os.environ or shutil.which("cc") is None,
    reason="linking needs the run-time library, which PLIANT_RUNTIME_LIBRARY names, and the C compiler cc",
)

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "serve" / "ahead-of-time.md"
EXAMPLES = ROOT / "examples" / "ahead_of_time"
PLIANT = [sys.executable, "-m", "pliant._cli"]
BACKENDS = pliant.build_info()["backends"]
EMITS = {"obj": "layer.o", "static": "layer.a", "shared": "layer.so", "exe": "layer"}
MAIN = """
#include "layer.h"
int main(int argc, char **argv) { return pliant_main(&layer_program, argc, argv); }
"""
WEIGHTS = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)


@R.function
def layer(x: R.Tensor(("n", 16), "float32")) -> R.Tensor(("n", 4), "float32"):
    with R.dataflow():
        products = R.matmul(R.tanh(x), R.const(WEIGHTS))
        y = R.exp(R.nn.softmax(products, axis=-1))
        R.output(y)
    return y


def expected_layer(x: np.ndarray) -> np.ndarray:
    products = np.exp(np.tanh(x.astype(np.float64)) @ WEIGHTS)
    return np.exp(products / products.sum(axis=-1, keepdims=True))


@I.ir_module
class Functions:
    """Several functions, one of which runs until it is stopped if its argument is less than 2."""

    @R.function
    def halve(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        while x < 2:
            x = x / 2
        return x

    @R.function
    def identity(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        return x

    @R.function
    def add(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n * 2", 3), "float32")):
        return (R.add(x, R.const(1, "float32")), R.sum(y, axis=1), R.shape_of(x))


def run_command(*command: object, directory: Path) -> str:
    """Runs a command that must succeed, and returns its output."""
    done = subprocess.run([str(word) for word in command], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def link_executable(directory: Path, emit: str) -> None:
    """Links ``layer.o`` or ``layer.a`` to an executable that runs on NumPy files."""
    (directory / "main.c").write_text(MAIN)
    libraries = [os.environ["PLIANT_RUNTIME_LIBRARY"]] if emit == "obj" else []
    run_command("cc", "main.c", EMITS[emit], *libraries, "-lm", "-o", "layer", directory=directory)


def run_on_files(directory: Path, x: np.ndarray) -> np.ndarray:
    """Runs the executable ``layer``."""
    np.save(directory / "x.npy", x)
    run_command("./layer", "--input", "x=x.npy", "--save", "y.npy", "--threads", 2, directory=directory)
    return np.load(directory / "y.npy")


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Library:
    path = tmp_path_factory.mktemp("functions") / "libfunctions.so"
    pliant.export_library(pliant.compile(Functions), path)
    return Library(path)


@pytest.mark.parametrize("target", BACKENDS)
@pytest.mark.parametrize("emit", EMITS)
def test_every_kind_of_file_gives_the_results_of_the_model(
    emit: str, target: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    model = pliant.compile(layer)
    pliant.export_library(model, tmp_path / EMITS[emit], target=target)
    if emit in ("obj", "static"):
        link_executable(tmp_path, emit)
    program = CompiledProgram(Library(tmp_path / "layer.so")) if emit == "shared" else None
    for n in [0, 1, 5, 1000]:
        x = rng.normal(size=(n, 16)).astype(np.float32)
        y = run_on_files(tmp_path, x) if program is None else program.run(x)[0]
        assert y.shape == (n, 4) and y.dtype == np.float32
        np.testing.assert_allclose(y, expected_layer(x), rtol=1e-5)
        np.testing.assert_allclose(y, model(x).numpy(), rtol=1e-6)


def test_the_command_line_and_python_write_the_same_object_file(tmp_path: Path) -> None:
    model = pliant.compile(layer)
    model.save(tmp_path / "layer.plx")
    run_command(*PLIANT, "compile", "layer.plx", "-o", "a.o", "--emit", "obj", directory=tmp_path)
    (tmp_path / "python").mkdir()
    pliant.export_library(model, tmp_path / "python" / "a.o", target=BACKENDS[-1])
    assert (tmp_path / "a.o").read_bytes() == (tmp_path / "python" / "a.o").read_bytes()
    assert (tmp_path / "a.h").read_text() == (tmp_path / "python" / "a.h").read_text()


def test_code_for_an_older_cpu_gives_the_same_results(tmp_path: Path, rng: np.random.Generator) -> None:
    cpu = "x86-64-v3" if os.uname().machine == "x86_64" else None
    pliant.export_library(pliant.compile(layer), tmp_path / "old.so", target_cpu=cpu)
    x = rng.normal(size=(33, 16)).astype(np.float32)
    with CompiledProgram(Library(tmp_path / "old.so")) as program:
        np.testing.assert_allclose(program.run(x)[0], expected_layer(x), rtol=1e-5)


def test_object_files_of_two_models_share_one_runtime_library(tmp_path: Path) -> None:
    for name in ["first", "second"]:
        pliant.export_library(pliant.compile(layer), tmp_path / f"{name}.o")
    (tmp_path / "main.c").write_text("""
#include "first.h"
#include "second.h"
int main(void)
{
    pliant_model *a, *b;
    return pliant_create(&first_program, NULL, &a) != PLIANT_OK || pliant_create(&second_program, NULL, &b) != PLIANT_OK;
}
""")
    runtime = os.environ["PLIANT_RUNTIME_LIBRARY"]
    run_command("cc", "main.c", "first.o", "second.o", runtime, "-lm", "-o", "both", directory=tmp_path)
    run_command("./both", directory=tmp_path)


# The documentation page and the examples.


def page_blocks() -> list[tuple[str, str]]:
    """Returns the code blocks of the page: their language and their text."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def write_command(path: Path, *command: str) -> None:
    """Writes a shell script that runs a command with further arguments."""
    path.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    path.chmod(0o755)


def test_the_page_shows_what_its_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the page's commands in an empty directory, with its script and its C program."""
    commands, directory = tmp_path / "bin", tmp_path / "empty"
    commands.mkdir()
    directory.mkdir()
    write_command(commands / "pliant", *PLIANT)
    write_command(commands / "python3", sys.executable)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    printed, outputs = "", 0
    for language, text in page_blocks():
        if language == "c":
            (directory / "main.c").write_text(text)
        elif language == "py" and "@R.function" in text:
            (directory / "model.py").write_text(text)
        elif language == "sh":
            printed = run_command("sh", "-e", "-c", text, directory=directory)
        elif language == "output":
            assert text == printed
            outputs += 1
    assert outputs >= 4


def test_the_page_shows_the_examples() -> None:
    examples = {
        "c": (EXAMPLES / "c" / "main.c").read_text(),
        "py": "".join((EXAMPLES / file).read_text() for file in ["model.py", "python/run.py"]),
        "rust": (EXAMPLES / "rust" / "src" / "main.rs").read_text(),
    }
    shown = [(examples[language], text) for language, text in page_blocks() if language in examples]
    assert len(shown) == 4
    for example, text in shown:
        lines = [line.strip() for line in example.splitlines()]
        missing = [line for line in text.splitlines() if line.strip() not in lines]
        assert not missing


def test_the_c_example_compiles_without_warnings(tmp_path: Path) -> None:
    run_command(*PLIANT, "compile", EXAMPLES / "model.py", "-o", "model.o", "--emit", "obj", directory=tmp_path)
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    run_command("cc", "-fsyntax-only", *warnings, "-I.", EXAMPLES / "c" / "main.c", directory=tmp_path)


def test_the_python_example_runs_without_pliant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_command(*PLIANT, "compile", EXAMPLES / "model.py", "-o", "model.so", "--emit", "shared", directory=tmp_path)
    (tmp_path / "pliant.py").write_text("raise ImportError('the example imports Pliant')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    printed = run_command(sys.executable, EXAMPLES / "python" / "run.py", "./model.so", directory=tmp_path)
    assert printed == "[[0.987 0.007 0.007]]\n[[0.987 0.007 0.007]\n [0.007 0.987 0.007]]\n"


# Headers.


def check_headers(directory: Path) -> None:
    """Compiles every header of a directory as C and, if there is a C++ compiler, as C++."""
    for header in sorted(directory.glob("*.h")):
        options = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        run_command("cc", "-x", "c", *options, f"./{header.name}", directory=directory)
        if shutil.which("g++"):
            run_command("g++", "-x", "c++", *options, f"./{header.name}", directory=directory)


@pytest.mark.parametrize("name", ["3 d*", "a-b.c", "größe", "int", '"; #error', "a\nb", "-x", "@f", "A" * 200])
def test_any_file_name_gives_a_valid_header(name: str, tmp_path: Path) -> None:
    pliant.export_library(pliant.compile(layer), tmp_path / f"{name}.o")
    files = {path.name for path in tmp_path.iterdir()}
    assert files >= {f"{name}.o", "pliant.h"} and len(files) == 3
    check_headers(tmp_path)


def test_a_directory_may_have_any_name(tmp_path: Path) -> None:
    directory = tmp_path / "3 d*"
    directory.mkdir()
    for file in [".o", "a.so", "a.a", "a"]:
        run_command(*PLIANT, "compile", EXAMPLES / "model.py", "-o", directory / file, *emit_option(file), directory=tmp_path)
    check_headers(directory)
    with CompiledProgram(Library(directory / "a.so")) as program:
        assert program.run(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32))[0].shape == (2, 3)


def emit_option(file: str) -> list[str]:
    """Returns the option ``--emit`` for the name of a file."""
    return ["--emit", {"o": "obj", "so": "shared", "a": "static"}.get(file.rpartition(".")[2] if "." in file else "", "exe")]


HOSTILE_NAMES = [
    "*/ #error x /*",
    "/*",
    "*\\",
    "*" * 3 + "/" * 3,
    "a\n#error b\n",
    "a\r#error b",
    "\0",
    "%s%n",
    "größe 🙂",
    'x"',
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_in_a_model_cannot_leave_the_comment_of_the_header(name: str, tmp_path: Path) -> None:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [f"n{name}", 2])  # noqa: E731
    nodes = [helper.make_node("Exp", [name], [f"{name}y"])]
    graph = helper.make_graph(nodes, "g", [value(name)], [value(f"{name}y")])
    model = pliant.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    pliant.export_library(model, tmp_path / "named.so")
    check_headers(tmp_path)
    library = Library(tmp_path / "named.so")
    with CompiledProgram(library) as program:
        assert library["input_name"](program.model, 0) == name.replace("\0", "").encode()
        assert library["input_index"](program.model, name.replace("\0", "").encode()) == 0
        assert library["output_name"](program.model, 0) == f"{name}y".replace("\0", "").encode()
        np.testing.assert_allclose(program.run(np.ones((3, 2), np.float32))[0], np.full((3, 2), np.e), rtol=1e-6)


# The C interface.


def test_a_model_describes_its_inputs_and_outputs(functions: Library) -> None:
    with CompiledProgram(functions, "add") as program:
        model, texts = program.model, functions["input_dim_text"]
        assert functions["input_count"](model) == 2
        assert [functions["input_name"](model, i) for i in range(3)] == [b"x", b"y", None]
        assert [functions["input_index"](model, name) for name in (b"x", b"y", b"z", None, b"\xff")] == [0, 1, -1, -1, -1]
        assert [functions["input_dtype"](model, i) for i in range(3)] == [0x0220, 0x0220, 0]
        assert [functions["input_rank"](model, i) for i in range(3)] == [2, 2, -1]
        assert [functions["input_dim"](model, 1, axis) for axis in range(3)] == [SYMBOLIC, 3, SYMBOLIC]
        assert [texts(model, 0, axis) for axis in range(3)] == [b"n", b"m", None]
        assert b"n" in texts(model, 1, 0) and texts(model, 1, 1) == b"3" and texts(model, 9, 0) is None
        assert functions["output_count"](model) == 0
        x, y = np.ones((2, 5), np.float32), np.ones((4, 3), np.float32)
        sums, rows, shape = program.run(x, y)
        np.testing.assert_array_equal(sums, np.full((2, 5), 2))
        np.testing.assert_array_equal(rows, np.full(4, 3))
        np.testing.assert_array_equal(shape, [2, 5])
        assert shape.dtype == np.int64
        assert (program.symbol("n"), program.symbol("m")) == (2, 5)
        assert functions["output_name"](model, 0) is None


def test_an_output_does_not_share_the_memory_of_an_input(functions: Library) -> None:
    with CompiledProgram(functions, "identity") as program:
        x = np.arange(4)
        program.run(x)
        program.kept[0][:] = -1
        np.testing.assert_array_equal(program.output(0), np.arange(4))


def error_of(call: Callable[[], object]) -> tuple[int, str]:
    """Returns the status and the message of the error that a call raises."""
    with pytest.raises(ProgramError) as raised:
        call()
    return raised.value.status, raised.value.message


def test_wrong_arguments_of_create_are_errors(functions: Library) -> None:
    assert error_of(lambda: CompiledProgram(functions)) == (
        ARGUMENT,
        "the program has no function 'main'; select one of its functions: halve, identity, add",
    )
    assert error_of(lambda: CompiledProgram(functions, "nothing")) == (
        ARGUMENT,
        "the program has no function 'nothing'; its functions are: halve, identity, add",
    )
    assert error_of(lambda: CompiledProgram(functions, "add", threads=1025)) == (
        ARGUMENT,
        "the number of threads must be at most 1024, but is 1025",
    )
    create, check, model = functions["create"], functions.check, ctypes.c_void_p(1)
    assert error_of(lambda: check(create(None, None, model))) == (ARGUMENT, "the argument 'program' is null")
    assert model.value is None
    message = "the argument 'model', which receives the model, is null"
    assert error_of(lambda: check(create(functions.program, None, None))) == (ARGUMENT, message)
    not_text = COptions(b"\xff", 0)
    message = "the name of the function is not valid UTF-8"
    assert error_of(lambda: check(create(functions.program, not_text, model))) == (ARGUMENT, message)


def test_null_pointers_are_errors(functions: Library) -> None:
    check, tensor, size = functions.check, CTensor(), ctypes.c_int64()
    for call in [
        lambda: functions["run"](None),
        lambda: functions["run_for"](None, 1.0),
        lambda: functions["set_input"](None, 0, tensor),
        lambda: functions["output"](None, 0, tensor),
        lambda: functions["symbol"](None, b"n", size),
    ]:
        assert error_of(lambda: check(call())) == (ARGUMENT, "the argument 'model' is null")
    for function in ["input_count", "output_count"]:
        assert functions[function](None) == 0
    for function in ["input_name", "output_name"]:
        assert functions[function](None, 0) is None
    assert functions["input_dim_text"](None, 0, 0) is None
    assert (functions["input_index"](None, b"x"), functions["input_rank"](None, 0)) == (-1, -1)
    assert (functions["input_dtype"](None, 0), functions["input_dim"](None, 0, 0)) == (0, SYMBOLIC)
    functions["interrupt"](None)
    functions["destroy"](None)
    with CompiledProgram(functions, "add") as program:
        model = program.model
        assert error_of(lambda: check(functions["set_input"](model, 0, None))) == (ARGUMENT, "the argument 'tensor' is null")
        assert error_of(lambda: check(functions["symbol"](model, None, size)))[0] == ARGUMENT
        assert error_of(lambda: check(functions["symbol"](model, b"n", None)))[0] == ARGUMENT
        program.run(np.ones((1, 1), np.float32), np.ones((2, 3), np.float32))
        assert error_of(lambda: check(functions["output"](model, 0, None)))[0] == ARGUMENT


FLOAT32 = 0x0220
WRONG_TENSORS = {
    "the index of an input": (7, 1, [1, 1], 2, FLOAT32, "the model has no input 7; it has 2 inputs"),
    "a huge index": (2**64 - 1, 1, [1, 1], 2, FLOAT32, "the model has no input 18446744073709551615; it has 2 inputs"),
    "an unknown dtype": (0, 1, [1, 1], 2, 77, "the tensor has the element type 77, which is not a constant of pliant_dtype"),
    "a negative dtype": (0, 1, [1, 1], 2, -1, "the tensor has the element type -1, which is not a constant of pliant_dtype"),
    "a null shape": (0, 1, None, 2, FLOAT32, "the shape pointer of the tensor is null, but the tensor has dims"),
    "null elements": (0, None, [1, 1], 2, FLOAT32, "the data pointer of the tensor is null, but the tensor has elements"),
    "rank 65": (0, 1, [1] * 65, 65, FLOAT32, "the rank of a tensor must be at most 64, but is 65"),
    "a huge rank": (0, 1, [1], 2**64 - 1, FLOAT32, "the rank of a tensor must be at most 64, but is 18446744073709551615"),
    "a negative dim": (0, 1, [2, -3], 2, FLOAT32, "-3"),
    "the least dim": (0, 1, [-(2**63), 1], 2, FLOAT32, "-9223372036854775808"),
    "too many elements": (0, 1, [2**62, 2**62], 2, FLOAT32, "4611686018427387904"),
}


@pytest.mark.parametrize("case", WRONG_TENSORS)
def test_wrong_tensors_are_errors(case: str, functions: Library) -> None:
    index, data, shape, rank, dtype, message = WRONG_TENSORS[case]
    with CompiledProgram(functions, "add") as program:
        status, text = error_of(lambda: program.set_tensor(index, data, shape, rank, dtype))
        assert message in text
        assert status in (ARGUMENT, RUN)
        # The model can still be used.
        assert len(program.run(np.ones((1, 1), np.float32), np.ones((2, 3), np.float32))) == 3


def test_tensors_without_elements_need_no_addresses(functions: Library) -> None:
    with CompiledProgram(functions, "add") as program:
        program.set_tensor(0, None, [0, 5], 2, FLOAT32)
        program.set_tensor(1, None, [0, 3], 2, FLOAT32)
        assert [output.shape for output in program.run()] == [(0, 5), (0,), (2,)]
    with CompiledProgram(functions, "halve") as program:
        value = np.array(3, np.float32)
        program.set_tensor(0, value.ctypes.data, None, 0, FLOAT32)
        assert program.run()[0] == 3


def test_runs_without_inputs_or_with_wrong_inputs_are_errors(functions: Library) -> None:
    x, y = np.ones((2, 5), np.float32), np.ones((4, 3), np.float32)
    with CompiledProgram(functions, "add") as program:
        assert error_of(lambda: program.symbol("n")) == (ARGUMENT, "no input with the symbol 'n' is set")
        assert error_of(lambda: program.symbol("k")) == (ARGUMENT, "no dim of an input is the symbol 'k'")
        assert error_of(lambda: program.output(0)) == (ARGUMENT, "the model has no outputs, because it has not run")
        assert error_of(program.run) == (ARGUMENT, "input 0, 'x', is not set; call pliant_set_input first")
        assert error_of(lambda: program.run(x)) == (ARGUMENT, "input 1, 'y', is not set; call pliant_set_input first")
        status, text = error_of(lambda: program.run(x, np.ones((4, 4), np.float32)))
        assert status == RUN and text.startswith("add: 'y' dim 1 must equal 3, but is 4")
        status, text = error_of(lambda: program.run(x, np.ones((5, 3), np.float32)))
        assert status == RUN and "'y' dim 0" in text
        status, text = error_of(lambda: program.run(x, y.astype(np.float64)))
        assert status == RUN and "'y' must be a float32 tensor of 2 dims" in text
        status, text = error_of(lambda: program.run(x, y[0]))
        assert status == RUN and "'y'" in text
        assert error_of(lambda: program.output(0))[0] == ARGUMENT
        assert len(program.run(x, y)) == 3
        assert error_of(lambda: program.output(3)) == (ARGUMENT, "the model has no output 3; it has 3 outputs")


def test_other_versions_and_cpus_are_rejected(functions: Library, tmp_path: Path) -> None:
    header = (ctypes.c_uint64 * 7).from_address(functions.program)
    changed, model = (ctypes.c_uint64 * 7)(*header), ctypes.c_void_p()
    changed[0] += 1
    status, text = error_of(lambda: functions.check(functions["create"](ctypes.addressof(changed), None, model)))
    assert status == PROGRAM and "compile the model again" in text
    if os.uname().machine != "x86_64":
        return
    pliant.export_library(pliant.compile(layer), tmp_path / "cpu.so", target_cpu="x86-64-v3")
    library = (tmp_path / "cpu.so").read_bytes()
    description = library.index(b"avx2")
    (tmp_path / "cpu.so").write_bytes(library[:description] + b"avx9" + library[description + 4 :])
    status, text = error_of(lambda: CompiledProgram(Library(tmp_path / "cpu.so")))
    assert status == PROGRAM and "which this CPU does not have" in text


# Runs that are stopped, and concurrent runs.


def test_a_time_limit_stops_a_run(functions: Library) -> None:
    with CompiledProgram(functions, "halve") as program:
        status, text = error_of(lambda: program.run(np.array(1, np.float32), seconds=0.2))
        assert status == TIME_LIMIT and "0.2 seconds" in text
        assert program.run(np.array(3, np.float32), seconds=100)[0] == 3
        assert error_of(lambda: program.run(seconds=0))[0] == TIME_LIMIT


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), -float("inf")])
def test_wrong_time_limits_are_errors(functions: Library, seconds: float) -> None:
    with CompiledProgram(functions, "halve") as program:
        status, text = error_of(lambda: program.run(np.array(3, np.float32), seconds=seconds))
        assert status == ARGUMENT and "the time limit must be a number of seconds" in text


def test_an_interrupt_from_another_thread_stops_a_run(functions: Library) -> None:
    with CompiledProgram(functions, "halve") as program:
        program.set_input(0, np.array(1, np.float32))
        statuses: list[object] = []
        thread = threading.Thread(target=lambda: statuses.append(functions["run"](program.model)))
        thread.start()
        while thread.is_alive():
            functions["interrupt"](program.model)
            thread.join(0.01)
        assert statuses == [INTERRUPTED]
        assert program.run(np.array(3, np.float32))[0] == 3


def test_an_interrupt_does_not_stop_other_models(functions: Library) -> None:
    with CompiledProgram(functions, "halve") as program, CompiledProgram(functions, "identity") as other:
        functions["interrupt"](program.model)
        np.testing.assert_array_equal(other.run(np.arange(3))[0], np.arange(3))


def test_two_models_of_a_program_run_in_two_threads(tmp_path: Path) -> None:
    pliant.export_library(pliant.compile(layer), tmp_path / "parallel.so")
    library, failures = Library(tmp_path / "parallel.so"), []

    def run_many(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            with CompiledProgram(library, threads=2) as program:
                for n in [1, 300, 0, 7] * 25:
                    x = rng.normal(size=(n, 16)).astype(np.float32)
                    np.testing.assert_allclose(program.run(x)[0], expected_layer(x), rtol=1e-5)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run_many, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_message_of_an_error_belongs_to_the_thread(functions: Library) -> None:
    assert functions["run"](None) == ARGUMENT
    messages: list[object] = []
    thread = threading.Thread(target=lambda: messages.append(functions["error_message"]()))
    thread.start()
    thread.join()
    assert messages == [b""]
    assert functions["error_message"]() == b"the argument 'model' is null"


# Errors of the export.


def test_export_library_names_what_is_wrong(tmp_path: Path) -> None:
    model = pliant.compile(layer)
    with pytest.raises(ValueError, match=r"the extension '\.dll' determines no kind of file; pass emit="):
        pliant.export_library(model, tmp_path / "layer.dll")
    with pytest.raises(pliant.CompileError, match=r"layer\.o cannot be written"):
        pliant.export_library(model, tmp_path / "missing" / "layer.o")
    with pytest.raises(pliant.CompileError, match=r"layer\.so cannot be written"):
        pliant.export_library(model, tmp_path / "missing" / "layer.so")
    with pytest.raises(pliant.UnsupportedError, match="code for the CPU 'i386' cannot be generated; use one of"):
        pliant.export_library(model, tmp_path / "layer.o", target_cpu="i386")
    with pytest.raises(pliant.UnsupportedError, match="no code generator for the target 'pdp11-dec-unix'"):
        pliant.export_library(model, tmp_path / "layer.o", target_triple="pdp11-dec-unix")
    with pytest.raises(pliant.CompileError, match=r"the run-time library .*missing\.a does not exist"):
        pliant.export_library(model, tmp_path / "layer.so", runtime_library=tmp_path / "missing.a")
    with pytest.raises(pliant.PliantError, match="'dll' is not a kind of output file"):
        pliant.export_library(model, tmp_path / "layer.o", emit="dll")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_failures_of_the_linker_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, text = pliant.compile(layer), tmp_path / "text.a"
    text.write_text("not a library")
    for emit in ["shared", "static", "exe"]:
        with pytest.raises(pliant.CompileError, match="the command '(cc|ar)' failed"):
            pliant.export_library(model, tmp_path / "layer", emit=emit, runtime_library=text)  # type: ignore[arg-type]
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(pliant.CompileError, match="the command 'no-such-compiler' cannot be run"):
        pliant.export_library(model, tmp_path / "layer.so")
    assert [path.name for path in tmp_path.iterdir()] == ["text.a"]


def test_programs_that_compile_at_run_time_are_rejected(tmp_path: Path) -> None:
    @R.function
    def unknown_rank(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        return R.exp(x)

    with pytest.raises(pliant.UnsupportedError, match="the program needs a compiler at run time"):
        pliant.export_library(pliant.compile(unknown_rank), tmp_path / "unknown.o")
    assert not list(tmp_path.iterdir())


# Executables.


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "the value of input 'x' is missing"),
        (["--input", "y=x.npy"], 2, "there is no such input; the inputs are x"),
        (["--input", "x"], 2, "--input needs NAME=FILE.npy"),
        (["--input", "x=missing.npy"], 1, "cannot read the file missing.npy"),
        (["--input", "x=text.npy"], 1, "the file is not a .npy file"),
        (["--input", "x=wide.npy"], 1, "'x' dim 1 must equal 16, but is 17"),
        (["--input", "x=x.npy", "--save", "missing/y.npy"], 1, "cannot write the file missing/y.npy"),
        (["--input", "x=x.npy", "--save", "z=y.npy"], 2, "the program has no output 'z'"),
        (["--threads", "0"], 2, "the value of --threads must be a positive integer"),
        (["--repeat", "many"], 2, "the value of --repeat must be a positive integer"),
        (["--verbose"], 2, "unknown option '--verbose'"),
        (["--save"], 2, "the option --save needs a value"),
    ],
)
def test_executables_report_wrong_arguments(arguments: list[str], status: int, message: str, executable: Path) -> None:
    done = subprocess.run(["./layer", *arguments], cwd=executable, capture_output=True, text=True)
    assert done.returncode == status
    assert done.stderr.startswith("error: ") and message in done.stderr


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the executable ``layer``, with files for it."""
    directory = tmp_path_factory.mktemp("executable")
    pliant.export_library(pliant.compile(layer), directory / "layer")
    np.save(directory / "x.npy", np.ones((2, 16), np.float32))
    np.save(directory / "wide.npy", np.ones((2, 17), np.float32))
    (directory / "text.npy").write_text("not an array")
    return directory


def test_executables_describe_their_inputs(executable: Path) -> None:
    assert "x: R.Tensor((n, 16)" in run_command("./layer", "--help", directory=executable)
    printed = run_command("./layer", "--input", "x=x.npy", "--repeat", "3", directory=executable)
    assert printed.count(" ms\n") == 3 and printed.endswith("float32(2, 4)\n")
