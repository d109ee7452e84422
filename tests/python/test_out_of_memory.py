"""Tests compiling and running when the system refuses memory: a result or an error, never the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import sys

import numpy as np

import pliant
import pliant.script
import pliant.tir  # Python does not report a lack of memory reliably while it compiles a module

steps, x = [], "x"
for i in range(30):
    steps += [
        f"a{i} = R.nn.gelu(R.matmul({x}, w))",
        f"b{i} = R.add(R.nn.softmax(R.matmul(a{i}, v)), {x})",
        f"c{i} = R.multiply(b{i}, R.const({1 + i / 1000}, 'float32'))",
        f"d{i} = R.divide(c{i}, R.add(R.sum(R.tanh(c{i}), axis=[1], keepdims=True), R.const(2.0, 'float32')))",
    ]
    x = f"d{i}"
body = "\\n            ".join([*steps, f"R.output({x})"])
source = f'''
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 256), "float32"), v: R.Tensor((256, 64), "float32")):
        with R.dataflow():
            {body}
        return {x}
'''
if sys.argv[1] != "none":
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    limit = now + int(sys.argv[1]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    model = pliant.compile(pliant.script.from_source(source), threads=8)
    y = model(np.ones((1000, 64), "float32"), np.ones((64, 256), "float32"), np.ones((256, 64), "float32"))
    assert y.shape == (1000, 64)
    print("ran")
except (MemoryError, pliant.PliantError) as error:
    assert not isinstance(error, pliant.InternalError), error
    print("refused", type(error).__name__, error)
"""


def outcome(megabytes: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, megabytes], capture_output=True, text=True, check=False, timeout=300, env=os.environ
    )
    assert run.returncode == 0, (megabytes, run.returncode, run.stderr[-2000:])
    assert "panicked" not in run.stderr, (megabytes, run.stderr)
    return run.stdout.strip()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_programs_run_or_raise_at_every_address_space_limit() -> None:
    outcomes = {limit: outcome(str(limit)) for limit in [0, 1, 2, 4, 8, 12, 25, 50, 80, 160, 300, 900]}
    assert all(text.startswith(("ran", "refused")) for text in outcomes.values()), outcomes
    assert outcomes[0].startswith("refused"), outcomes
    assert outcomes[900] == "ran", outcomes
    assert outcome("none") == "ran"
