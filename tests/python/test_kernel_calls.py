"""Tests ``R.call_kernel``: library kernels called from graph functions, in scripts and from builders."""

from __future__ import annotations

import numpy as np
import pliant
import pytest
from pliant import relax, tir
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Pooling:
    @R.function
    def main(x: R.Tensor(("n", "h", "w", 3), "float32")):
        n, h, w = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            y = R.call_kernel(
                "pool",
                x=x,
                kind="max",
                kernel_shape=[1, 1, 2],
                strides=[1, 1, 2],
                axes={"x": [0, 3, -1, 1, 2], "out": [0, 3, -1, 1, 2]},
                out_sinfo=R.Tensor((n, h, w // 2, 3), "float32"),
            )
            R.output(y)
        return y


def test_runs_at_every_size() -> None:
    model = pliant.compile(Pooling)
    for n, h, w in [(0, 3, 4), (1, 1, 2), (2, 5, 8), (3, 2, 7)]:
        x = np.random.default_rng(w).normal(size=(n, h, w, 3)).astype("float32")
        pairs = x[:, :, : w // 2 * 2].reshape(n, h, w // 2, 2, 3)
        np.testing.assert_array_equal(model(x).numpy(), pairs.max(axis=3))


def test_prints_and_parses() -> None:
    text = Pooling.script()
    assert 'R.call_kernel("pool", x=x, axes=' in text
    assert pliant.script.from_source(text).script() == text


def test_wrong_sizes_are_run_time_errors() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32")):
            n, m = T.int64(), T.int64()
            with R.dataflow():
                y = R.call_kernel("transpose", x=x, axes={"x": [1, 0]}, out_sinfo=R.Tensor((n, n), "float32"))
                R.output(y)
            return y

    model = pliant.compile(Module)
    x = np.arange(9, dtype="float32").reshape(3, 3)
    np.testing.assert_array_equal(model(x).numpy(), x.T)
    with pytest.raises(pliant.ShapeError, match=r"kernel transpose: operand 'out' has size 4 in dim elements, but another operand has size 6"):
        model(np.zeros((2, 3), "float32"))


def test_builder_emits_the_same_call() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, m], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            info = relax.TensorStructInfo([m, n], "float32")
            y = bb.emit_output(relax.op.call_kernel("transpose", x=x, axes={"x": [1, 0]}, out_sinfo=info))
        bb.emit_func_output(y)
    value = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(pliant.compile(bb.get())(value).numpy(), value.T)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "transposition"}, "no kernel is called 'transposition'"),
        ({"size": 3}, "kernel transpose has no operand or attribute 'size'"),
        ({"axes": {"y": [1, 0]}}, "the argument 'axes' names the operand 'y', which kernel transpose does not have"),
        ({"axes": {"x": "NC"}}, "a list of integers"),
        ({"x": None}, "operand 'x' of kernel transpose is missing"),
        ({"out": "x"}, "operand 'out' of kernel transpose is a result, so it cannot be passed; out_sinfo gives the types"),
        ({"out_sinfo": relax.ShapeStructInfo([2])}, "result out of the kernel is a tensor"),
    ],
)
def test_wrong_arguments_are_builder_errors(arguments: dict, message: str) -> None:
    x = relax.Var("x", relax.TensorStructInfo([2, 3], "float32"))
    info = relax.TensorStructInfo([3, 2], "float32")
    given = {"name": "transpose", "x": x, "axes": {"x": [1, 0]}, "out_sinfo": info, **arguments}
    if given.get("out") == "x":
        given["out"] = x
    with pytest.raises((pliant.PliantError, ValueError, TypeError), match=message):
        relax.op.call_kernel(given.pop("name"), **given)
