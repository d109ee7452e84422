"""Tests the execution providers of sessions: names, options, warnings and the fallback to the CPU."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest
from session_models import add_model

CPU = "CPUExecutionProvider"
MODEL = add_model()

# The arguments, and parts of the warnings and of the printed text.
PROVIDERS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "none": ({}, [], ""),
    "empty": ({"providers": []}, [], ""),
    "cpu": ({"providers": [CPU]}, [], ""),
    "tuple": ({"providers": (CPU,)}, [], ""),
    "options in pairs": ({"providers": [(CPU, {"a": 1})]}, [], ""),
    "options": ({"providers": [CPU], "provider_options": [{"a": 1}]}, [], ""),
    "duplicate": ({"providers": [CPU, CPU]}, [f"Duplicate provider '{CPU}' encountered, ignoring."], ""),
    "cuda": ({"providers": ["CUDAExecutionProvider", CPU]}, ["'CUDAExecutionProvider' is not in available provider names"], ""),
    "only cuda": ({"providers": ["CUDAExecutionProvider"]}, ["'CUDAExecutionProvider' is not in available"], ""),
    "unknown": ({"providers": ["Foo"]}, ["'Foo' is not in available"], "EP Error Unknown Provider Type: Foo when using ['Foo']"),
    "number": ({"providers": [3]}, [], "'providers' values must be either strings or (string, dict) tuples."),
    "lengths": ({"providers": [CPU], "provider_options": []}, [], "should be the same length if both are given."),
    "no dict": ({"providers": [CPU], "provider_options": [3]}, [], "'provider_options' values must be dicts."),
    "mixed": ({"providers": [(CPU, {})], "provider_options": [{}]}, [], "Only string values for 'providers' are supported"),
}


@pytest.mark.parametrize("case", PROVIDERS)
def test_providers(ort: ModuleType, capsys: pytest.CaptureFixture[str], case: str) -> None:
    arguments, expected_warnings, printed = PROVIDERS[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session = ort.InferenceSession(MODEL, **arguments)
    assert (session.get_providers(), session.get_provider_options()) == ([CPU], {CPU: {}})
    assert len(caught) == len(expected_warnings)
    for warning, part in zip(caught, expected_warnings, strict=True):
        assert part in str(warning.message) and warning.filename == __file__ if ort.__name__ != "onnxruntime" else True
    out = capsys.readouterr().out
    assert printed in out and bool(printed) == ("Falling back to ['CPUExecutionProvider'] and retrying." in out)


def test_without_fallback(ort: ModuleType) -> None:
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Unknown Provider Type: Foo"):
        ort.InferenceSession(MODEL, providers=["Foo"], enable_fallback=0)


def test_set_providers(session: Any) -> None:
    session.disable_fallback()
    session.enable_fallback()
    session.set_providers([CPU])
    assert session.get_providers() == [CPU]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Unknown Provider Type: Foo"):
        session.set_providers(["Foo"])


def test_lists_of_providers(ort: ModuleType) -> None:
    assert CPU in ort.get_available_providers()
    assert "CUDAExecutionProvider" in ort.get_all_providers() and ort.get_all_providers()[-1] == CPU
    assert ort.get_device() == "CPU"
