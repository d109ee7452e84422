"""Tests scripts: decorators, captured names, text, errors."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir
from pliant.script import from_source, parse
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

WIDTH = 4


@I.ir_module
class Decorated:
    @T.prim_func
    def exp(x: T.handle, y: T.handle):
        n = T.int64()
        A = T.match_buffer(x, (n, WIDTH), "float32")
        B = T.match_buffer(y, (n, WIDTH), "float32")
        for i, j in T.grid(n, WIDTH):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])

    @R.function
    def main(x: R.Tensor(("n", WIDTH), "float32")) -> R.Tensor(("n", WIDTH), "float32"):
        n = T.int64()
        cls = Decorated
        with R.dataflow():
            lv = R.add(x, x)
            gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((n, WIDTH), "float32"))
            R.output(gv)
        return gv


def test_a_decorated_class_runs(rng: np.random.Generator) -> None:
    x = rng.random((3, WIDTH), "float32")
    np.testing.assert_allclose(pliant.compile(Decorated)(x).numpy(), np.exp(2 * x), rtol=1e-5)


def test_print_parse_print_is_a_fixed_point() -> None:
    text = Decorated.script()
    again = from_source(text)
    assert again.script() == text
    assert pliant.ir.structural_equal(again, Decorated)
    assert parse(text).script(show_meta=True) == Decorated.script(show_meta=True)


def test_decorated_functions_capture_outer_names() -> None:
    size, name = 3, "float16"
    table = np.arange(3, dtype="float16")
    n = te.var("n")

    @R.function
    def shifted(x: R.Tensor((2, size), name)):
        y = R.add(x, R.const(table))
        return y

    assert str(shifted.params[0].struct_info) == 'R.Tensor((2, 3), dtype="float16")'
    np.testing.assert_array_equal(
        pliant.compile(shifted)(np.ones((2, 3), "float16")).numpy(), np.ones((2, 3)) + np.arange(3)
    )

    @R.function(private=True)
    def symbolic(x: R.Tensor((n, n * 2), "float32")):
        return x

    assert str(symbolic.params[0].struct_info) == 'R.Tensor((n, n * 2), dtype="float32")'


def test_captured_functions_join_the_module() -> None:
    A = te.placeholder((te.var("n"),), name="A")
    triple = te.create_prim_func([A, te.compute(A.shape, lambda i: A[i] * 3.0, name="B")])

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        y = R.call_tir(triple, (x,), out_sinfo=R.Tensor((n,), "float32"))
        return y

    mod = main if isinstance(main, pliant.IRModule) else pliant.IRModule.from_expr(main)
    np.testing.assert_array_equal(pliant.compile(mod)(np.ones(2, "float32")).numpy(), [3, 3])


def test_single_functions() -> None:
    @T.prim_func(private=True)
    def add_one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)

    assert isinstance(add_one, tir.PrimFunc) and add_one.__name__ == "add_one" and add_one.is_private
    assert "def add_one" in str(add_one)


def test_names_of_the_language_also_work_outside() -> None:
    n = te.var("n")
    assert R.Tensor((n, 4), "float32") == relax.TensorStructInfo((n, 4), "float32")
    assert R.Shape([n]) == relax.ShapeStructInfo([n]) and R.Object() == relax.ObjectStructInfo()
    assert R.Tuple(R.Object(), R.Tensor((2,), "int8")).fields[1] == relax.TensorStructInfo((2,), "int8")
    x = relax.Var("x", R.Tensor((n,), "float32"))
    assert isinstance(R.add(x, x), relax.Call)
    assert str(T.exp(tir.const(1.0))) == str(tir.exp(1.0)) and T.int32(3).dtype == "int32"
    assert isinstance(T.int64(), tir.Var)


def test_show_has_no_colors_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Decorated.show()
    Decorated["main"].show()
    Decorated["exp"].show()
    out = capsys.readouterr().out
    assert "\x1b[" not in out and "def main" in out and "def exp" in out

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    from pliant._show_script import show

    show(Decorated.script(), file=terminal)
    assert "\x1b[" in terminal.getvalue()


BAD = [
    ("def f(:\n    pass\n", "never closed", 1),
    ("@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    y = R.ad(x, x)\n    return y\n", "did you mean 'add'", 3),
    ("@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return unknown\n", "unknown name 'unknown'", 3),
    ("@R.function\ndef f(x: R.Tensor((2,), 'float31')):\n    return x\n", "float31", 2),
    (
        "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    with R.dataflow():\n        lv = R.add(x, x)\n"
        "        gv = R.add(lv, x)\n        R.output(gv)\n    return lv\n",
        "lv",
        7,
    ),
    (
        "@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    with R.dataflow():\n"
        "        lv = R.print(x)\n        gv = R.add(x, x)\n        R.output(gv)\n    return gv\n",
        "effect|impure|pure",
        4,
    ),
    ("@R.function\ndef f(x: R.Tensor((2, 3), 'float32'), y: R.Tensor((4,), 'float32')):\n    z = R.add(x, y)\n    return z\n", "add", 3),
    ("x = 3\n", "neither a module nor a function", 1),
    ("", "neither a module nor a function", None),
]


@pytest.mark.parametrize(("text", "message", "line"), BAD)
def test_invalid_scripts(text: str, message: str, line: int | None) -> None:
    with pytest.raises(pliant.ScriptError, match=message) as info:
        from_source(text, file="model.py")
    error = info.value
    if line is not None:
        assert error.lineno == line and error.filename == "model.py"
        assert error.offset is not None and error.offset >= 1
        assert f"model.py:{line}:" in error.rendered and "^" in error.rendered
        assert error.text is not None and error.text.rstrip("\n") == text.splitlines()[line - 1]


def test_errors_name_the_source_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            from pliant.script import relax as R

            def build():
                width = 4

                @R.function
                def main(x: R.Tensor(("n", width), "float32")):
                    y = R.add(x, x)
                    return R.mathmul(y, x)

            build()
            """
        )
    )
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f'File "{program}", line 10' in run.stderr
    lines = run.stderr.splitlines()
    at = next(i for i, l in enumerate(lines) if "return R.mathmul(y, x)" in l)
    assert lines[at + 1].strip().startswith("^")
    assert "did you mean 'matmul'" in run.stderr


