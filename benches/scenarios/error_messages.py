"""Scenarios on errors: messages that name the mistake, relations between inputs, and no output from correct runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
from onnx import helper

import pliant
from pliant.script import from_source
from scenarios import Outcome, scenario
from scenarios.small_onnx_models import F32, conv_net, mlp, model

TWO_INPUTS = """
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(ids: R.Tensor(("batch", "seq"), "int64"), mask: R.Tensor(("batch", "seq"), "float32"), table: R.Tensor((100, 8), "float32")):
        with R.dataflow():
            e = R.take(table, ids, axis=0)
            m = R.sum(mask, axis=1)
            R.output(e, m)
        return (e, m)
"""


def feeds(batch: int = 2, seq: int = 3) -> dict[str, np.ndarray]:
    """Returns correct inputs of the test program."""
    return {
        "ids": np.zeros((batch, seq), "int64"),
        "mask": np.ones((batch, seq), "float32"),
        "table": np.ones((100, 8), "float32"),
    }


def mistakes() -> dict[str, tuple[Callable[[], object], list[str]]]:
    """Returns thirty user mistakes: a call with the mistake, and the words that its error message
    must contain.
    """
    two_inputs = pliant.compile(from_source(TWO_INPUTS))
    onnx_model = pliant.compile(mlp())
    image = pliant.compile(conv_net())

    def call(**changed: object) -> Callable[[], object]:
        arguments = feeds() | changed
        return lambda: two_inputs(*[arguments[name] for name in ("ids", "mask", "table")])

    def run(m: pliant.Model, arguments: object) -> Callable[[], object]:
        return lambda: m.run(None, arguments)

    x = np.ones((2, 3, 32), "float32")
    ones = np.ones
    return {
        "wrong rank": (call(ids=np.zeros(3, "int64")), ["ids"]),
        "wrong dtype": (call(ids=ones((2, 3), "float32")), ["ids", "int64"]),
        "wrong dtype of another": (call(mask=ones((2, 3), "float64")), ["mask", "float32"]),
        "seq differs between inputs": (call(mask=ones((2, 4), "float32")), ["mask", "seq"]),
        "batch differs between inputs": (call(mask=ones((5, 3), "float32")), ["mask", "batch"]),
        "a constant dim differs": (call(table=ones((99, 8), "float32")), ["table", "100"]),
        "an index out of range": (call(ids=np.full((2, 3), 100)), ["index"]),
        "a negative index out of range": (call(ids=np.full((2, 3), -101)), ["index"]),
        "too few arguments": (lambda: two_inputs(feeds()["ids"]), ["argument"]),
        "too many arguments": (lambda: two_inputs(*feeds().values(), 1), ["argument"]),
        "an argument of another kind": (call(ids="text"), ["ids"]),
        "None for a tensor": (call(ids=None), ["ids"]),
        "a list of numbers": (call(ids=[[1, 2, 3]]), ["ids"]),
        "an array of objects": (call(ids=np.array([[None]])), ["ids"]),
        "ONNX: a missing input": (run(onnx_model, {}), ["x"]),
        "ONNX: an unknown input": (run(onnx_model, {"x": x, "y": x}), ["y"]),
        "ONNX: wrong rank": (run(onnx_model, {"x": x[0]}), ["x"]),
        "ONNX: wrong dtype": (run(onnx_model, {"x": x.astype("float64")}), ["x", "float32"]),
        "ONNX: a constant dim differs": (run(onnx_model, {"x": ones((2, 3, 31), "float32")}), ["x", "32"]),
        "ONNX: feeds that are not a dict": (run(onnx_model, [x]), []),
        "ONNX: an unknown output": (lambda: onnx_model.run(["z"], {"x": x}), ["z"]),
        "ONNX: three channels expected": (run(image, {"x": ones((1, 4, 8, 8), "float32")}), ["x", "3"]),
        "a missing file": (lambda: pliant.compile("/nowhere/model.onnx"), ["/nowhere/model.onnx"]),
        "bytes that are not a model": (lambda: pliant.compile(b"nonsense"), []),
        "an unknown target": (lambda: pliant.compile(from_source(TWO_INPUTS), target="gpu9"), ["gpu9"]),
        "an unknown option": (lambda: pliant.compile(from_source(TWO_INPUTS), nonsense=1), ["nonsense"]),
        "threads below one": (lambda: pliant.compile(from_source(TWO_INPUTS), threads=-1), ["threads"]),
        "a file that is not a saved program": (lambda: pliant.load(__file__), []),
        "an unknown operator": (lambda: from_source(TWO_INPUTS.replace("R.sum", "R.summ")), ["summ"]),
        "sizes that do not fit in script": (
            lambda: from_source(TWO_INPUTS.replace("m = R.sum(mask, axis=1)", "m = R.matmul(table, table)")),
            ["8", "100"],
        ),
    }


@scenario("T10", "thirty mistakes: a typed exception of at most ten lines that names the input and the symbol")
def error_messages() -> Outcome:
    """Scenario: makes each of thirty mistakes and checks the error messages."""
    bad = []
    cases = mistakes()
    for name, (mistake, words) in cases.items():
        try:
            mistake()
            bad.append(f"{name}: no error")
        except (pliant.PliantError, TypeError, ValueError, FileNotFoundError, OSError) as error:
            text = str(error)
            missing = [word for word in words if word not in text]
            if missing or len(text.splitlines()) > 10 or "panick" in text or ".cpp" in text or ".rs:" in text:
                bad.append(f"{name}: {type(error).__name__}: {' '.join(text.split())[:120]}")
    good = len(cases) - len(bad)
    return Outcome(not bad, f"{good} of {len(cases)} mistakes have such a message", "; ".join(bad))


@scenario("T29", "a correct run prints nothing to stdout and stderr")
def silence() -> Outcome:
    """Scenario: compiles and runs models in a separate process, which must print nothing."""
    code = """
