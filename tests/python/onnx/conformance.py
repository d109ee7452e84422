"""Loads the conformance tests of the package ``onnx``, and the list of the tests that fail."""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
EXCLUSIONS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "exclusions.toml").read_text())["exclude"]
"""The entries of the file, which describes them."""

Data = list[tuple[list[Any], list[Any]]]
"""Inputs with the expected outputs."""


def load() -> Iterator[TestCase]:
    with warnings.catch_warnings():
        # The package computes some of its data with overflow and division by zero.
        warnings.simplefilter("ignore")
        for kind in KINDS:
            yield from sorted(load_model_tests(kind=kind), key=lambda c: c.name)


CASES: dict[tuple[str, str], TestCase] = {(c.kind, c.name): c for c in load()}


def exclusion(kind: str, name: str) -> dict[str, Any] | None:
    """Returns the entry of ``exclusions.toml`` that lists a test, or ``None`` if the test must
    pass.
    """
    for entry in EXCLUSIONS:
        if entry.get("kind", "node") == kind and any(fnmatchcase(name, p) for p in entry["tests"]):
            return entry
    return None


def reason(entry: dict[str, Any]) -> str:
    text: str = entry.get("differs") or entry["reason"]
    return text


def model_and_data(case: TestCase) -> tuple[onnx.ModelProto, Data]:
    if case.model is not None and case.data_sets is not None:
        return case.model, case.data_sets
    return light(case) if case.model_dir is None else from_files(Path(case.model_dir))


def from_files(folder: Path) -> tuple[onnx.ModelProto, Data]:
    """Reads a model and its test data from a folder."""
    model = onnx.load(folder / "model.onnx")
    sets: Data = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [read(f, i.type) for f, i in zip(files(data, "input"), model.graph.input, strict=False)]
        outputs = [read(f, o.type) for f, o in zip(files(data, "output"), model.graph.output, strict=False)]
        sets.append((inputs, outputs))
    return model, sets


def files(folder: Path, what: str) -> list[Path]:
    """Returns the files ``input_0.pb``, ``input_1.pb`` and so on, sorted by number."""
    return sorted(folder.glob(f"{what}_*.pb"), key=lambda p: int(re.sub(r"\D", "", p.stem)))


def read(path: Path, declared: onnx.TypeProto) -> Any:
    data = path.read_bytes()
    if declared.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if declared.HasField("optional_type"):
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))


def light(case: TestCase) -> tuple[onnx.ModelProto, Data]:
    """Loads a well-known network whose nodes create its weights, with the outputs that the package
    ``onnx`` provides.
    """
    path = Path(onnx.__file__).parent.parent / str(case.url)
    model = onnx.load(path)
    given = {t.name for t in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(i) for i in model.graph.input if i.name not in given]
    results = sorted(path.parent.glob(f"{path.stem}_output_*.pb"))
    return model, [(inputs, [read(r, model.graph.output[0].type) for r in results])]
