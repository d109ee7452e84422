"""Reads and writes the tables in ``docs/internals/measurements/`` that benchmark scripts generate.

On its page, a table lies between a comment with the name of its script and the line ``<!-- end -->``. Exactly one page of the
folder contains the comment of a script.
"""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "docs" / "internals" / "measurements"
END = "<!-- end -->\n"


def _split_page(script: str) -> tuple[Path, str, str, str]:
    """Finds the page with the table of `script`. Returns its path, the text up to the table, the
    table, and the text from the end marker on.
    """
    begin = f"<!-- made by {script} -->\n"
    pages = [page for page in sorted(PAGES.glob("*.md")) if begin in page.read_text()]
    if len(pages) != 1:
        raise SystemExit(f"{len(pages)} pages in {PAGES} have the marker {begin.strip()}; it must be on one")
    before, rest = pages[0].read_text().split(begin)
    text, after = rest.split(END, 1)
    return pages[0], before + begin, text, END + after


def write_table(script: str, text: str) -> None:
    """Replaces the generated table of `script` in its documentation page."""
    page, before, _, after = _split_page(script)
    page.write_text(before + text + after)


def read_rows(script: str) -> list[list[str]]:
    """Returns the cells of each row in the generated table of `script`, including header and
    separator rows.
    """
    _, _, text, _ = _split_page(script)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
