"""Tests that each hostile file fails with an error that states what is wrong, and with no other exception."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_model_files import ATTACKS, TESTS, files

import pliant
from pliant.frontend.onnx import Limits, check, from_onnx


@pytest.mark.parametrize("name", ATTACKS)
def test_malicious_files_fail_with_an_error(name: str) -> None:
    path, words = TESTS / "attacks" / f"{name}.onnx", ATTACKS[name][1]
    with pytest.raises((pliant.CompileError, pliant.UnsupportedError)) as told:
        from_onnx(path)
    assert words in str(told.value), told.value
    assert len(str(told.value)) < 4000
    # The report contains the same message, or that the file is not a model.
    try:
        report = check(path)
    except pliant.CompileError as error:
        assert words in str(error)
    else:
        assert not report.ok and words in str(report)


def test_limits_can_be_set() -> None:
    path = TESTS / "corpus" / "onnx" / "elementwise.onnx"
    for limits, words in (
        (Limits(file_bytes=10), "but the limit is 10"),
        (Limits(decoded_bytes=100), "more than 100 bytes"),
        (Limits(nodes=2), "has 3 nodes"),
        (Limits(tensor_bytes=3), "the tensor has 4 bytes"),
        (Limits(seconds=0), "longer than the limit of 0 seconds"),
    ):
        with pytest.raises(pliant.CompileError, match=words):
            from_onnx(path, limits=limits)
    nested = TESTS / "corpus" / "onnx" / "branches.onnx"
    with pytest.raises(pliant.CompileError, match="nested more than 0 deep"):
        from_onnx(nested, limits=Limits(depth=0))
    assert from_onnx(nested, limits=Limits(depth=1, seconds=60)) is not None


def test_files_equal_those_of_the_script() -> None:
    made = files()
    kept = {path for folder in ("attacks", "corpus/onnx") for path in (TESTS / folder).glob("*")}
    assert kept == set(made), "run tests/python/onnx/make_model_files.py"
    for path, data in made.items():
        assert Path(path).read_bytes() == data, f"{path.name}: run tests/python/onnx/make_model_files.py"
