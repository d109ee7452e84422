"""Runs the notebooks that need no other environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from notebook_cells import NOTEBOOKS, run_notebook

import pliant.onnxruntime


def test_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        assert run_notebook("session.ipynb")["result"].shape == (300, 10)
    finally:
        pliant.onnxruntime.uninstall()


def test_explorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_notebook("explorer.ipynb")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>") and (tmp_path / "trace.json").exists()


def test_all_notebooks_are_tested() -> None:
    # tests/torch runs the notebook of torch, in its own environment.
    assert sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")) == ["explorer.ipynb", "session.ipynb", "torch.ipynb"]
