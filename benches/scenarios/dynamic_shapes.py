"""Scenarios on dynamic shapes: one compilation serves all shapes."""

from __future__ import annotations

import numpy as np

import pliant
from pliant.script import ir as I
from pliant.script import relax as R
from scenarios import Outcome, scenario


@I.ir_module
class Mlp:
    @R.function
    def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", 64), "float32")):
        with R.dataflow():
            y = R.nn.relu(R.matmul(x, w))
            R.output(y)
        return y


@scenario("T4", "one compilation after 10,000 distinct shapes")
def one_compilation() -> Outcome:
    """Scenario: runs a model at 10,000 shapes and counts its compilations."""
    model = pliant.compile(Mlp)
    for n in range(100):
        for k in range(100):
            y = model(np.ones((n, k), "float32"), np.ones((k, 64), "float32"))
            assert y.shape == (n, 64)
    compilations = model.stats().compilations
    return Outcome(
        None if compilations == 1 else False,
        f"{compilations} compilation for 10,000 shapes",
        "the latency of new shapes is not compared with that of repeated ones",
    )
