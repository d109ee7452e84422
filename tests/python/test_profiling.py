"""Tests `Model.profile` and `VirtualMachine.profile`: times and rates of the functions that a run calls."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import relax as rx
from pliant.script import ir as I
from pliant.script import relax as R


@I.ir_module
class Product:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 32), "float32")) -> R.Tensor(("n", 32), "float32"):
        return R.matmul(x, w)


def operands(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((n, 64), "float32"), rng.random((64, 32), "float32")


def flops(profile: pliant.Profile) -> float:
    return sum(call["gflops"] * call["seconds"] * 1e9 for call in profile.calls)


@pytest.mark.parametrize("n", [1, 7, 100])
def test_matmul_flops_follow_the_shape(n: int) -> None:
    profile = pliant.compile(Product).profile(*operands(n), runs=3)
    assert profile.runs == 3
    assert flops(profile) == pytest.approx(3 * 2 * n * 64 * 32)


def test_bytes_count_operands_and_results() -> None:
    profile = pliant.compile(Product).profile(*operands(10), runs=2)
    (product,) = [call for call in profile.calls if call["name"] == "matmul"]
    moved = product["gigabytes"] * product["seconds"] * 1e9
    assert moved == pytest.approx(2 * 4 * (10 * 64 + 64 * 32 + 10 * 32))


def test_inputs_can_be_named_and_a_table_limited() -> None:
    x, w = operands(5)
    profile = pliant.compile(Product).profile(w=w, x=x)
    table = profile.table(top=1)
    assert str(profile).startswith("10 runs") and "GFLOP/s" in table
    assert len(table.splitlines()) <= len(str(profile).splitlines())


def test_a_virtual_machine_profiles_its_functions() -> None:
    vm = rx.VirtualMachine(rx.build(Product))
    profile = vm.profile("main", *operands(4))
    assert profile.runs == 1 and flops(profile) == pytest.approx(2 * 4 * 64 * 32)
    with pytest.raises(KeyError, match="absent"):
        vm.profile("absent")


def test_empty_tensors_can_be_profiled() -> None:
    assert flops(pliant.compile(Product).profile(*operands(0), runs=1)) == 0


def test_wrong_arguments_are_errors_and_leave_the_model_usable() -> None:
    model = pliant.compile(Product)
    x, w = operands(2)
    with pytest.raises(ValueError, match="'runs' must be at least 1, not 0"):
        model.profile(x, w, runs=0)
    with pytest.raises(OverflowError):
        model.profile(x, w, runs=-1)
    with pytest.raises(pliant.PliantError):
        model.profile(x, w[:3])
    with pytest.raises(ValueError, match="timeout"):
        model.profile(x, w, timeout=-1)
    np.testing.assert_allclose(model(x, w).numpy(), x @ w, rtol=1e-4)


def test_events_have_times_tensors_and_source_lines() -> None:
    profile = pliant.compile(Product).profile(*operands(6), runs=3)
    (product,) = [event for event in profile.events if event["name"] == "matmul"]
    assert product["kind"] == "loops" and product["seconds"] > 0 and product["flops"] == 2 * 6 * 64 * 32
    assert product["tensors"][0] == "float32[6, 64]"
    assert "test_profiling.py:" in product["location"]
    starts = [event["start"] for event in profile.events]
    assert all(start >= 0 for start in starts) and all(event["memory"] > 0 for event in profile.events)
    np.testing.assert_allclose(np.asarray(profile.result), np.matmul(*operands(6)), rtol=1e-5)


def test_calls_are_compared_with_the_peak_of_the_machine() -> None:
    profile = pliant.compile(Product).profile(*operands(50))
    (product,) = [call for call in profile.calls if call["name"] == "matmul"]
    peak = pliant._core.machine_peak_gflops()
    assert peak > 0 and product["percent_of_peak"] == pytest.approx(100 * product["gflops"] / peak)
    assert any("test_profiling.py" in text for text in product["locations"])
    assert "% peak" in str(profile) and "test_profiling.py" in str(profile)


def test_profiles_are_exported(tmp_path: Path) -> None:
    profile = pliant.compile(Product).profile(*operands(4), runs=2)
    facts = json.loads(profile.to_json())
    assert facts["runs"] == 2 and facts["calls"] and facts["events"] and facts["peak_gflops"] > 0
    profile.save_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == len(profile.events)
    assert any("test_profiling.py" in span["name"] and span["args"]["flops"] for span in spans)
    assert all(event["args"]["bytes"] > 0 for event in trace["traceEvents"] if event["ph"] == "C")
    assert "<table>" in profile._repr_html_() and "matmul" in profile._repr_html_()
    with pytest.raises(OSError):
        profile.save_trace(tmp_path / "absent" / "trace.json")


def test_a_profile_without_warm_up_runs_once() -> None:
    model = pliant.compile(Product)
    model.profile(*operands(3), runs=1, warm_up=False)
    assert model.stats().runs == 1


def test_events_name_onnx_nodes() -> None:
    from onnx_models import FLOAT, model_of, node

    model = pliant.compile(model_of([node("Relu", "x", "y", name="first layer/relu")], {"x": (FLOAT, ["n"])}, ["y"]))
    profile = model.profile(np.ones(4, np.float32))
    assert any("first layer/relu" in event["location"] and "Relu" in event["location"] for event in profile.events)
