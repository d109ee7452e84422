"""Writes tables of benchmarks into ``docs/internals/measurements.md``, between two comments, the first of
which names the script."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "internals" / "measurements.md"
END = "<!-- end -->\n"


def write_table(script: str, text: str) -> None:
    """Replaces the previous output of `script`."""
    begin = f"<!-- made by {script} -->\n"
    before, rest = PAGE.read_text().split(begin)
    PAGE.write_text(before + begin + text + END + rest.split(END, 1)[1])
