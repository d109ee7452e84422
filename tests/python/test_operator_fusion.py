"""Tests that fused programs compute the same as unfused ones, and that results have their own memory."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.relax import transform
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T

FUSION = ["FuseOps", "FuseTIR"]


@I.ir_module
class Mixed:
    @R.function
    def main(
        x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 3), "float32"), b: R.Tensor((3,), "float32")
    ) -> R.Object:
        with R.dataflow():
            product = R.matmul(x, w)
            act = R.nn.gelu(R.add(product, b))
            total = R.multiply(R.sum(R.multiply(act, act), axis=[1]), R.const(0.5, "float32"))
            turned = R.permute_dims(R.exp(act))
            soft = R.multiply(R.nn.softmax(act, axis=-1), R.const(2.0, "float32"))
            R.output(total, turned, soft)
        return (total, turned, soft)


@I.ir_module
class View:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n * 2",), "float32"):
        n = T.int64()
        y = R.reshape(x, R.shape([n * 2]))
        return y


@I.ir_module
class Bounded:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"tir_var_upper_bound": {"n": 8}})
        with R.dataflow():
            y = R.matmul(x, R.matmul(R.permute_dims(x), x))
            z = R.exp(y)
            R.output(z)
        return z


@pytest.mark.parametrize("n", [0, 1, 2, 33])
@pytest.mark.parametrize("m", [0, 1, 7])
def test_fused_and_unfused_agree(n: int, m: int) -> None:
    rng = np.random.default_rng(n * 10 + m)
    args = [rng.standard_normal(s).astype("float32") for s in [(n, m), (m, 3), (3,)]]
    fused = pliant.compile(Mixed)(*args)
    apart = pliant.compile(Mixed, disabled_passes=FUSION)(*args)
    for a, b in zip(fused, apart, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6, atol=1e-6)


def test_fusion_groups_and_opt_level_zero() -> None:
    legal = transform.AnnotateTIROpPattern()(transform.LegalizeOps()(Mixed))
    assert "fused_matmul_add_gelu" in transform.FuseOps()(legal).script()
    assert "fused_" not in transform.FuseOps(fuse_opt_level=0)(legal).script()
    script = transform.FuseTIR()(transform.FuseOps()(legal)).script()
    assert "R.call_tir(cls.fused_matmul_add_gelu" in script and "Primitive" not in script


def test_excluded_operators_are_not_fused() -> None:
    script = transform.LegalizeOps(skip_ops=["relax.matmul"])(Mixed).script()
    assert "R.matmul(x, w" in script and "cls.gelu" in script
    with pytest.raises(ValueError, match="there is no operator 'relax.mat'"):
        transform.LegalizeOps(skip_ops=["relax.mat"])


def test_a_view_of_an_argument_is_copied() -> None:
    x = np.arange(6, dtype="float32").reshape(3, 2)
    result = pliant.compile(View)(x)
    out = np.asarray(result)
    assert out.shape == (6,) and not np.shares_memory(out, x)
    np.testing.assert_array_equal(out, x.reshape(-1))


def test_sizes_beyond_their_bound_are_rejected() -> None:
    model = pliant.compile(Bounded)
    for n in (0, 1, 8):
        x = np.full((n, 4), 0.1, dtype="float32")
        np.testing.assert_allclose(np.asarray(model(x)), np.exp(x @ (x.T @ x)), rtol=1e-5)
    with pytest.raises(Exception, match="storage|bound|bytes"):
        model(np.zeros((900, 4), dtype="float32"))
