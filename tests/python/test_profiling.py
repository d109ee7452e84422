"""Tests `Model.profile` and `VirtualMachine.profile`: times and rates of the functions that a run calls."""

from __future__ import annotations

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
