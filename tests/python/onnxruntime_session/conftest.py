"""Fixtures of the tests of `pliant.onnxruntime`.

Most tests take `ort`, which is this package and, if it is installed, ONNX Runtime itself: so the tables of expected behavior are
checked against their model, too.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest
from session_models import add_model

import pliant.onnxruntime


@pytest.fixture(params=["pliant", "onnxruntime"])
def ort(request: pytest.FixtureRequest) -> ModuleType:
    """The package under test."""
    if request.param == "pliant":
        return pliant.onnxruntime
    runtime = pytest.importorskip("onnxruntime")
    if not runtime.__version__.startswith("1.32."):
        pytest.skip("the tables state the behavior of ONNX Runtime 1.32")
    runtime.set_default_logger_severity(4)
    return runtime


@pytest.fixture
def state(ort: ModuleType) -> ModuleType:
    """The module of exceptions."""
    return importlib.import_module(f"{ort.__name__}.capi.onnxruntime_pybind11_state")


@pytest.fixture
def session(ort: ModuleType) -> Any:
    """A session of the model of `add_model`."""
    return ort.InferenceSession(add_model())
