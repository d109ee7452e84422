"""Compares recurrent layers between the library kernel and generated loops."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax
from pliant.testing import interpret

from onnx_models import model_of, node

#: Operator, its gates, and the attribute that makes another cell of it.
CELLS = {"lstm": ("lstm", 4, {}), "gru": ("gru", 3, {}), "linear_gru": ("gru", 3, {"linear_before_reset": True}), "rnn": ("rnn", 1, {})}
ONNX = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}
DIRECTIONS = ("forward", "reverse", "bidirectional")


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.5).astype("float32")


def weights(cell: str, sides: int, inputs: int, hidden: int) -> dict[str, np.ndarray]:
    """Draws weights, biases and peepholes. The recurrent weights are small, so that differences do
    not grow with the steps.
    """
    rng = np.random.default_rng(inputs * 100 + hidden)
    gates = CELLS[cell][1] * hidden
    out = {"w": draw(rng, sides, gates, inputs), "r": draw(rng, sides, gates, hidden) / np.float32(hidden**0.5), "b": draw(rng, sides, 2 * gates)}
    return {**out, "p": draw(rng, sides, 3 * hidden)} if cell == "lstm" else out


def layer(cell: str, inputs: int, hidden: int, *, direction: str = "forward", full: bool, layout: int = 0, **attrs: Any) -> pliant.IRModule:
    """Returns a recurrent layer with unknown numbers of steps and sequences. A full layer has all
    operands.
    """
    op, _, own = CELLS[cell]
    sides = 2 if direction == "bidirectional" else 1
    const = {k: relax.const(v) for k, v in weights(cell, sides, inputs, hidden).items()}
    s, n = pliant.tir.Var("s", "int64"), pliant.tir.Var("n", "int64")
    info = relax.TensorStructInfo
    x = relax.Var("x", info([n, s, inputs] if layout else [s, n, inputs], "float32"))
    state = [n, sides, hidden] if layout else [sides, n, hidden]
    lengths = relax.Var("lengths", info([n], "int32"))
    states = [relax.Var(name, info(state, "float32")) for name in ("h", "c")][: 2 if cell == "lstm" else 1]
    params, args = [x], [x, const["w"], const["r"]]
    if full:
        params += [lengths, *states]
        args += [const["b"], lengths, *states] + ([const["p"]] if cell == "lstm" else [])
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            y = bb.emit_output(getattr(relax.op.nn, op)(*args, direction=direction, layout=layout, **own, **attrs))
        bb.emit_func_output(y)
    return bb.get()


def feed(cell: str, inputs: int, hidden: int, steps: int, batch: int, *, sides: int, full: bool, layout: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(steps * 10 + batch)
    out = [draw(rng, batch, steps, inputs) if layout else draw(rng, steps, batch, inputs)]
    if full:
        out.append(rng.integers(0, steps + 1, batch).astype("int32"))
        shape = (batch, sides, hidden) if layout else (sides, batch, hidden)
        out += [draw(rng, *shape) for _ in range(2 if cell == "lstm" else 1)]
    return out


def results(value: Any) -> list[np.ndarray]:
    return [np.asarray(v) for v in value]


def close(got: Any, want: Any, tolerance: float = 2e-5) -> None:
    got, want = results(got), results(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("cell", CELLS)
def test_kernels_agree_with_loops(cell: str, direction: str, full: bool) -> None:
    sides = 2 if direction == "bidirectional" else 1
    for inputs, hidden, layout in ((3, 5, 0), (20, 33, 1), (1, 16, 0)):
        module = layer(cell, inputs, hidden, direction=direction, full=full, layout=layout)
        loops = pliant.compile(module, kernels="off")
        models = [pliant.compile(module, exec_mode=mode) for mode in ("bytecode", "compiled")]
        for steps, batch in [(0, 2), (1, 1), (5, 0), (7, 1), (4, 2), (3, 3), (2, 9), (33, 4)]:
            given = feed(cell, inputs, hidden, steps, batch, sides=sides, full=full, layout=layout)
            want = loops(*given)
            for model in models:
                close(model(*given), want)
            if steps * batch < 9 and hidden < 9:
                close([v.numpy() for v in interpret(module, *given)], want)
                packed = relax.transform.OffloadKernels()(module)
                close([v.numpy() for v in interpret(packed, *given)], want)


def calls_the_kernel(module: pliant.IRModule) -> bool:
    return 'call_kernel("recurrent"' in relax.transform.OffloadKernels()(module).script()


@pytest.mark.parametrize("cell", CELLS)
def test_onnx_layers_are_kernel_calls(cell: str) -> None:
    op, _, flags = CELLS[cell]
    own = {k: int(v) for k, v in flags.items()}
    inputs, hidden = 7, 18
    names = "X W R B lens h c P" if cell == "lstm" else "X W R B lens h"
    outputs = "Y H C" if cell == "lstm" else "Y H"
    const = {k.upper(): v for k, v in weights(cell, 2, inputs, hidden).items()}
    sizes = {"X": ["s", "n", inputs], "lens": (6, ["n"]), "h": [2, "n", hidden]}
    if cell == "lstm":
        sizes["c"] = [2, "n", hidden]
    made = model_of(
        [node(ONNX[op], names, outputs, hidden_size=hidden, direction="bidirectional", **own)], sizes, outputs.split(), const
    )
    on, off = pliant.compile(made), pliant.compile(made, kernels="off")
    assert calls_the_kernel(pliant.frontend.onnx.from_onnx(made))
    for steps, batch in [(0, 1), (1, 1), (6, 5), (3, 0), (9, 2)]:
        given = feed(cell, inputs, hidden, steps, batch, sides=2, full=True)
        close(on(*given), off(*given))


def test_omitted_onnx_operands() -> None:
    const = {k.upper(): v for k, v in weights("lstm", 1, 3, 5).items()}
    made = node("LSTM", "X W R B lens h c P", "Y H C", hidden_size=5)
    made.input[:] = ["X", "W", "R", "", "", "h", "c", "P"]
    model = model_of([made], {"X": ["s", "n", 3], "h": [1, "n", 5], "c": [1, "n", 5]}, ["Y", "C"], const)
    assert calls_the_kernel(pliant.frontend.onnx.from_onnx(model))
    x, _, h, c = feed("lstm", 3, 5, 6, 2, sides=1, full=True)
    close(pliant.compile(model)(x, h, c), pliant.compile(model, kernels="off")(x, h, c))


def test_many_steps_and_many_sequences() -> None:
    for cell in CELLS:
        module = layer(cell, 40, 130, direction="bidirectional", full=True)
        on, off = pliant.compile(module), pliant.compile(module, kernels="off")
        for steps, batch in [(300, 1), (2, 130), (40, 9)]:
            given = feed(cell, 40, 130, steps, batch, sides=2, full=True)
            close(on(*given), off(*given), 1e-4)


@pytest.mark.parametrize(
    ("cell", "attrs"),
    [
        ("lstm", {"input_forget": True}),
        ("lstm", {"clip": 0.25}),
        ("lstm", {"activations": ["Sigmoid", "Tanh", "Relu"]}),
        ("gru", {"activations": ["HardSigmoid", "Tanh"]}),
        ("rnn", {"activations": ["Relu"]}),
    ],
)
def test_other_cells_stay_loops(cell: str, attrs: dict[str, Any]) -> None:
    module = layer(cell, 3, 5, full=True, **attrs)
    assert not calls_the_kernel(module)
    given = feed(cell, 3, 5, 6, 3, sides=1, full=True)
    close(pliant.compile(module)(*given), pliant.compile(module, kernels="off")(*given), 1e-6)


def test_activation_spellings() -> None:
    assert calls_the_kernel(layer("lstm", 3, 5, full=False, activations=["sigmoid", "TANH", "Tanh"]))


def test_invalid_sequence_lengths_are_reported() -> None:
    module = layer("lstm", 3, 5, full=True)
    for length in (-1, 5):
        given = feed("lstm", 3, 5, 4, 2, sides=1, full=True)
        given[1][1] = length
        told = [pytest.raises(IndexError, match=f"the sequence length {length} is out of range for 4 steps") for _ in range(2)]
        for kernels, expected in zip(("on", "off"), told, strict=True):
            model = pliant.compile(module, kernels=kernels)
            with expected:
                model(*given)


def test_nan_stays_in_its_sequence() -> None:
    for cell in CELLS:
        module = layer(cell, 3, 20, full=False)
        (x,) = feed(cell, 3, 20, 5, 4, sides=1, full=False)
        x[2, 1, 0], x[1, 2, 1], x[3, 3, 2] = np.nan, np.inf, -np.inf
        close(pliant.compile(module)(x), pliant.compile(module, kernels="off")(x))


def test_a_saved_program_has_packed_weights(tmp_path: Path) -> None:
    module = layer("lstm", 6, 20, direction="bidirectional", full=True)
    model = pliant.compile(module)
    model.save(tmp_path / "m.pliant")
    given = feed("lstm", 6, 20, 5, 3, sides=2, full=True)
    close(pliant.load(tmp_path / "m.pliant")(*given), model(*given), 0)


FORCED = """
import sys
sys.path[:0] = sys.argv[1:]
import pliant
from test_recurrent_kernels import CELLS, close, feed, layer
try:
    for cell in CELLS:
        module = layer(cell, 20, 70, direction="bidirectional", full=True)
        on, off = pliant.compile(module), pliant.compile(module, kernels="off")
        for steps, batch in ((1, 1), (9, 7)):
            given = feed(cell, 20, 70, steps, batch, sides=2, full=True)
            close(on(*given), off(*given), 1e-4)
    print("right")
