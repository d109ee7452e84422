"""Tests the memory limit that the environment variable ``PLIANT_MEMORY_LIMIT`` sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx_models import model_of, node

import pliant


@pytest.mark.parametrize("text", ["abc", "0", "-5", "4X", "1.5G"])
def test_invalid_memory_limits_are_reported(text: str) -> None:
    program = "import pliant; pliant.runtime.empty((4,))"
    environment = os.environ | {"PLIANT_MEMORY_LIMIT": text}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode != 0
    assert f"PLIANT_MEMORY_LIMIT is '{text}', but must be a positive number of bytes" in run.stderr


def add_model(folder: Path) -> tuple[onnx.ModelProto, Path]:
    """Returns a model that adds a constant, and the path of the file to which it is to be saved."""
    model = model_of([node("Add", "x w", "y")], {"x": (TensorProto.FLOAT, ["n", 4])}, ["y"])
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "w"))
    return model, folder / "add.onnx"


def test_an_invalid_memory_limit_is_not_blamed_on_the_model(tmp_path: Path) -> None:
    model, path = add_model(tmp_path)
    onnx.save(model, path)
    program = f"import pliant; pliant.compile({str(path)!r})"
    environment = os.environ | {"PLIANT_MEMORY_LIMIT": "lots"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert run.returncode != 0
    assert "PLIANT_MEMORY_LIMIT is 'lots', but must be" in run.stderr
    assert "unset it" in run.stderr and "damaged" not in run.stderr


def test_damaged_weights_suggest_a_new_export(tmp_path: Path) -> None:
    model, path = add_model(tmp_path)
    onnx.save_model(model, path, save_as_external_data=True, location="w.data", size_threshold=0)
    (tmp_path / "w.data").write_bytes(b"1234")
    with pytest.raises(pliant.PliantError, match="does not belong to this model file, or one of them is damaged"):
        pliant.compile(path)
    (tmp_path / "w.data").unlink()
    with pytest.raises(pliant.PliantError, match="must be next to the model file"):
        pliant.compile(path)
    model, path = add_model(tmp_path)
    model.graph.initializer[0].raw_data += b"1234"
    onnx.save(model, path)
    with pytest.raises(pliant.PliantError, match="the file is damaged: export the model again"):
        pliant.compile(path)


def test_memory_limit_units() -> None:
    program = "import pliant; pliant.runtime.empty((4,)); print(pliant.runtime.memory_limit())"
    for text, limit in (("4G", 4 << 30), ("512 MiB", 512 << 20), ("123456789", 123456789)):
        environment = os.environ | {"PLIANT_MEMORY_LIMIT": text}
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
        assert said.stdout.strip() == str(limit)
