"""Compares convolutions and recurrent layers with non-constant weights between library kernels and generated loops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import relax
from test_matmul_kernels import everywhere, kernels_in
from test_recurrent_kernels import CELLS, DIRECTIONS, calls_the_kernel, close, feed, weights

Attrs = dict[str, object]

#: Shapes of weights, channels of the images, attributes.
CONVOLUTIONS: dict[str, tuple[list[int], int, Attrs]] = {
    "line": ([5, 3, 4], 3, {"strides": 2, "padding": [1, 2]}),
    "plane": ([20, 3, 3, 3], 3, {"padding": 1}),
    "wide": ([70, 18, 1, 2], 18, {"dilation": [1, 2]}),
    "turned for constants": ([64, 64, 3, 3], 64, {"padding": 1}),
    "volume": ([6, 4, 2, 3, 2], 4, {"strides": [1, 2, 1], "padding": [1, 0, 1, 0, 1, 1]}),
    "groups": ([12, 5, 3, 2], 15, {"groups": 3}),
    "groups that share panels": ([20, 3, 3, 3], 15, {"groups": 5, "padding": 1}),
    "channels": ([70, 1, 3, 3], 70, {"groups": 70, "padding": 1}),
    "filters first in memory last": ([3, 3, 5, 66], 5, {"kernel_layout": "HWIO", "data_layout": "NHWC", "padding": 1}),
    "channels last": ([9, 5, 2, 2], 5, {"data_layout": "NHWC", "strides": 2}),
}
TRANSPOSED: dict[str, tuple[list[int], int, Attrs]] = {
    "even": ([6, 9, 2, 2], 6, {"strides": 2}),
    "odd": ([8, 3, 3, 3], 8, {"strides": 2, "padding": 1, "output_padding": 1}),
    "groups": ([8, 5, 3, 2], 8, {"strides": [3, 2], "groups": 2}),
    "channels": ([12, 1, 4, 4], 12, {"strides": 2, "padding": 1, "groups": 12}),
    "line": ([3, 68, 7], 3, {"strides": 3, "padding": [2, 1], "output_padding": 2}),
    "volume": ([4, 6, 2, 3, 2], 4, {"strides": [2, 1, 2]}),
}
CASES = {**{f"conv {k}": (v, "") for k, v in CONVOLUTIONS.items()}, **{f"transpose {k}": (v, "_transpose") for k, v in TRANSPOSED.items()}}


def convolution(name: str, finished: bool) -> tuple[pliant.IRModule, list[tuple[np.ndarray, ...]]]:
    """Returns a convolution of images of any size, with a bias and an activation if `finished`, and
    its operands.
    """
    (w_shape, channels, attrs), kind = CASES[name]
    dims, last = len(w_shape) - 2, attrs.get("data_layout") == "NHWC"
    groups = int(str(attrs.get("groups", 1)))
    filters = w_shape[-1] if "kernel_layout" in attrs else w_shape[1] * groups if kind else w_shape[0]
    sizes = [pliant.tir.Var(s, "int64") for s in "dhw"[3 - dims :]]
    shape = [pliant.tir.Var("n", "int64"), *([*sizes, channels] if last else [channels, *sizes])]
    b_shape = [filters] if last else [1, filters] + [1] * dims
    info = relax.TensorStructInfo
    x, w, b = (relax.Var(v, info(s, "float32")) for v, s in (("x", shape), ("w", w_shape), ("b", b_shape)))
    bb = relax.BlockBuilder()
    params = [x, w, b] if finished else [x, w]
    with bb.function("main", params):
        with bb.dataflow():
            y = bb.emit(getattr(relax.op.nn, f"conv{dims}d{kind}")(x, w, **attrs))
            if finished:
                y = bb.emit(relax.op.nn.relu(bb.emit(relax.op.add(y, b))))
            z = bb.emit_output(y)
        bb.emit_func_output(z)
    rng, feeds = np.random.default_rng(len(name)), []
    for batch, spatial in ((0, [6, 7, 8]), (1, [3, 4, 4]), (2, [4, 9, 5]), (1, [3, 16, 17])):
        own = spatial[3 - dims :]
        image = [batch, *([*own, channels] if last else [channels, *own])]
        given = [rng.standard_normal(s).astype("float32") for s in (image, w_shape, b_shape)]
        feeds.append(tuple(given[: len(params)]))
    return bb.get(), feeds


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_convolution_weights_are_packed_at_each_call(name: str, finished: bool) -> None:
    module, feeds = convolution(name, finished)
    script = kernels_in(module)
    assert 'call_kernel("conv"' in script and "cls.add" not in script and "cls.relu" not in script
    everywhere(module, feeds, 3e-4)


def test_convolution_with_computed_weight_and_residual() -> None:
    info, bb = relax.TensorStructInfo, relax.BlockBuilder()
    n, h = pliant.tir.Var("n", "int64"), pliant.tir.Var("h", "int64")
    x, w = relax.Var("x", info([n, 8, h, 5], "float32")), relax.Var("w", info([8, 8, 3, 3], "float16"))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            wide = bb.emit(relax.op.astype(w, "float32"))
            y = bb.emit(relax.op.nn.relu(bb.emit(relax.op.nn.conv2d(x, wide, padding=1))))
            y = bb.emit(relax.op.add(bb.emit(relax.op.nn.conv2d(y, wide, padding=1)), x))
            z = bb.emit_output(relax.op.nn.relu(y))
        bb.emit_func_output(z)
    module = bb.get()
    assert kernels_in(module).count("R.call_tir(cls.conv") == 2
    rng = np.random.default_rng(0)
    shapes = [(0, 8, 3, 5), (1, 8, 1, 5), (2, 8, 9, 5)]
    feeds = [(rng.standard_normal(s).astype("float32"), rng.standard_normal((8, 8, 3, 3)).astype("float16")) for s in shapes]
    everywhere(module, feeds, 3e-4)


def test_weights_of_non_constant_sizes_stay_loops() -> None:
    info, bb = relax.TensorStructInfo, relax.BlockBuilder()
    f = pliant.tir.Var("f", "int64")
    x, w = relax.Var("x", info([1, 3, 8, 8], "float32")), relax.Var("w", info([f, 3, 3, 3], "float32"))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(relax.op.nn.conv2d(x, w))
        bb.emit_func_output(y)
    module = bb.get()
    assert 'call_kernel("conv"' not in kernels_in(module)
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype("float32")  # noqa: E731
    everywhere(module, [(draw(1, 3, 8, 8), draw(count, 3, 3, 3)) for count in (0, 1, 5)], 1e-4)


def test_weight_sizes_that_overflow_are_errors() -> None:
    info, bb = relax.TensorStructInfo, relax.BlockBuilder()
    x, w = relax.Var("x", info([1, 2**31, 8, 8], "float32")), relax.Var("w", info([2**31, 2**31, 1, 1], "float32"))
    with bb.function("main", [x, w]):
        y = bb.emit(relax.op.nn.conv2d(x, w))
        bb.emit_func_output(y)
    assert 'call_kernel("conv"' not in kernels_in(bb.get())


def layer(cell: str, inputs: int, hidden: int, *, direction: str, layout: int, constant: str) -> pliant.IRModule:
    """Returns a recurrent layer with all operands. The operands named in `constant` are constants."""
    op, _, own = CELLS[cell]
    sides = 2 if direction == "bidirectional" else 1
    arrays = weights(cell, sides, inputs, hidden)
    info = relax.TensorStructInfo
    given = {k: relax.Var(k, info(v.shape, "float32")) for k, v in arrays.items() if k not in constant}
    all_of = {k: given.get(k, relax.const(v)) for k, v in arrays.items()}
    s, n = pliant.tir.Var("s", "int64"), pliant.tir.Var("n", "int64")
    x = relax.Var("x", info([n, s, inputs] if layout else [s, n, inputs], "float32"))
    lengths = relax.Var("lengths", info([n], "int32"))
    state = [n, sides, hidden] if layout else [sides, n, hidden]
    states = [relax.Var(f"s{k}", info(state, "float32")) for k in range(2 if cell == "lstm" else 1)]
    args = [x, all_of["w"], all_of["r"], all_of["b"], lengths, *states, *([all_of["p"]] if cell == "lstm" else [])]
    bb = relax.BlockBuilder()
    with bb.function("main", [x, lengths, *states, *given.values()]):
        with bb.dataflow():
            y = bb.emit_output(getattr(relax.op.nn, op)(*args, direction=direction, layout=layout, **own))
        bb.emit_func_output(y)
    return bb.get()


@pytest.mark.parametrize("constant", ["", "w", "rb"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("cell", CELLS)
def test_recurrent_weights_are_packed_at_each_call(cell: str, direction: str, constant: str) -> None:
    sides = 2 if direction == "bidirectional" else 1
    for inputs, hidden, layout in ((3, 5, 0), (20, 33, 1), (0, 16, 0)):
        module = layer(cell, inputs, hidden, direction=direction, layout=layout, constant=constant)
        assert calls_the_kernel(module)
        loops, model = pliant.compile(module, kernels="off"), pliant.compile(module)
        own = [v for k, v in weights(cell, sides, inputs, hidden).items() if k not in constant]
        for steps, batch in [(0, 2), (1, 1), (5, 0), (7, 3)]:
            operands = [*feed(cell, inputs, hidden, steps, batch, sides=sides, full=True, layout=layout), *own]
            close(model(*operands), loops(*operands))
        packed = relax.transform.OffloadKernels()(module)
        small = [*feed(cell, inputs, hidden, 2, 1, sides=sides, full=True, layout=layout), *own]
        close([v.numpy() for v in pliant.testing.interpret(packed, *small)], loops(*small))


INSTRUCTIONS = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
import pliant
from test_non_constant_weights import CASES, convolution
for name in CASES:
    module, feeds = convolution(name, True)
    model, loops = pliant.compile(module), pliant.compile(module, kernels="off")
    for feed in feeds:
        np.testing.assert_allclose(np.asarray(model(*feed)), np.asarray(loops(*feed)), rtol=3e-4, atol=3e-4)
"""


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
def test_all_instruction_sets_agree(isa: str) -> None:
    import os

    code = INSTRUCTIONS.format(tests=str(Path(__file__).parent))
    env = {**os.environ, "PLIANT_ISA": isa}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    if "PLIANT_ISA" in done.stderr:
        pytest.skip(f"the machine has no {isa}")
    assert done.returncode == 0, done.stderr
