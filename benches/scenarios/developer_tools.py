"""Scenarios on working with models: tensor exchange, type checking, inspection, interruption, saved artifacts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import pliant
from scenarios import Outcome, scenario, yes_or_no
from scenarios.small_onnx_models import mlp, write

ROOT = Path(__file__).resolve().parents[2]


@scenario("T19", "tensors are exchanged with other libraries without copies, including strided and read-only ones, and outlive their model")
def interop() -> Outcome:
    """Scenario: exchanges tensors with NumPy through DLPack and the buffer protocol, after the
    model was dropped.
    """
    m = pliant.compile(mlp())
    x = np.ones((2, 3, 32), "float32")
    out = m.run(None, {"x": x})[0]
    view = np.from_dlpack(out) if not isinstance(out, np.ndarray) else out
    array = np.asarray(out)
    same = view.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    read_only = x.copy()
    read_only.flags.writeable = False
    strided = np.ones((4, 3, 64), "float32")[::2, :, ::2]
    equal = all(np.array_equal(np.asarray(m.run(None, {"x": a})[0]), array) for a in (read_only, strided))
    expected = array.copy()
    del m, out
    for _ in range(10):
        pliant.compile(mlp()).run(None, {"x": x * 2})
    alive = np.array_equal(view, expected)
    round_trip = np.from_dlpack(pliant.nd.from_dlpack(x))
    zero_copy = round_trip.__array_interface__["data"][0] == x.__array_interface__["data"][0]
    passed = same and equal and alive and zero_copy
    return Outcome(
        None if passed else False,
        f"same address: {yes_or_no(same and zero_copy)}; read-only and strided inputs: {yes_or_no(equal)}; results outlive the model: {yes_or_no(alive)}",
        "torch, jax and pyarrow are not installed here",
    )


SAMPLE = '''
import numpy as np
import pliant

def serve(path: str) -> np.ndarray:
    model = pliant.compile(path, threads=2)
    names: list[str] = [i.name for i in model.inputs]
    outputs = model.run(None, {names[0]: np.ones((2, 3), "float32")})
    reveal_type(model)
    reveal_type(model.inputs)
    return np.asarray(outputs[0])
'''


@scenario("T26", "mypy --strict accepts a sample application, and nothing public is Any")
def types() -> Outcome:
    """Scenario: checks a sample application with mypy in strict mode."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.py"
        path.write_text(SAMPLE)
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", f"{folder}/cache", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    revealed = [line.split("Revealed type is")[1].strip() for line in done.stdout.splitlines() if "Revealed" in line]
    passed = done.returncode == 0 and all("Any" not in r for r in revealed)
    return Outcome(None if passed else False, f"mypy accepts it; types: {', '.join(revealed)}", "pyright is not run" if passed else done.stdout[:200])


@scenario("T20", "intermediate values of a model can be inspected, and the first node that differs from a reference is found")
def intermediate_values() -> Outcome:
    """Scenario: runs ``pliant diff`` against ONNX Runtime."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(mlp(), folder)
        command = [str(Path(sys.executable).with_name("pliant")), "diff", str(path), "--against", "onnxruntime", "--shape", "batch=2,seq=3"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = " ".join((done.stdout + done.stderr).split())
    passed = done.returncode == 0
    return Outcome(
        None if passed else False,
        f"pliant diff prints: {text[:120]}",
        "Model.run has no capture= for values of nodes, and no trap for NaN and Inf",
    )


@scenario("T24", "an artifact runs on CPUs with fewer instruction set extensions, with correct results")
def portable() -> Outcome:
    """Scenario: saves a model, runs it under each instruction set that kernels can be restricted
    to, and compares the results.
    """
    x = np.linspace(-1, 1, 2 * 5 * 32, dtype="float32").reshape(2, 5, 32)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.pliant"
        model = pliant.compile(mlp())
        want = np.asarray(model.run(None, {"x": x})[0])
        model.save(path)
        code = f"import numpy as np, pliant\nx = np.linspace(-1, 1, 320, dtype='float32').reshape(2, 5, 32)\n"
        code += f"np.save({folder!r} + '/y.npy', np.asarray(pliant.load({path!r})(x)))\n"
        differences = {}
        for isa in ("portable", "avx2"):
            environment = os.environ | {"PLIANT_ISA": isa}
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                return Outcome(False, "", f"{isa}: {done.stderr.splitlines()[-1][:200]}")
            got = np.load(f"{folder}/y.npy")
            differences[isa] = float(np.max(np.abs(got - want)))
    passed = all(d < 1e-5 for d in differences.values())
    text = ", ".join(f"{isa} {d:.1e}" for isa, d in differences.items())
    return Outcome(None if passed else False, f"largest differences: {text}", "generated code is not run under an emulator of an older CPU")


@scenario("T27", "a run or a compilation stops quickly when it is interrupted or out of time")
def stopping() -> Outcome:
    """Scenario: sends Ctrl-C to a long run, and runs and compiles with short time limits."""
    from pliant.script import from_source

    source = """
from pliant.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @T.prim_func
    def spin(a: T.handle, o: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        O = T.match_buffer(o, (n,), "float32")
        for i, j in T.grid(1000000, n):
            O[j] = O[j] + A[j]
"""
    m = pliant.compile(from_source(source))
    a, o = np.ones(100000, "float32"), np.zeros(100000, "float32")
    sent: list[float] = []

    def interrupt() -> None:
        time.sleep(0.5)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        m(a, o)
        late = float("inf")
    except KeyboardInterrupt:
        late = time.perf_counter() - sent[0]
    thread.join()
    start = time.perf_counter()
    try:
        m(a, o, timeout=0.5)
        over = float("inf")
    except TimeoutError:
        over = time.perf_counter() - start - 0.5
    try:
        pliant.compile(mlp(), seconds=1e-9)
        limited = False
    except pliant.PliantError:
        limited = True
    passed = late < 0.1 and over < 0.1 and limited
    return Outcome(
        None if passed else False,
        f"Ctrl-C ends a run after {late * 1e3:.0f} ms, a time limit {over * 1e3:.1f} ms after it; a compilation out of time is an error: {yes_or_no(limited)}",
        "there is no run_async",
    )


@scenario("T28", "the code of all documentation runs, and passes in Python are deterministic")
def documentation() -> Outcome:
    """Scenario: runs the test that executes the code of the documentation pages."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/python/test_documentation_pages.py", "tests/python/test_pass_errors.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return Outcome(done.returncode == 0, "tests/python/test_documentation_pages.py and test_pass_errors.py pass" if done.returncode == 0 else "", done.stdout[-200:] if done.returncode else "")


@scenario("T14", "the package imports quickly and reports the supported opsets")
def install() -> Outcome:
    """Scenario: times ``import pliant`` in fresh processes."""
    code = "import time; t = time.perf_counter(); import pliant; print(time.perf_counter() - t)"
    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    query = hasattr(pliant, "supported_opsets")
    best = min(times)
    return Outcome(
        None if best < 0.15 else False,
        f"import takes {best * 1e3:.0f} ms",
        ("" if query else "there is no supported_opsets(); ") + "other Python versions, systems and wheels cannot be tested here",
    )
