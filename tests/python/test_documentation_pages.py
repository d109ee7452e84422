"""Tests the pages of `docs/` and the README: their Python code runs from top to bottom and prints the output that they show,
their links and those of the other pages at the root lead somewhere, and plots show the numbers of their tables."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
ROOT_PAGES = sorted(ROOT.glob("*.md"))
LINK = re.compile(r"\]\(([\w./-]+\.(?:md|svg))[)#]")
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda p: p.stem)
def test_pages_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the Python code of the README and of the documentation pages. A text block after a block of Python is its
    expected output; a block without one may print anything.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "__page__", type(sys)("__page__"))
    scope = vars(sys.modules["__page__"])
    text = page.read_text()
    printed = ""
    for block in BLOCK.finditer(text):
        kind, code = block.groups()
        line = text[: block.start()].count("\n") + 1
        if kind == "text":
            assert code.strip() == printed.strip(), f"{page.name}:{line}"
            continue
        # Decorators of scripts read their own source, so each block is a file with the line numbers
        # of the page.
        file = tmp_path / f"{page.stem}_{line}.py"
        file.write_text("\n" * line + code)
        scope["__file__"] = str(file)
        exec(compile(file.read_text(), str(file), "exec"), scope)
        printed = capsys.readouterr().out


def test_plots_of_performance_match_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the plots show the numbers of the tables. `python plots.py`, within `benches`,
    draws them again.
    """
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    plots = importlib.import_module("plots")
    assert (DOCS / "serve/models.svg").read_text() == plots.draw_models()
    assert (DOCS / "serve/kernels.svg").read_text() == plots.draw_kernels()
