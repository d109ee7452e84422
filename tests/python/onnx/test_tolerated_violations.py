"""Tests models that violate the ONNX specification in ways that ONNX Runtime tolerates: a warning, or an error if the import is
strict."""

from __future__ import annotations

import numpy as np
import pytest
from make_model_files import CORPUS, TOLERATED

import pliant
from pliant.frontend.onnx import check, from_onnx


@pytest.mark.parametrize("name", TOLERATED)
def test_a_violation_is_a_warning_unless_the_import_is_strict(name: str) -> None:
    model, words = CORPUS[name](), TOLERATED[name]
    with pytest.warns(UserWarning) as warnings:
        from_onnx(model)
    assert any(words in str(w.message) for w in warnings)
    report = check(model)
    assert report.ok and "warning: " in str(report) and words in str(report)
    with pytest.raises(pliant.CompileError) as error:
        from_onnx(model, strict=True)
    assert words in str(error.value)
    strict = check(model, strict=True)
    assert not strict.ok and words in str(strict)


@pytest.mark.filterwarnings("ignore")
def test_a_negative_dim_is_a_symbol() -> None:
    model = pliant.compile(CORPUS["negative_dim_of_an_input"]())
    for n in (0, 1, 5):
        np.testing.assert_array_equal(model(np.full((n, 4), -1, np.float32)), np.zeros((n, 4), np.float32))


@pytest.mark.filterwarnings("ignore")
def test_the_inferred_shape_is_used() -> None:
    model = pliant.compile(CORPUS["output_of_another_rank"]())
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(model(x), x.reshape(3, 1, 4))


@pytest.mark.filterwarnings("ignore")
def test_signals_with_two_dims_are_real() -> None:
    model = pliant.compile(CORPUS["stft_of_signals_with_two_dims"]())
    x = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(x, 8, axis=1)[:, ::4]
    expected = np.fft.rfft(frames, axis=-1)
    np.testing.assert_allclose(np.asarray(model(x)).view(np.complex64)[..., 0], expected, atol=1e-5)


def test_the_option_must_be_a_bool() -> None:
    with pytest.raises(TypeError, match="strict: expected True or False, got 1"):
        from_onnx(CORPUS["elementwise"](), strict=1)  # type: ignore[arg-type]
