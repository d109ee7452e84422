"""Tests that `import onnxruntime` can return this package, in a process and for a script that stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from session_models import add_model

import pliant

SOURCES = str(Path(pliant.__file__).parents[1])


def run(*command: str, cwd: Path) -> str:
    """Runs Python with a command line and returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


SCRIPT = """
import sys
import importlib.metadata, importlib.util
import numpy as np
import onnxruntime
import onnxruntime as rt
import onnxruntime.capi._pybind_state as C
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions, get_available_providers
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue, check_and_normalize_provider_args
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile
from helper_beside_the_script import PATH

options = SessionOptions()
options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
session = InferenceSession(PATH, options, providers=get_available_providers())
x = np.ones((2, 2), np.float32)
print(__name__, sys.argv[1:], session.run(["w"], {"in/x": x, "in.y": x})[0].sum(), C.get_device(), rt is onnxruntime)
print(onnxruntime.get_build_info().split()[0], importlib.util.find_spec("onnxruntime") is not None)
print(bool(importlib.metadata.version("onnxruntime")))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "model.onnx").write_bytes(add_model())
    (tmp_path / "helper_beside_the_script.py").write_text("PATH = 'model.onnx'\n")
    (tmp_path / "application.py").write_text(SCRIPT)
    return tmp_path / "application.py"


def test_scripts(script: Path) -> None:
    out = run("-m", "pliant.onnxruntime", "application.py", "--fast", "3", cwd=script.parent)
    assert out.splitlines() == ["__main__ ['--fast', '3'] -8.0 CPU True", "Pliant True", "True"]


def test_modules(script: Path) -> None:
    out = run("-m", "pliant.onnxruntime", "-m", "application", "x", cwd=script.parent)
    assert out.splitlines()[0] == "__main__ ['x'] -8.0 CPU True"


def test_command_line_without_script(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pliant.onnxruntime"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": SOURCES})
    assert done.returncode == 2 and "usage:" in done.stdout


def test_install_and_uninstall(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, importlib.util, pliant.onnxruntime as session_package\n"
        "real = importlib.util.find_spec('onnxruntime') is not None\n"
        "assert not {'onnx', 'onnxruntime', 'ml_dtypes', 'torch'} & set(sys.modules)\n"
        "session_package.install(); session_package.install()\n"
        "import onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state as state\n"
        "assert onnxruntime is session_package and state.Fail is session_package.capi.onnxruntime_pybind11_state.Fail\n"
        "session_package.uninstall(); session_package.uninstall()\n"
        "assert 'onnxruntime' not in sys.modules and 'onnxruntime.capi' not in sys.modules\n"
        "assert (importlib.util.find_spec('onnxruntime') is not None) == real\n"
        "if real:\n"
        "    import onnxruntime\n"
        "    assert onnxruntime is not session_package\n"
        "    session_package.install()\n"
        "    import onnxruntime as installed\n"
        "    assert installed is session_package\n"
        "    session_package.uninstall()\n"
        "    assert sys.modules['onnxruntime'] is onnxruntime\n"
        "print('done')\n"
    )
    assert run(str(program), cwd=tmp_path) == "done\n"


def test_python_packages_of_onnx_runtime(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    program = tmp_path / "program.py"
    program.write_text(
        "import onnxruntime, onnxruntime.datasets\n"
        "print(onnxruntime.get_build_info().split()[0], callable(onnxruntime.datasets.get_example))\n"
    )
    assert run("-m", "pliant.onnxruntime", str(program), cwd=tmp_path) == "Pliant True\n"


def test_unsupported_classes_can_be_imported_but_not_used() -> None:
    from pliant.onnxruntime import LoraAdapter, ModelCompiler, SparseTensor
    from pliant.onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented

    for use in (lambda: SparseTensor.sparse_coo_from_numpy(), lambda: ModelCompiler(), lambda: LoraAdapter()):
        with pytest.raises(NotImplemented, match="is not supported by pliant.onnxruntime"):
            use()
