"""Tests that the embedding of real sentences by all-MiniLM-L6-v2, compiled once, agrees with a float64 reference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "embed_sentences.py"


def embed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the example program without a terminal."""
    command = [sys.executable, str(EXAMPLE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_sentences_are_embedded_with_one_compilation() -> None:
    done = embed()
    assert done.returncode == 0, done.stderr
    assert "10 runs, 10 shapes, 1 compilation" in done.stdout
    assert "Bread." in done.stdout and "Fresh bread." in done.stdout
    assert done.stderr == "", "the progress bar is for terminals"


def test_user_supplied_sentences(tmp_path: Path) -> None:
    sentences = tmp_path / "mine.txt"
    sentences.write_text("One sentence.\n\nAnother sentence.\n" + "word " * 400 + "\n", encoding="utf-8")
    done = embed(str(sentences))
    assert done.returncode == 0, done.stderr
    assert "1 compilation" in done.stdout


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_empty_files_are_rejected(tmp_path: Path, text: str) -> None:
    sentences = tmp_path / "empty.txt"
    sentences.write_text(text, encoding="utf-8")
    done = embed(str(sentences))
    assert done.returncode == 2
    assert "holds no sentence" in done.stderr
