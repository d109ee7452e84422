"""Tests transposes by the library kernel: all orders of dims, data types and sizes, and where the kernel is not used."""

from __future__ import annotations

import itertools

import numpy as np
import pliant
import pytest
from pliant import relax, tir
from pliant.script import ir as I
from pliant.script import relax as R

KERNEL = 'call_kernel("transpose"'


def transposing(rank: int, order: tuple[int, ...], dtype: str) -> pliant.IRModule:
    """Returns a module with a transpose of a tensor with symbolic sizes."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([tir.Var(f"d{i}", "int64") for i in range(rank)], dtype))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.permute_dims(x, order))
        bb.emit_func_output(y)
    return bb.get()


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_all_orders_and_sizes(rank):
    rng = np.random.default_rng(rank)
    sizes = [(2, 3, 37, 41), (1, 70, 3, 33), (4, 0, 5, 2), (1, 1, 1, 1), (3, 100, 2, 65)]
    for order in itertools.permutations(range(rank)):
        model = pliant.compile(transposing(rank, order, "float32"))
        for shape in sizes:
            x = rng.normal(size=shape[:rank]).astype("float32")
            np.testing.assert_array_equal(model(x).numpy(), x.transpose(order))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float64"])
def test_all_element_sizes(dtype):
    x = np.random.default_rng(0).integers(0, 2, (3, 50, 70)).astype(dtype)
    model = pliant.compile(transposing(3, (2, 0, 1), dtype))
    np.testing.assert_array_equal(model(x).numpy(), x.transpose(2, 0, 1))


def test_only_transposes_that_move_the_last_dim_call_the_kernel():
    def lowered(order: tuple[int, ...]) -> str:
        return relax.transform.OffloadKernels()(transposing(len(order), order, "float32")).script()

    assert KERNEL in lowered((0, 2, 3, 1))
    assert KERNEL in lowered((1, 0))
    assert KERNEL not in lowered((0, 2, 1, 3))
    assert KERNEL not in lowered((0, 1))


def test_matmuls_read_transposed_operands_in_place():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32")):
            with R.dataflow():
                y = R.matmul(x, R.permute_dims(w))
                R.output(y)
            return y

    assert KERNEL not in relax.transform.OffloadKernels()(Module).script()
    x, w = (np.random.default_rng(1).normal(size=(n, 20)).astype("float32") for n in (3, 7))
    np.testing.assert_allclose(pliant.compile(Module)(x, w).numpy(), x @ w.T, rtol=1e-5)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_attention_over_positions_of_an_image_is_one_kernel():
    @I.ir_module
    class Module:
        @R.function
        def main(q: R.Tensor(("n", 8, "a"), "float32"), k: R.Tensor(("n", 8, "a"), "float32"), v: R.Tensor(("n", 20, "a"), "float32")):
            with R.dataflow():
                scores = R.matmul(R.permute_dims(q, axes=[0, 2, 1]), k)
                weights = R.permute_dims(R.nn.softmax(scores, axis=-1), axes=[0, 2, 1])
                y = R.matmul(v, weights)
                R.output(y)
            return y

    model = pliant.compile(Module)
    assert [line.split()[1] for line in model.explain().splitlines() if line.split()[0] == "attention"] == ["1"]
    rng = np.random.default_rng(5)
    for n, area in [(1, 1), (2, 63), (1, 300), (0, 5), (2, 0)]:
        q, k, v = (rng.normal(size=(n, c, area)).astype("float32") for c in (8, 8, 20))
        want = v @ softmax(q.transpose(0, 2, 1) @ k).transpose(0, 2, 1) if area else v
        np.testing.assert_allclose(model(q, k, v).numpy(), want, rtol=1e-4, atol=1e-5)