except pliant.error.CompileError as error:
    print(error)
"""


@pytest.mark.parametrize("isa", ["amx", "avx512", "avx2", "neon", "portable"])
def test_all_instruction_sets_agree(isa: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FORCED)
    done = subprocess.run(
        [sys.executable, str(program), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PLIANT_ISA": isa},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n" or "which this CPU does not support" in done.stdout


#: A plain layer of two steps of one sequence, with one input and one unit.
CALL = {
    "x": "A",
    "w": "W",
    "r": "W",
    "bias": "B",
    "y": "O",
    "last_h": "H",
    "cell": '"rnn"',
}


def written(tmp_path: Path, args: dict[str, str], name: str = "recurrent") -> pliant.Model:
    """Returns a program whose script calls the kernel."""
    text = "".join(f", {key}={value}" for key, value in args.items())
    path = tmp_path / "call.py"
    path.write_text(f"""
from pliant.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def f(
        A: T.Buffer((2, 1, 1), "float32"), W: T.Buffer((64,), "float32"), o: T.handle, s: T.int64
    ):
        O = T.match_buffer(o, (2, 1, 1, 1), "float32")
        with T.block("b"):
            B = T.decl_buffer((16,), "float32")
            L = T.decl_buffer((1,), "int64")
            H = T.decl_buffer((1, 1, 1), "float32")
            D = T.decl_buffer((2, 1, 1), "float64")
            S = T.decl_buffer((s,), "float32")
            for i in range(16):
                B[i] = T.float32(0)
            L[0] = T.int64(9)
            T.evaluate(T.call_kernel("{name}"{text}))

    @R.function
    def main(a: R.Tensor((2, 1, 1), "float32"), w: R.Tensor((64,), "float32")) -> R.Tensor((2, 1, 1, 1), "float32"):
        r = R.call_tir(Module.f, (a, w), out_sinfo=R.Tensor((2, 1, 1, 1), "float32"), tir_vars=R.shape([64]))
        return r
