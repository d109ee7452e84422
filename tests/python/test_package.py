"""Tests properties of the package: import time, names, types, and the command line."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import pliant


def test_import_is_quiet_and_quick() -> None:
    code = (
        "import sys, time; start = time.perf_counter(); import pliant; "
        "took = time.perf_counter() - start; print(took); print('numpy' in sys.modules, file=sys.stderr)"
    )
    best = 9.0
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert run.stdout.count("\n") == 1, "import prints something"
        best = min(best, float(run.stdout))
    assert best < 0.15


def test_build_info() -> None:
    info = pliant.build_info()
    assert info["version"] == pliant.__version__
    assert "cranelift" in info["backends"]


@pytest.mark.parametrize("name", sorted(pliant._SUBMODULES))
def test_submodules_resolve(name: str) -> None:
    assert getattr(pliant, name) is importlib.import_module(f"pliant.{name}")


@pytest.mark.parametrize(
    "name", ["pliant", "pliant.ir", "pliant.relax", "pliant.runtime", "pliant.te", "pliant.tir", "pliant.topi"]
)
def test_all_names_exist(name: str) -> None:
    module = importlib.import_module(name)
    for public in module.__all__:
        assert getattr(module, public) is not None, f"{name}.{public}"


def test_unknown_names_are_rejected() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        pliant.nonsense  # noqa: B018


def test_errors_derive_from_the_base_and_the_builtin() -> None:
    assert issubclass(pliant.ScriptError, SyntaxError)
    assert issubclass(pliant.ShapeError, ValueError)
    assert issubclass(pliant.DTypeError, TypeError)
    assert issubclass(pliant.VMError, RuntimeError)
    assert issubclass(pliant.TimeLimitError, pliant.VMError) and issubclass(pliant.TimeLimitError, TimeoutError)
    assert issubclass(pliant.UnsupportedError, NotImplementedError)
    for name in pliant.error.__all__:
        assert issubclass(getattr(pliant.error, name), pliant.PliantError)
    assert pliant.TVMError is pliant.PliantError


def test_functions_have_docs_and_hints() -> None:
    for module in (pliant.te, pliant.tir.op, pliant.topi, pliant.topi.nn, pliant.registry, pliant.relax.block_builder):
        for name, func in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("_") or func.__module__ != module.__name__:
                continue
            assert func.__doc__, f"{module.__name__}.{name} has no documentation"
            assert "return" in func.__annotations__, f"{module.__name__}.{name} has no type hints"


def test_the_command_line_runs() -> None:
    code = "import sys; sys.argv = ['pliant', '--version']; from pliant._cli import main; sys.exit(main())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert pliant.__version__ in run.stdout
