"""Tests that the package's annotations are correct: mypy finds no errors, and typed programs see the expected types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def mypy(*args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *args], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_mypy_accepts_the_package() -> None:
    assert "Success: no issues found" in mypy("python/pliant")


def test_mypy_accepts_a_typed_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import pliant\n"
        "from pliant import te\n"
        "def build(func: pliant.ir.PrimFunc) -> pliant.Model:\n"
        "    return pliant.compile(func)\n"
        "def wrong() -> pliant.Model:\n"
        "    return pliant.compile(3)\n"
    )
    report = mypy(str(program))
    assert "program.py:6" in report and "arg-type" in report and "Found 1 error" in report, report