""")
    return pliant.compile(path)


INPUTS = np.ones((2, 1, 1), "float32"), np.full(64, 0.5, "float32")


def test_explicit_kernel_call(tmp_path: Path) -> None:
    first = np.tanh(0.5)
    want = [first, np.tanh(0.5 + 0.5 * first)]
    got = np.asarray(written(tmp_path, CALL)(*INPUTS))
    np.testing.assert_allclose(got.reshape(-1), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": "B"}, r"operand 'x' has 1 dims, expected 3 \(steps, batch, input\)"),
        ({"x": "D"}, "operand 'x' is float64, expected float32"),
        ({"w": "B"}, "input_weights is 16, expected 64"),
        ({"r": "S", "bias": "S"}, "biases is 64, expected 16"),
        ({"last_h": "O"}, r"operand 'last_h' has 4 dims, expected 3"),
        ({"initial_h": "H"}, "operand 'last_h' is a result, but shares memory with operand 'initial_h'"),
        ({"peepholes": "W"}, "operand 'peepholes' has 1 dims, expected 2"),
        ({"last_c": "H"}, "operand 'last_h' is a result, but shares memory with operand 'last_c'"),
        ({"cell": '"lstm"'}, "operand 'last_c' is missing"),
        ({"lengths": "L"}, "does not support the shapes, strides or data types of its arguments"),
    ],
)
def test_run_time_checks_name_the_operand(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    model = written(tmp_path, {**CALL, **changes})
    with pytest.raises(pliant.error.PliantError, match=message):
        model(*INPUTS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"z": "A"}, "kernel recurrent has no operand or attribute 'z'"),
        ({"x": "1"}, "operand 'x' of kernel recurrent must be a buffer"),
        ({"x": "None"}, "operand 'x' of kernel recurrent is missing"),
        ({"cell": '"other"'}, "attribute 'cell' of kernel recurrent must be one of lstm, gru, linear_gru, rnn"),
        ({"cell": "s"}, "attribute 'cell' of kernel recurrent must be one of"),
        ({"reverse": "1"}, "attribute 'reverse' of kernel recurrent must be True or False"),
    ],
)
def test_the_parser_checks_names_and_attributes(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(pliant.error.PliantError, match=message):
        written(tmp_path, {**CALL, **changes})


def test_unknown_kernels_and_missing_attributes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(pliant.error.PliantError, match="no kernel is called 'other'"):
        written(tmp_path, CALL, "other")
    with pytest.raises(pliant.error.PliantError, match="attribute 'cell' of kernel recurrent is missing"):
        written(tmp_path, {k: v for k, v in CALL.items() if k != "cell"})
