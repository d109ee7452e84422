"""Compares transposed convolutions with constant weights between the library kernel and generated loops."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import relax
from test_matmul_kernels import everywhere, kernels_in

Attrs = dict[str, object]


def transposed(w_shape: list[int], bias: bool, relu: bool, attrs: Attrs) -> pliant.IRModule:
    """Returns a transposed convolution of data of any size, with optional bias and activation."""
    rng = np.random.default_rng(len(w_shape))
    dims = len(w_shape) - 2
    last = str(attrs.get("data_layout", "")).endswith("C")
    groups = int(str(attrs.get("groups", 1)))
    sizes = [pliant.tir.Var(name, "int64") for name in "dhw"[3 - dims :]]
    shape = [pliant.tir.Var("n", "int64"), *([*sizes, w_shape[0]] if last else [w_shape[0], *sizes])]
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    w = relax.const(rng.standard_normal(w_shape).astype("float32"))
    filters = w_shape[1] * groups
    b = relax.const(rng.standard_normal([filters] if last else [1, filters] + [1] * dims).astype("float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(getattr(relax.op.nn, f"conv{dims}d_transpose")(x, w, **attrs))
            if bias:
                y = bb.emit(relax.op.add(y, b))
            if relu:
                y = bb.emit(relax.op.nn.relu(y))
            z = bb.emit_output(y)
        bb.emit_func_output(z)
    return bb.get()


CASES: dict[str, tuple[list[int], Attrs]] = {
    "even": ([6, 9, 2, 2], {"strides": 2}),
    "overlapping": ([5, 20, 4, 4], {"strides": 2, "padding": 1}),
    "odd": ([8, 3, 3, 3], {"strides": 2, "padding": 1, "output_padding": 1}),
    "steps of one": ([4, 70, 3, 5], {"padding": [0, 2, 1, 1]}),
    "dilated": ([4, 5, 3, 3], {"dilation": [2, 1], "padding": [1, 0], "strides": [1, 3]}),
    "groups": ([8, 5, 3, 2], {"strides": [3, 2], "groups": 2}),
    "last": ([6, 7, 4, 3], {"strides": 2, "padding": 1, "data_layout": "NHWC"}),
    "turned": ([64, 64, 3, 3], {"padding": 1, "data_layout": "NHWC"}),
    "channels": ([12, 1, 4, 4], {"strides": 2, "padding": 1, "groups": 12, "data_layout": "NHWC"}),
    "groups of four": ([12, 4, 4, 3], {"strides": 2, "padding": 1, "groups": 3, "data_layout": "NHWC"}),
    "line": ([3, 8, 7], {"strides": 3, "padding": [2, 1], "output_padding": 2}),
    "volume": ([4, 6, 2, 3, 2], {"strides": [2, 1, 2]}),
}
KEPT: dict[str, tuple[list[int], Attrs]] = {
    "kernels smaller than strides": ([3, 4, 1, 2], {"strides": 2}),
    "apart both ways": ([3, 4, 3, 3], {"strides": 2, "dilation": 2}),
    "the first input cut off": ([3, 4, 2, 2], {"strides": 1, "padding": [2, 0, 0, 0]}),
    "many phases": ([1, 1, 9, 9], {"strides": 9}),
}


def feeds(w_shape: list[int], attrs: Attrs) -> list[tuple[np.ndarray, ...]]:
    """Draws images of several sizes, including images without elements and with non-finite
    numbers.
    """
    rng = np.random.default_rng(3)
    dims = len(w_shape) - 2
    out = []
    for batch, sizes in ((0, [3, 4, 5]), (1, [1, 1, 1]), (2, [3, 2, 9]), (3, [2, 16, 7])):
        spatial = sizes[3 - dims :]
        last = str(attrs.get("data_layout", "")).endswith("C")
        shape = [batch, *([*spatial, w_shape[0]] if last else [w_shape[0], *spatial])]
        out.append((rng.standard_normal(shape).astype("float32"),))
    odd = out[-1][0].copy()
    odd.flat[7], odd.flat[40] = np.nan, np.inf
    turned = w_shape == [64, 64, 3, 3]  # An infinity may reach its neighbours there.
    return out if turned else [*out, (odd,)]


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_subpixel_phases_are_kernel_calls(name: str, finished: bool) -> None:
    w_shape, attrs = CASES[name]
    module = transposed(w_shape, finished, finished, attrs)
    script = kernels_in(module)
    strides = attrs.get("strides", 1)
    dims = len(w_shape) - 2
    steps = strides if isinstance(strides, list) else [strides] * dims
    assert script.count('call_kernel("conv"') == np.prod(steps)
    assert "cls.add" not in script and "cls.relu" not in script
    everywhere(module, feeds(w_shape, attrs), 1e-4)


@pytest.mark.parametrize("name", KEPT)
def test_unsupported_forms_stay_loops(name: str) -> None:
    w_shape, attrs = KEPT[name]
    module = transposed(w_shape, True, False, attrs)
    assert 'call_kernel("conv"' not in kernels_in(module)
    everywhere(module, feeds(w_shape, attrs), 1e-4)


def test_packed_weights_are_shared() -> None:
    rng = np.random.default_rng(1)
    bb = relax.BlockBuilder()
    n = pliant.tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo([n, 4, 5, 6], "float32"))
    w = relax.const(rng.standard_normal((4, 4, 2, 2)).astype("float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            wide = bb.emit(relax.op.nn.conv2d_transpose(x, w, strides=2))
            cut = bb.emit(relax.op.nn.conv2d_transpose(x, w, strides=2, padding=[1, 0, 0, 1]))
            plain = bb.emit(relax.op.nn.conv2d(x, w))
            z = bb.emit_output(relax.Tuple([wide, cut, plain]))
        bb.emit_func_output(z)
    module = bb.get()
    loops = pliant.compile(module, kernels="off")
    data = rng.standard_normal((2, 4, 5, 6)).astype("float32")
    for got, want in zip(pliant.compile(module)(data), loops(data), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-4)
