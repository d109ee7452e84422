"""Tests the pages of `docs/` and the README: their Python code runs from top to bottom and prints the output that they show,
their links and those of the other pages at the root lead somewhere, and plots show the numbers of their tables."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from run_documentation_page import run_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
NEEDS_TORCH = DOCS / "serve/torch.md"
"""The page that the tests of the torch front end run, because it needs torch."""
ROOT_PAGES = sorted(ROOT.glob("*.md"))
LINK = re.compile(r"\]\(([\w./-]+\.(?:md|svg))[)#]")


def test_index_links_to_every_page() -> None:
    assert len(PAGES) >= 7
    index = (DOCS / "index.md").read_text()
    for page in PAGES:
        name = page.relative_to(DOCS).as_posix()
        assert name == "index.md" or f"({name})" in index, f"{name} is not in the index"


@pytest.mark.parametrize("page", [*ROOT_PAGES, *PAGES], ids=lambda p: p.stem)
def test_links_lead_to_files(page: Path) -> None:
    """Checks that links in the documentation and in the pages at the root lead to files. `make docs` also checks links to
    headings.
    """
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing, f"{page.name}: {missing}"


@pytest.mark.parametrize("page", [README, *(page for page in PAGES if page != NEEDS_TORCH)], ids=lambda p: p.stem)
def test_pages_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the Python code of the README and of the documentation pages."""
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, monkeypatch, capsys)


def test_plots_of_performance_match_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the plots show the numbers of the tables. `python plots.py`, within `benches`,
    draws them again.
    """
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    plots = importlib.import_module("plots")
    assert (DOCS / "serve/models.svg").read_text() == plots.draw_models()
    assert (DOCS / "serve/kernels.svg").read_text() == plots.draw_kernels()
