"""Runs the conformance tests of the package ``onnx``: every node test with all inputs passed at run time, and the models in
the package. Failures are listed in ``exclusions.toml`` with their reason, and must continue to fail.

``-k test_resize`` runs the tests of that name. The summary at the end counts the tests that pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx
import pytest
from conformance import CASES, EXCLUSIONS, KINDS, exclusion, model_and_data, reason
from onnx.backend.test.runner import Runner

import pliant
from pliant import onnx_backend

# Some cases use opsets older than the tested ones; the importer warns about each of them.
pytestmark = pytest.mark.filterwarnings("ignore:opset . is older")


# Takes minutes in a build without optimization; PLIANT_SLOW=1 runs it.
SLOW = {("real", "test_vgg19")}


def parameters() -> Iterator[Any]:
    for kind, name in CASES:
        if (kind, name) in SLOW and not os.environ.get("PLIANT_SLOW"):
            continue
        entry = exclusion(kind, name)
        marks = [] if entry is None else [expected(entry)]
        yield pytest.param(kind, name, marks=marks, id=f"{kind}-{name}")


def expected(entry: dict[str, Any]) -> Any:
    strict = not entry.get("chance", False)
    return pytest.mark.xfail(strict=strict, raises=failure(entry), reason=reason(entry))


def failure(entry: dict[str, Any]) -> tuple[type[Exception], ...]:
    """Returns the exceptions with which a listed test must fail. Unsupported models must be refused
    at compile time; only entries with `differs` may fail in another way.
    """
    if "differs" in entry:
        return (AssertionError, pliant.PliantError)
    return (pliant.UnsupportedError, pliant.CompileError)


@pytest.mark.parametrize(("kind", "name"), list(parameters()))
def test_conformance(kind: str, name: str) -> None:
    case = CASES[kind, name]
    model, data = model_and_data(case)
    prepared = onnx_backend.prepare(model)
    for inputs, want in data:
        got = prepared.run([array_of(i) for i in inputs])
        wanted, given = [array_of(w) for w in want], list(got)
        assert sequence_structure(wanted) == sequence_structure(given)
        Runner.assert_similar_outputs(flat(wanted), flat(given), case.rtol, case.atol)


def sequence_structure(value: Any) -> Any:
    """Returns the nested structure of a value: a list for each sequence, and ``None`` for anything
    else.
    """
    return [sequence_structure(v) for v in value] if isinstance(value, list | tuple) else None


def flat(value: Any) -> list[Any]:
    """Returns the arrays of a value as a flat list, including the arrays in nested sequences, since the test runner of ``onnx``
    cannot compare sequences that contain scalars.
    """
    return [a for v in value for a in flat(v)] if isinstance(value, list | tuple) else [value]


def array_of(value: Any) -> Any:
    """Returns the array of a value, which is an array already or a tensor of the file format."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def test_every_exclusion_names_a_test() -> None:
    for entry in EXCLUSIONS:
        assert set(entry) <= {"kind", "tests", "reason", "differs", "chance"}, entry
        assert reason(entry), entry
        names = [n for kind, n in CASES if kind == entry.get("kind", "node")]
        for pattern in entry["tests"]:
            assert any(fnmatchcase(n, pattern) for n in names), f"{pattern} is the name of no test"


def test_all_tests_of_the_package_are_collected() -> None:
    """Checks that the loader finds tests; with an empty list, all other tests would pass."""
    count = {kind: sum(k == kind for k, _ in CASES) for kind in KINDS}
    assert count["node"] >= 1884 and count["simple"] >= 20 and count["real"] == 9, count


def test_the_backend_runs_nodes_and_models() -> None:
    assert onnx_backend.supports_device("CPU") and not onnx_backend.supports_device("CUDA:0")
    x = np.array([-1.0, 2.0], np.float32)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    np.testing.assert_array_equal(onnx_backend.run_node(node, [x])[0], [0.0, 2.0])
    model = CASES["node", "test_abs"].model
    assert onnx_backend.is_compatible(model) and not onnx_backend.is_compatible(model, "CUDA")
    assert onnx_backend.run_model(model, [np.full((3, 4, 5), -2, np.float32)])[0].max() == 2
    rep = onnx_backend.prepare(model)
    assert rep.run({"x": np.full((3, 4, 5), -3, np.float32)})[0].min() == 3
    with pytest.raises(ValueError, match="no input 'z'"):
        rep.run({"z": x})
    with pytest.raises(ValueError, match="2 inputs are passed, but the model takes 1"):
        rep.run([x, x])
    with pytest.raises(ValueError, match="CUDA"):
        onnx_backend.prepare(model, "CUDA")
