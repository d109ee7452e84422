"""Scenarios on security: limits, damaged artifacts, memory protection, untrusted indices, and the project's policies."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from onnx import helper

import pliant
from pliant.frontend.onnx import Limits
from scenarios import Outcome, scenario, yes_or_no
from scenarios.small_onnx_models import F32, I64, mlp, model

ROOT = Path(__file__).resolve().parents[2]


@scenario("T12", "no input ends the process: script text, graphs built by hand, ONNX bytes, artifact bytes, tensors, user passes")
def damaged_models() -> Outcome:
    """Scenario: runs damaged copies of the ONNX test models, and lists the fuzz targets."""
    command = ["cargo", "test", "--package", "pliant", "--test", "suite", "--quiet", "--", "onnx_mutate"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    targets = sorted(path.stem for path in (ROOT / "fuzz" / "fuzz_targets").glob("*.rs"))
    passed = done.returncode == 0
    return Outcome(passed, f"damaged copies of all test models are errors; fuzz targets: {', '.join(targets)}", "" if passed else done.stdout[-200:])


@scenario("S1", "fuzz targets for ONNX bytes, import and run, scripts, artifacts, kernels; a corpus in the repository")
def fuzz_targets() -> Outcome:
    """Scenario: checks that all expected fuzz targets exist."""
    targets = {path.stem for path in (ROOT / "fuzz" / "fuzz_targets").glob("*.rs")}
    expected = {"import", "run", "executable", "kernels", "script", "onnx_grammar"}
    missing = sorted(expected - targets)
    return Outcome(
        None if not missing else False,
        f"targets: {', '.join(sorted(targets))}",
        f"missing: {', '.join(missing)}" if missing else "no targets for DLPack capsules and shape expressions (property tests cover these); no OSS-Fuzz application",
    )


@scenario("S2", "products of dims, strides and offsets are checked; tensors beyond 2**31 elements are correct or refused")
def sizes() -> Outcome:
    """Scenario: requests tensors of impossible sizes, and runs a tensor of more than 2**31 one-byte
    elements.
    """
    from pliant.script import from_source

    source = """
from pliant.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function
    def main(s: R.Shape(["a", "b", "c"])) -> R.Tensor(("a", "b", "c"), "int8"):
        a = T.int64()
        b = T.int64()
        c = T.int64()
        return R.zeros(R.shape([a, b, c]), dtype="int8")
