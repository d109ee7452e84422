"""Scenarios on shape expressions, and on embedding in Rust."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pliant
from pliant import tir
from pliant.arith import Analyzer
from scenarios import Outcome, scenario, yes_or_no
from scenarios.small_onnx_models import F32, model

ROOT = Path(__file__).resolve().parents[2]


@scenario("T15", "shape expressions: bounds that other provers cannot decide, deep stacks of convolutions, simplify(e) equals e")
def shape_language() -> Outcome:
    """Scenario: proves bounds of sizes, compiles fifty strided convolutions, and checks simplified
    random expressions at random sizes.
    """
    import numpy as np
    from onnx import helper

    a = Analyzer()
    b, h = tir.Var("b", "int64"), tir.Var("h", "int64")
    a.update(b, pliant.arith.ConstIntBound(1, 2**31 - 2))
    proved = a.can_prove(b < 2**31 - 1) and a.can_prove_equal((16 * h) // 16, h)

    weights = {"w": np.full((1, 1, 3, 3), 1 / 9, "float32")}
    nodes = []
    for k in range(50):
        strides = [2, 2] if k % 10 == 9 else [1, 1]
        nodes.append(helper.make_node("Conv", [f"x{k}", "w"], [f"x{k + 1}"], pads=[1, 1, 1, 1], strides=strides))
    data = model(nodes, {"x0": (F32, ["n", 1, "h", "w0"])}, {"x50": (F32, None)}, weights)
    start = time.perf_counter()
    m = pliant.compile(data)
    seconds = time.perf_counter() - start
    y = np.asarray(m.run(None, {"x0": np.ones((1, 1, 65, 33), "float32")})[0])

    r, wrong = random.Random(0), 0
    names = [tir.Var(n, "int64") for n in "xyz"]
    simplifier = Analyzer()

    def expression(depth: int) -> tuple[object, str]:
        if depth == 0 or r.random() < 0.2:
            if r.random() < 0.4:
                c = r.randint(-9, 9)
                return tir.const(c, "int64"), f"({c})"
            k = r.randrange(3)
            return names[k], "xyz"[k]
        (p, s), (q, t) = expression(depth - 1), expression(depth - 1)
        kind = r.choice(["+", "-", "*", "//", "%", "min", "max"])
        c = r.randint(1, 9)
        expressions = {
            "+": (p + q, f"({s} + {t})"),  # type: ignore[operator]
            "-": (p - q, f"({s} - {t})"),  # type: ignore[operator]
            "*": (p * c, f"({s} * {c})"),  # type: ignore[operator]
            "//": (p // c, f"({s} // {c})"),  # type: ignore[operator]
            "%": (p % c, f"({s} % {c})"),  # type: ignore[operator]
            "min": (tir.min(p, q), f"min({s}, {t})"),  # type: ignore[arg-type]
            "max": (tir.max(p, q), f"max({s}, {t})"),  # type: ignore[arg-type]
        }
        return expressions[kind]

    for _ in range(500):
        e, text = expression(4)
        simple = simplifier.simplify(e)
        scope = {"T": tir, "min": min, "max": max}
        for _ in range(4):
            at = {n: r.randint(-50, 50) for n in "xyz"}
            shown = str(simple).replace("T.min", "min").replace("T.max", "max").replace("T.int64", "int")
            wrong += eval(shown, scope | at) != eval(text, at)
    passed = proved and y.shape == (1, 1, 3, 2) and wrong == 0 and seconds < 5
    return Outcome(
        None if passed else False,
        f"bounds proved: {yes_or_no(proved)}; fifty convolutions compile in {seconds * 1e3:.0f} ms; {wrong} of 2,000 simplified values differ",
        "the original snippets for jax, tract and torch are not run",
    )


@scenario("T22", "a Rust program with Pliant builds offline, without a C++ toolchain and without LLVM")
def from_rust() -> Outcome:
    """Scenario: builds the examples of the Rust crate without network access."""
    examples = sorted(path.stem for path in (ROOT / "crates/pliant/examples").glob("*.rs"))
    if not examples:
        return Outcome(False, "", "crates/pliant has no example")
    command = ["cargo", "build", "--offline", "--quiet", "--package", "pliant", "--examples"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    lock = (ROOT / "Cargo.lock").read_text()
    no_llvm = 'name = "llvm-sys"' not in lock
    passed = done.returncode == 0 and no_llvm
    return Outcome(
        None if passed else False,
        f"the examples ({', '.join(examples)}) build offline: {yes_or_no(done.returncode == 0)}; no LLVM: {yes_or_no(no_llvm)}",
        "wasm and musl targets and the binary size budget are not tested" if passed else done.stderr[-200:],
    )