import numpy as np, pliant
from scenarios.small_onnx_models import mlp, conv_net
m = pliant.compile(mlp())
for n in (0, 1, 5, 3):
    m.run(None, {"x": np.ones((n, 3, 32), "float32")})
c = pliant.compile(conv_net())
for n in (5, 1, 30):
    c.run(None, {"x": np.ones((1, 3, n, n), "float32")})
"""
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True)
    printed = done.stdout + done.stderr
    return Outcome(not printed, f"{len(printed)} characters printed", printed[:100])


@scenario("T25", "every declared relation between inputs is checked when a model is called")
def input_relations() -> Outcome:
    """Scenario: breaks the relations between inputs of a saved and loaded model one by one, and
    times the checks of a call.
    """
    import tempfile
    import timeit

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.pliant"
        pliant.compile(from_source(TWO_INPUTS)).save(path)
        loaded = pliant.load(path)
    broken = [
        {"ids": np.zeros((2, 4), "int64")},
        {"ids": np.zeros((3, 3), "int64")},
        {"mask": np.ones((2, 3), "float16")},
        {"table": np.ones((100, 9), "float32")},
    ]
    accepted = []
    for change in broken:
        try:
            loaded(*(feeds() | change).values())
            accepted.append(str(change))
        except pliant.PliantError:
            pass
    strided = np.ones((4, 6), "float32")[::2, ::2]
    e, m = loaded(feeds()["ids"], strided, feeds()["table"])
    assert np.asarray(m).tolist() == [3.0, 3.0] and np.asarray(e).shape == (2, 3, 8)
    identity = [helper.make_node("Identity", ["x"], ["y"])]
    small = pliant.compile(model(identity, {"x": (F32, ["n"])}, {"y": (F32, ["n"])}))
    one = np.ones(1, "float32")
    call = min(timeit.repeat(lambda: small(one), number=2000, repeat=5)) / 2000 * 1e6
    return Outcome(
        None if not accepted else False,
        f"{len(broken) - len(accepted)} of {len(broken)} broken relations are refused by a loaded model; a call of one input takes {call:.1f} us in all",
        "; ".join(accepted) or "the checks are not timed separately; ranges and divisibility are in tests/python/test_onnx_shapes.py",
    )
