"""The choice of the code generator: targets, ``PLIANT_TIER``, and optimization in the background."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from exp_tanh_program import PROGRAM

import pliant
from pliant.script import ir as I, relax as R

HAS_LLVM = "llvm" in pliant.build_info()["backends"]


@I.ir_module
class Norm:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), g: R.Tensor((64,), "float32")):
        with R.dataflow():
            y = R.nn.rms_norm(R.nn.gelu(x), g, axes=[-1])
            R.output(y)
        return y


def inputs(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal((n, 64), dtype=np.float32), np.ones(64, np.float32)]


@pytest.mark.parametrize("target", ["auto", "cranelift", "llvm", "cpu"])
def test_all_targets_give_the_same_results(target: str) -> None:
    reference = pliant.compile(Norm, target="cranelift")
    model = pliant.compile(Norm, target=target)
    for n in [0, 1, 2, 33]:
        np.testing.assert_allclose(model(*inputs(n)).numpy(), reference(*inputs(n)).numpy(), rtol=1e-5, atol=1e-6)
    model.wait_optimized()
    for n in [0, 1, 2, 33]:
        np.testing.assert_allclose(model(*inputs(n)).numpy(), reference(*inputs(n)).numpy(), rtol=1e-5, atol=1e-6)


def test_the_tier_names_the_code_generator() -> None:
    assert pliant.compile(Norm, target="cranelift").stats().tier == "cranelift"
    assert pliant.compile(Norm, target="llvm").stats().tier == ("llvm" if HAS_LLVM else "cranelift")


@pytest.mark.skipif(HAS_LLVM, reason="the build contains LLVM")
def test_target_llvm_without_llvm_uses_cranelift_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="target 'llvm' is not built in; .*make llvm"):
        pliant.compile(Norm, target="llvm", verbose=True)


def run_program(body: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PLIANT_TIER"} | variables
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + body], capture_output=True, text=True, check=False, timeout=300, env=environment
    )


@pytest.mark.parametrize("tier", ["cranelift", "auto", ""])
def test_the_environment_variable_selects_the_tier(tier: str) -> None:
    run = run_program("m = pliant.compile(module); m.wait_optimized(); print(m.stats().tier)", PLIANT_TIER=tier)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ("llvm" if HAS_LLVM and tier != "cranelift" else "cranelift")


@pytest.mark.parametrize("tier", ["gcc", "cuda"] + ([] if HAS_LLVM else ["llvm"]))
def test_an_unknown_tier_is_an_error(tier: str) -> None:
    run = run_program("pliant.compile(module)", PLIANT_TIER=tier)
    assert run.returncode == 1
    assert f"PLIANT_TIER is '{tier}', which is not a code generator of this build" in run.stderr


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.11, 0.12, 0.14, 0.2])
def test_the_process_can_exit_while_models_are_optimized(delay: float) -> None:
    run = run_program(
        "import time\n"
        "models = [pliant.compile(module) for _ in range(30)]\n"
        f"time.sleep({delay})\n"
        "print('end')\n"
    )
    assert (run.returncode, run.stdout.strip()) == (0, "end"), run.stderr


def test_vectors_of_any_number_of_lanes() -> None:
    for lanes in [3, 16, 24, 48, 80, 112]:
        func = pliant.script.from_source(f"""
from pliant.script import tir as T

@T.prim_func
def f(a: T.Buffer(({lanes},), "float32"), b: T.Buffer(({lanes},), "float32")):
    for i in T.vectorized({lanes}):
        b[i] = T.exp(a[i])
""")
        x, out = np.linspace(-3, 3, lanes, dtype=np.float32), pliant.nd.array(np.zeros(lanes, np.float32))
        pliant.compile(func, target="llvm")(x, out)
        np.testing.assert_allclose(out.numpy(), np.exp(x), rtol=1e-6)


def test_a_forked_child_runs_and_waits_while_models_are_optimized() -> None:
    run = run_program(
        "models = [pliant.compile(module) for _ in range(30)]\n"
        "import time; time.sleep(0.15)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    models[-1].wait_optimized()\n"
        "    more = pliant.compile(module)\n"
        "    more.wait_optimized()\n"
        "    ok = (more(np.zeros(3, np.float32)).numpy() == 1).all()\n"
        "    os._exit(0 if ok else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert (run.returncode, run.stdout.strip()) == (0, "0"), run.stderr
