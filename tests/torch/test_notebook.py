"""Runs the notebook of torch."""

from __future__ import annotations

from notebook_cells import run_notebook


def test_torch() -> None:
    namespace = run_notebook("torch.ipynb")
    assert namespace["model"].stats().compilations == 1