"""
    m = pliant.compile(from_source(source))
    refused = 0
    impossible_shapes = [(2**40, 2**40, 2**40), (2**32, 2**32, 1), (2**62, 4, 1), (2**21, 2**21, 2**21), (-1, 1, 1)]
    for shape in impossible_shapes:
        try:
            m(pliant.runtime.ShapeTuple(shape) if hasattr(pliant.runtime, "ShapeTuple") else shape)
        except (pliant.PliantError, MemoryError, OverflowError, ValueError):
            refused += 1
    shape = (2**11, 2**10, 2**10 + 1)
    large = np.asarray(m(pliant.runtime.ShapeTuple(shape) if hasattr(pliant.runtime, "ShapeTuple") else shape))
    correct = large.shape == shape and not large[-1, -1].any()
    passed = refused == len(impossible_shapes) and correct
    return Outcome(passed, f"{refused} of {len(impossible_shapes)} impossible sizes are refused; {large.size:,} elements in one tensor: {yes_or_no(correct)}", "" if passed else "see measured")


@scenario("S3", "limits on the nodes, bytes, nesting and import time of a model")
def limits() -> Outcome:
    """Scenario: imports a model under limits that it exceeds."""
    data = mlp()
    refused = []
    limits = {"nodes": Limits(nodes=2), "tensor_bytes": Limits(tensor_bytes=100), "seconds": Limits(seconds=1e-9)}
    for name, limit in limits.items():
        try:
            pliant.compile(data, limits=limit)
        except pliant.PliantError:
            refused.append(name)
    passed = len(refused) == len(limits)
    return Outcome(passed, f"refused by {', '.join(refused)}", "" if passed else "a limit was ignored")


@scenario("S4", "artifacts hold no native code, their bytecode is validated, and damage at any byte is an error")
def artifacts() -> Outcome:
    """Scenario: truncates a saved model at about 3,000 lengths, flips random bits in it, and loads
    the results.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.pliant"
        pliant.compile(mlp(8)).save(path)
        data = path.read_bytes()
    tried = loaded = 0
    r = np.random.default_rng(0)
    cuts = [data[:n] for n in range(0, len(data), max(1, len(data) // 3000))]
    flips = []
    for _ in range(2000):
        copy = bytearray(data)
        copy[int(r.integers(len(copy)))] ^= 1 << int(r.integers(8))
        flips.append(bytes(copy))
    for damaged in cuts + flips:
        tried += 1
        try:
            pliant._core.Executable.from_bytes(damaged)
            loaded += 1
        except pliant.PliantError:
            pass
    passed = loaded == 0
    return Outcome(passed, f"{tried} damaged copies of {len(data):,} bytes, {loaded} loaded; fuzz/ mutates sections with valid checksums", "" if passed else "a damaged copy loaded")


@scenario("S5", "no memory is writable and executable at once, and code is freed with its model")
def write_xor_execute() -> Outcome:
    """Scenario: checks that no memory mapping is both writable and executable, while models are
    alive and after they are dropped.
    """
    import gc

    from scenarios.small_onnx_models import executable_mappings

    def writable_and_executable_mappings() -> int:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return sum("w" in line.split()[1] and "x" in line.split()[1] for line in lines)

    pliant.compile(mlp())
    gc.collect()
    before = executable_mappings()
    models = [pliant.compile(mlp(8 * k + 8)) for k in range(20)]
    inside, writable = executable_mappings(), writable_and_executable_mappings()
    del models
    gc.collect()
    after = executable_mappings()
    passed = writable == 0 and after <= before + 1
    return Outcome(None if passed else False, f"{writable} mappings are writable and executable; executable mappings: {before}, {inside} with 20 models, {after} after", "a system that forbids new executable memory is not tested")


@scenario("S6", "indices out of range are errors at run time: Gather, GatherND, GatherElements, Scatter, Slice, TopK")
def indices() -> Outcome:
    """Scenario: runs operators that take indices at values just outside and far outside of their
    range.
    """
    x = np.arange(12, dtype="float32").reshape(3, 4)
    cases = {
        "Gather": (["x", "i"], lambda v: np.array([v]), {}),
        "GatherND": (["x", "i"], lambda v: np.array([[v, 0]]), {}),
        "GatherElements": (["x", "i"], lambda v: np.array([[v, 0, 0, 0]]), {"axis": 0}),
        "ScatterND": (["x", "i", "u"], lambda v: np.array([[v, 0]]), {}),
        "ScatterElements": (["x", "i", "u"], lambda v: np.array([[v, 0, 0, 0]]), {"axis": 0}),
        "OneHot": (["i", "depth", "values"], lambda v: np.array([v]), {}),
    }
    errors, inside = 0, 0
    for name, (operands, make, attributes) in cases.items():
        inputs = {"x": (F32, ["n", "m"]), "i": (I64, [f"k{k}" for k in range(make(0).ndim)]), "u": (F32, ["p"] if name == "ScatterND" else ["p", "q"])}
        inputs = {k: v for k, v in inputs.items() if k in operands}
        weights = {"depth": np.array(3), "values": np.array([0, 1], "float32")} if name == "OneHot" else {}
        m = pliant.compile(model([helper.make_node(name, operands, ["y"], **attributes)], inputs, {"y": (F32, None)}, weights))  # type: ignore[arg-type]
        for v in (0, 2, 3, -4, 2**31, -(2**31), 2**62, -(2**63)):
            feeds = {"x": x, "i": make(v).astype("int64"), "u": np.ones(1 if name == "ScatterND" else (1, 4), "float32")}
            try:
                m.run(None, {k: feeds[k] for k in inputs})
                inside += 1
                assert -3 <= v < 3 or name == "OneHot", f"{name} accepts {v}"
            except pliant.PliantError:
                errors += 1
                assert not -3 <= v < 3, f"{name} refuses {v}"
    return Outcome(True, f"{errors} out-of-range indices are errors, {inside} in range (or of OneHot, which accepts any) are not")


@scenario("S7", "no pickle, no network on import or build, and a SECURITY.md with the threat model")
def no_pickle_or_network() -> Outcome:
    """Scenario: searches the package for pickle and for modules that open network connections."""
    found = []
    for path in (ROOT / "python").rglob("*.py"):
        if re.search(r"^\s*(import|from) (pickle|socket|urllib|http|requests)\b", path.read_text(), re.M):
            found.append(path.name)
    scripts = [path for path in (ROOT / "crates").rglob("build.rs")]
    page = (ROOT / "SECURITY.md").exists()
    code = "import sys, pliant; print(*[m for m in ('pickle', 'socket', 'urllib.request') if m in sys.modules], sep=', ')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    passed = not found and page
    return Outcome(
        None if passed else False,
        f"files that import pickle or network modules: {', '.join(found) or 'none'}; loaded by the import: {loaded or 'none'}; {len(scripts)} build scripts; SECURITY.md: {yes_or_no(page)}",
        "cargo deny and pip-audit need data that cannot be fetched here",
    )


@scenario("S8", "an inventory of unsafe code; Miri, AddressSanitizer, ThreadSanitizer and loom where they can run")
def unsafe_code() -> Outcome:
    """Scenario: counts unsafe blocks per crate, and lists the make targets that check them."""
    counts = {}
    for crate in sorted((ROOT / "crates").iterdir()):
        n = sum(len(re.findall(r"\bunsafe (\{|fn|impl|extern)", p.read_text())) for p in (crate / "src").rglob("*.rs"))
        if n:
            counts[crate.name.removeprefix("pliant-")] = n
    makefile = (ROOT / "Makefile").read_text()
    targets = [t for t in ("asan", "race", "models") if re.search(rf"^{t}:", makefile, re.M)]
    text = ", ".join(f"{name} {n}" for name, n in counts.items())
    return Outcome(None, f"unsafe in src: {text}; make {', '.join(targets)}", "Miri is not part of the toolchain here")
