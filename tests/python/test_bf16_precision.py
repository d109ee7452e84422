"""Tests that `precision="bf16"` rounds constant right operands of matrix products to bfloat16 once, and rounds no other
value."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax


def rounded(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest bfloat16, ties to even."""
    bits = x.astype("float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("uint32").view("float32")


def program(w: np.ndarray, linear: bool, bias: bool) -> pliant.IRModule:
    bb = relax.BlockBuilder()
    k = w.shape[1] if linear else w.shape[0]
    x = relax.Var("x", relax.TensorStructInfo([pliant.tir.Var("n", "int64"), k], "float32"))
    n = w.shape[0] if linear else w.shape[1]
    added = relax.const(np.arange(n, dtype="float32"))
    with bb.function("main", [x]), bb.dataflow():
        if linear:
            y = bb.emit(relax.op.linear(x, relax.const(w), added if bias else None))
        else:
            y = bb.emit(relax.op.matmul(x, relax.const(w)))
            y = bb.emit(relax.op.add(y, added)) if bias else y
        gv = bb.emit_output(relax.op.nn.relu(y))
        bb.emit_func_output(gv)
    return bb.get()


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 8), (33, 20), (300, 130)])
def test_weights_are_rounded_once(linear: bool, bias: bool, k: int, n: int) -> None:
    rng = np.random.default_rng(k)
    w = rng.standard_normal((n, k) if linear else (k, n)).astype("float32")
    module = program(w, linear, bias)
    models = [pliant.compile(module, precision="bf16", exec_mode=mode) for mode in ("bytecode", "compiled")]
    plain = pliant.compile(module)
    for m in (0, 1, 2, 5, 40):
        # Tile registers round left operands, too; rounding does not change these.
        x = rounded(rng.standard_normal((m, k)))
        matrix = rounded(w).T if linear else rounded(w)
        want = np.maximum(x.astype("float64") @ matrix + (np.arange(n) if bias else 0), 0)
        for model in models:
            np.testing.assert_allclose(np.asarray(model(x)), want, rtol=1e-4, atol=1e-3)
        # Close to the float32 result, but not equal.
        np.testing.assert_allclose(np.asarray(plain(x)), want, rtol=0.02, atol=0.02 * np.sqrt(k) * 4)


def test_left_operands_are_rounded_consistently() -> None:
    rng = np.random.default_rng(3)
    w = rng.standard_normal((300, 130)).astype("float32")
    x = rng.standard_normal((40, 300)).astype("float32")
    got = np.asarray(pliant.compile(program(w, False, False), precision="bf16")(x))
    wanted = [np.maximum(a.astype("float64") @ rounded(w), 0) for a in (x, rounded(x))]
    assert any(np.allclose(got, want, rtol=1e-4, atol=1e-3) for want in wanted)


def test_precision_values() -> None:
    w = np.full((8, 8), 1 / 3, "float32")
    x = np.ones((2, 8), "float32")
    module = program(w, False, False)
    exact = np.asarray(pliant.compile(module)(x))
    same = np.asarray(pliant.compile(module, precision="f32")(x))
    other = np.asarray(pliant.compile(module, precision="bf16")(x))
    np.testing.assert_array_equal(same, exact)
    assert not np.array_equal(other, exact)
    # Loops would keep float32.
    with pytest.raises(pliant.PliantError, match="bfloat16 precision needs library kernels, but the setting `kernels` disables them"):
        pliant.compile(module, precision="bf16", kernels="off")
    with pytest.raises(ValueError, match="precision"):
        pliant.compile(module, precision="int3")


def test_saved_programs_keep_their_precision(tmp_path: object) -> None:
    w = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    x = np.ones((3, 64), "float32")
    model = pliant.compile(program(w, False, True), precision="bf16")
    path = f"{tmp_path}/model.plx"
    model.save(path)
    np.testing.assert_array_equal(np.asarray(pliant.load(path)(x)), np.asarray(model(x)))
