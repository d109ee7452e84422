"""Shared fixtures of the Python tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pliant

NODE_TESTS = "onnx/test_conformance.py::test_conformance[node-"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(params=["bytecode", "compiled"])
def exec_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test once per execution mode. During the test, the mode is the default of ``relax.build``."""
    build, mode = pliant.relax.build, str(request.param)
    monkeypatch.setattr(build, "__defaults__", (*build.__defaults__[:-1], mode))
    return mode


@pytest.fixture
def packed() -> Iterator[Callable[[str, Callable[..., Any]], None]]:
    """Provides a function that registers packed functions until the end of the test."""
    names: dict[str, None] = {}

    def register(name: str, func: Callable[..., Any]) -> None:
        pliant.register_func(name, func, override=True)
        names[name] = None

    yield register
    for name in names:
        pliant.registry.remove_global_func(name)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Reports how many of ONNX's node tests pass, with the reports from all processes of a
    parallel run."""
    count = {
        outcome: sum(NODE_TESTS in r.nodeid for r in terminalreporter.stats.get(outcome, []))
        for outcome in ("passed", "failed", "xfailed")
    }
    total = sum(count.values())
    if total:
        excluded = f"{count['xfailed']} are in tests/python/onnx/exclusions.toml"
        terminalreporter.write_line(f"ONNX node tests: {count['passed']} of {total} pass; {excluded}")


@pytest.fixture(autouse=True, scope="session")
def _dumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Makes failing passes write their input modules to a temporary folder of the tests, since all processes on the machine
    share the default folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("dumps")))
        yield
