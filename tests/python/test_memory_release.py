"""Tests that dropping a model returns its memory to the system."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gc

import numpy as np

import pliant
from pliant import relax


def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


def convolutions(channels, size, layers):
    builder = relax.BlockBuilder()
    shape = (4, channels, size, size)
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    weights = np.full((channels, channels, 3, 3), 1e-3, "float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for i in range(layers):
                weight = relax.const(weights * (i + 1))
                value = builder.emit(relax.op.nn.relu(builder.emit(relax.op.nn.conv2d(value, weight, padding=1))))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    model = pliant.compile(builder.get(), threads=8)
    data = np.ones(shape, "float32")
    for _ in range(2):
        model(data)


convolutions(8, 16, 1)
gc.collect()
before = anonymous()
convolutions(64, 80, 6)
gc.collect()
print(anonymous() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_dropped_models_return_their_memory() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 10, run.stdout