def test_sources_that_cannot_be_read() -> None:
    scope: dict[str, Any] = {"R": R}
    with pytest.raises(pliant.ScriptError, match="from_source"):
        exec("@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    return x\n", scope)


def test_wrong_decoration() -> None:
    with pytest.raises(TypeError, match="decorates a class"):
        I.ir_module(lambda: 0)
    with pytest.raises(TypeError, match="decorates a function"):
        R.function(int)


@pytest.mark.parametrize("dim", ["'f'", "'f * 2'", "f"])
def test_dims_may_have_the_name_of_their_function(dim: str) -> None:
    module = from_source(
        f"@R.function\ndef f(x: R.Tensor(({dim},), 'float32')) -> R.Tensor(({dim},), 'float32'):\n    return x"
    )
    assert from_source(module.script()).script() == module.script()


@pytest.mark.parametrize("annotation", ["R.Tensor((M.f,), 'float32')", "R.Tensor((M.f(x),), 'float32')"])
def test_self_referential_signatures_are_rejected(annotation: str) -> None:
    source = f"""
@I.ir_module
class M:
    @R.function
    def f(x: R.Tensor((2,), 'float32')) -> {annotation}:
        return x
"""
    with pytest.raises(pliant.ScriptError):
        from_source(source)


def test_unicode_names_are_kept() -> None:
    module = from_source(
        "@R.function\ndef é(x: R.Tensor(('ñ',), 'float32')):\n    数 = R.exp(x)\n    return 数"
    )
    text = module.script()
    assert "def é(x" in text and "数: R.Tensor((ñ,)" in text
    again = from_source(text)
    assert again.script() == text
    pliant.ir.assert_structural_equal(module, again)


def test_bool_constants() -> None:
    module = from_source("@R.function\ndef f():\n    return (R.const(True), R.const([True, False]), R.const([True, 2]))")
    first, second, third = pliant.compile(module)()
    assert [str(np.asarray(t).dtype) for t in (first, second, third)] == ["bool", "bool", "int32"]


def test_classes_of_equal_names_are_read_separately() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            return R.exp(x)

    first = Module

    @I.ir_module(check_well_formed=True)
    class Module:  # noqa: F811
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            return R.sin(x)

    assert "R.exp" in first.script() and "R.sin" in Module.script()


def test_reloaded_modules_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
from pliant.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        return R.{op}(x)
"""
    file = tmp_path / "written_twice.py"
    file.write_text(text.format(op="exp"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("written_twice")
    assert "R.exp" in module.Module.script()
    file.write_text(text.format(op="tanh"))
    os.utime(file, (1, 1))
    assert "R.tanh" in importlib.reload(module).Module.script()


def test_star_import_of_passes() -> None:
    names: dict[str, Any] = {}
    exec("from pliant.relax.transform import *", names)
    assert {"LegalizeOps", "FuseOps", "RemoveUnusedOutputs", "FusionPattern"} <= names.keys()
