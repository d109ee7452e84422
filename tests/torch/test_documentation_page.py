"""Runs the documentation page of the front end."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_documentation_page import run_page

PAGE = Path(__file__).resolve().parents[2] / "docs/serve/torch.md"


def test_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(PAGE, tmp_path, monkeypatch, capsys)
