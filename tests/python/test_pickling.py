"""Tests pickling and copying of models, modules and functions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import pliant
from pliant.script import ir as I
from pliant.script import relax as R
from pliant.script import tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("double"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((n,), "float32"))
            y = R.add(lv, R.const([0.1], "float32"))
            R.output(y)
        return y


@R.function
def halve(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    with R.dataflow():
        y = R.multiply(x, R.const(0.5, "float32"))
        R.output(y)
    return y


def test_a_pickled_model_gives_equal_results() -> None:
    model = pliant.compile(Module)
    loaded = pickle.loads(pickle.dumps(model))
    assert type(loaded) is pliant.Model and loaded.input_names == model.input_names
    for n in (0, 1, 5):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(loaded(x), model(x))


def test_copies_of_a_model_are_the_model() -> None:
    model = pliant.compile(Module)
    assert copy.copy(model) is model and copy.deepcopy({"m": model})["m"] is model


@pytest.mark.parametrize("node", [Module, halve, Module["double"]], ids=["module", "function", "prim_func"])
def test_pickled_programs_are_equal(node: pliant.IRModule) -> None:
    loaded = pickle.loads(pickle.dumps(node))
    assert type(loaded) is type(node)
    pliant.ir.assert_structural_equal(loaded, node)


def test_damaged_pickles_are_errors() -> None:
    data = bytearray(pickle.dumps(pliant.compile(Module)))
    at = data.index(b"PLIANTEX")
    data[at + 40 : at + 80] = bytes(40)
    with pytest.raises(pliant.ExecutableError):
        pickle.loads(bytes(data))
