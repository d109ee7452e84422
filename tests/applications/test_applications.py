"""Runs applications that import onnxruntime with ONNX Runtime and with Pliant, and compares what they print.

The applications are unmodified packages of PyPI that ship their models; the scripts in this folder call them. They need packages of
their own, so these tests are not part of `make test`:

    python -m venv /tmp/applications
    /tmp/applications/bin/pip install -r tests/applications/requirements.txt PLIANT_WHEEL
    /tmp/applications/bin/python -m pytest tests/applications
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
APPLICATIONS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("test_"))


def printed(application: str, *interpreter_options: str) -> Any:
    """Runs an application and returns the JSON that it prints last."""
    command = [sys.executable, *interpreter_options, str(FOLDER / f"{application}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def assert_close(actual: Any, expected: Any, where: str = "") -> None:
    """Compares JSON values: structure and text exactly, numbers within 2 percent of the larger one of 1 and the value."""
    if isinstance(expected, dict):
        assert set(actual) == set(expected), where
        for key in expected:
            assert_close(actual[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), where
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            assert_close(a, e, f"{where}[{i}]")
    elif isinstance(expected, float | int):
        assert actual == pytest.approx(expected, rel=0.02, abs=0.02), where
    else:
        assert actual == expected, where


@pytest.mark.parametrize("application", APPLICATIONS)
def test_application_agrees_with_onnx_runtime(application: str) -> None:
    assert_close(printed(application, "-m", "pliant.onnxruntime"), printed(application))
