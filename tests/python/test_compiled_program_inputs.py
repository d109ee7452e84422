"""Programs that are compiled ahead of time: scalars and shapes as inputs, outputs as inputs of the next run, and the files beside the
program."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_program import MEMORY, CompiledProgram, CTensor, Library, ProgramError
from onnx import TensorProto, helper

import pliant
from pliant.script import relax as R, tir as T

pytestmark = pytest.mark.skipif(
    "PLIANT_RUNTIME_LIBRARY" not in os.environ or shutil.which("cc") is None,
    reason="linking needs the run-time library, which PLIANT_RUNTIME_LIBRARY names, and the C compiler cc",
)


@R.function
def zeros(s: R.Shape(("a", "b"))):
    a, b = T.int64(), T.int64()
    return R.zeros(R.shape((a, b)), "float32")


@R.function
def double(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
    return R.add(x, x)


@R.function
def outer_sum(x: R.Tensor(("n", 1), "float32"), y: R.Tensor((1, "m"), "float32")):
    return R.add(x, y)


@R.function
def increment(x: R.Tensor(("n",), "float32")):
    return R.add(x, R.const(1, "float32"))


def shared_library(function: Any, directory: Path) -> Library:
    path = directory / "program.so"
    pliant.export_library(pliant.compile(function), path)
    return Library(path)


def check_header(directory: Path, name: str) -> None:
    """Compiles a C file that includes a header of a program."""
    (directory / "user.c").write_text(f'#include "{name}"\n#include <stdint.h>\nint32_t x;\n')
    subprocess.run(["cc", "-fsyntax-only", "-Wall", "-Werror", "user.c"], cwd=directory, check=True)


def test_the_symbols_of_a_shape_are_its_values(tmp_path: Path) -> None:
    with CompiledProgram(shared_library(zeros, tmp_path)) as program:
        (result,) = program.run(np.array([7, 3]))
        assert result.shape == (7, 3)
        assert (program.symbol("a"), program.symbol("b")) == (7, 3)
        rank = program.library["input_rank"](program.model, 0)
        assert (rank, program.library["input_dim"](program.model, 0, 0)) == (1, 2)
        with pytest.raises(ProgramError):
            program.run(np.array([2.5, 3.0], np.float32))


def test_executables_take_scalars(tmp_path: Path) -> None:
    pliant.export_library(pliant.compile(double), tmp_path / "double")
    np.save(tmp_path / "x.npy", np.ones(2, np.float32))
    np.save(tmp_path / "k.npy", np.array(3))
    command = ["./double", "--input", "x=x.npy", "--input", "k=k.npy", "--save", "y.npy"]
    subprocess.run(command, cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [2, 2])


def test_a_lack_of_memory_has_its_own_status(tmp_path: Path) -> None:
    with CompiledProgram(shared_library(outer_sum, tmp_path)) as program:
        x = np.ones((10**6, 1), np.float32)
        with pytest.raises(ProgramError) as error:
            program.run(x, np.ascontiguousarray(x.T))
        assert error.value.status == MEMORY


def test_an_output_may_be_an_input_of_the_next_run(tmp_path: Path) -> None:
    library = shared_library(increment, tmp_path)
    with CompiledProgram(library) as program:
        program.run(np.zeros(1000, np.float32))
        for _ in range(5):
            tensor = CTensor()
            library.check(library["output"](program.model, 0, tensor))
            library.check(library["set_input"](program.model, 0, tensor))
            library.check(library["run"](program.model))
        np.testing.assert_array_equal(program.output(0), np.full(1000, 6))


@pytest.mark.parametrize("name", ["PLIANT", "_stdint", "pliant", "main"])
def test_any_file_name_gives_a_header_of_its_own(name: str, tmp_path: Path) -> None:
    pliant.export_library(pliant.compile(increment), tmp_path / f"{name}.o")
    headers = {path.name for path in tmp_path.glob("*.h")} - {"pliant.h"}
    assert len(headers) == 1
    check_header(tmp_path, headers.pop())


def test_headers_replace_no_other_file(tmp_path: Path) -> None:
    model = pliant.compile(increment)
    (tmp_path / "main.h").write_text("int important;\n")
    for name in ["main.o", "program.h"]:
        with pytest.raises(pliant.CompileError, match="would replace another file"):
            pliant.export_library(model, tmp_path / name, emit="obj")
    assert (tmp_path / "main.h").read_text() == "int important;\n"
    # The headers of an earlier export are replaced.
    for _ in range(2):
        pliant.export_library(model, tmp_path / "again.o")


@pytest.mark.parametrize("name", ["y??/", "a\u202eb", "*/ int x; /*"])
def test_names_of_outputs_cannot_change_the_header(name: str, tmp_path: Path) -> None:
    def value(text: str) -> Any:
        return helper.make_tensor_value_info(text, TensorProto.FLOAT, ["n"])

    graph = helper.make_graph([helper.make_node("Exp", ["x"], [name])], "g", [value("x")], [value(name)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    pliant.export_library(pliant.compile(model), tmp_path / "o.o")
    check_header(tmp_path, "o.h")


@pytest.mark.parametrize("name", ["a,b", "a b", "a\udcff"])
def test_shared_libraries_in_any_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    pliant.export_library(pliant.compile(increment), tmp_path / name / "m.so")


@pytest.mark.parametrize("triple", ["x86_64-pc-windows-gnu", "x86_64-unknown-linux-gnux32", "riscv64-unknown-linux-gnu"])
def test_other_platforms_are_rejected(triple: str, tmp_path: Path) -> None:
    with pytest.raises(pliant.UnsupportedError, match="no code generator for"):
        pliant.export_library(pliant.compile(increment), tmp_path / "m.o", target_triple=triple)


def test_programs_for_another_architecture_are_not_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    with pytest.raises(pliant.UnsupportedError, match="requires a C compiler for this target"):
        pliant.export_library(pliant.compile(increment), tmp_path / "m.so", target_triple=f"{other}-unknown-linux-gnu")
