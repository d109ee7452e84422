"""The example ``examples/train_text.py`` at a small size."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "train_text.py"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_text", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "train_text", module)
    spec.loader.exec_module(module)
    return module


def test_the_loss_decreases_and_the_weights_are_saved(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = tmp_path / "weights.safetensors"
    losses = example.main(["--steps", "30", "--hidden", "16", "--weights", str(weights)])
    assert len(losses) == 30
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.3
    assert weights.stat().st_size > 1000
    output = capsys.readouterr().out
    assert "compiled once" in output and "Pliant " in output
