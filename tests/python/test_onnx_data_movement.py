"""Tests operators that move data, at sizes where they run in parallel and in vectors: scatters, patches, caches, paddings,
non-constant sizes, concatenation of many parts, and nonzero elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, node

import pliant
from pliant.error import PliantError, ShapeError

F32, I64 = np.float32, np.int64


def first(made: Any, *arrays: Any, opset: int = 24, **constants: np.ndarray) -> np.ndarray:
    """Returns the first output of a node. Its inputs `a`, `b`, ... are `arrays` with symbolic sizes, and `constants` are its
    initializers."""
    feeds = {name: np.asarray(a) for name, a in zip("abcdefgh", arrays, strict=False)}
    inputs = {
        name: (helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}{k}" for k in range(a.ndim)]) for name, a in feeds.items()
    }
    model = pliant.compile(model_of([made], inputs, list(made.output), constants, opset=opset), allow_specialization=True)
    return np.asarray(model.run(None, feeds)[0])


pytestmark = pytest.mark.filterwarnings("ignore:.* would be fixed")
RNG = np.random.default_rng(0)


# ---- scatters ----

COMBINE = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("reduction", COMBINE)
@pytest.mark.parametrize("row", [(), (1,), (3,), (32,), (100,), (2, 40), (1, 33)])
def test_scatter_of_equal_row_indices_keeps_order(reduction: str, row: tuple[int, ...]) -> None:
    data, updates = (RNG.integers(-3, 4, (n, *row)).astype(F32) for n in (50, 300))
    indices = RNG.integers(-50, 50, (300, 1))
    want = data.copy()
    for i, update in zip(indices[:, 0], updates, strict=True):
        want[i] = COMBINE[reduction](want[i], update)
    made = node("ScatterND", "a b c", "y", reduction=reduction)
    np.testing.assert_array_equal(first(made, data, indices, updates), want)


@pytest.mark.parametrize("dtype", ["float16", "int8", "bool"])
def test_scatter_rows_of_other_types(dtype: str) -> None:
    data, updates = (RNG.integers(0, 2, (n, 70)).astype(dtype) for n in (20, 90))
    indices = RNG.integers(0, 20, (90, 1))
    want = data.copy()
    for i, update in zip(indices[:, 0], updates, strict=True):
        want[i] = update
    np.testing.assert_array_equal(first(node("ScatterND", "a b c", "y"), data, indices, updates), want)


@pytest.mark.parametrize("shape", [(0, 40), (5, 0), (5, 40)])
@pytest.mark.parametrize("count", [0, 3])
def test_empty_scatters(shape: tuple[int, int], count: int) -> None:
    data, updates = np.ones(shape, F32), np.zeros((count, shape[1]), F32)
    made = node("ScatterND", "a b c", "y")
    indices = np.zeros((count, 1), I64)
    if count and not shape[0] and shape[1]:
        with pytest.raises(PliantError, match="out of range"):
            first(made, data, indices, updates)
        return
    want = data.copy()
    if shape[0]:
        want[indices[:, 0]] = 0
    np.testing.assert_array_equal(first(made, data, indices, updates), want)


@pytest.mark.parametrize("index", [50, -51, 2**40])
def test_rows_out_of_range_are_an_error(index: int) -> None:
    indices = np.zeros((300, 1), I64)
    indices[200] = index
    with pytest.raises(PliantError, match="out of range"):
        first(node("ScatterND", "a b c", "y"), np.zeros((50, 64), F32), indices, np.zeros((300, 64), F32))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter_elements_along_each_axis(axis: int, reduction: str) -> None:
    data = RNG.integers(-3, 4, (9, 40, 37)).astype(F32)
    updates = RNG.integers(-3, 4, (7, 30, 33)).astype(F32)
    indices = RNG.integers(-data.shape[axis], data.shape[axis], updates.shape)
    want = data.copy()
    for at in np.ndindex(updates.shape):
        to = (*at[:axis], indices[at], *at[axis + 1 :])
        want[to] = COMBINE[reduction](want[to], updates[at])
    made = node("ScatterElements", "a b c", "y", axis=axis, reduction=reduction)
    np.testing.assert_array_equal(first(made, data, indices, updates), want)


# ---- caches ----


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_cache_updates_start_at_their_indices(axis: int, mode: str, length: int) -> None:
    cache = RNG.standard_normal((3, 8, 9, 10)).astype(F32)
    shape = list(cache.shape)
    shape[axis] = length
    update = RNG.standard_normal(shape).astype(F32)
    starts = np.array([0, 2, 3 if mode == "linear" else 47])
    want = cache.copy()
    for b, start in enumerate(starts):
        for k in range(length):
            to = (start + k) % cache.shape[axis]
            np.moveaxis(want[b], axis - 1 if axis > 0 else axis, 0)[to] = np.moveaxis(
                update[b], axis - 1 if axis > 0 else axis, 0
            )[k]
    made = node("TensorScatter", "a b c", "y", axis=axis, mode=mode)
    np.testing.assert_array_equal(first(made, cache, update, starts), want)


def test_cache_updates_beyond_the_end_are_an_error() -> None:
    made = node("TensorScatter", "a b c", "y", axis=1)
    cache, update = np.zeros((2, 5, 3), F32), np.ones((2, 2, 3), F32)
    with pytest.raises(PliantError, match="2 updates do not fit at position 4 of axis 1 of size 5"):
        first(made, cache, update, I64([0, 4]))


# ---- patches ----


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_col2im_sums_patches(stride: int, dilation: int, dtype: str) -> None:
    image, block, pads = (13, 11), (3, 2), (2, 0, 1, 3)
    places = [(image[k] + pads[k] + pads[k + 2] - dilation * (block[k] - 1) - 1) // stride + 1 for k in (0, 1)]
    x = RNG.integers(-4, 5, (2, 3, *block, *places)).astype(dtype)
    want = np.zeros((2, 3, *image), dtype)
    for y, z, i, j in np.ndindex(*block, *places):
        row, column = i * stride + y * dilation - pads[0], j * stride + z * dilation - pads[1]
        if 0 <= row < image[0] and 0 <= column < image[1]:
            want[:, :, row, column] += x[:, :, y, z, i, j]
    made = node("Col2Im", "a b c", "y", strides=[stride] * 2, dilations=[dilation] * 2, pads=list(pads))
    columns = x.reshape(2, 3 * block[0] * block[1], -1)
    np.testing.assert_array_equal(first(made, columns, I64(image), I64(block)), want)
    np.testing.assert_array_equal(first(made, columns, b=I64(image), c=I64(block)), want)


def test_col2im_of_one_and_three_dims() -> None:
    x = np.arange(2 * 3 * 5, dtype=F32).reshape(2, 3, 5)
    want = np.zeros((2, 1, 7), F32)
    for k in range(3):
        want[:, 0, k : k + 5] += x[:, k]
    np.testing.assert_array_equal(first(node("Col2Im", "a b c", "y"), x, b=I64([7]), c=I64([3])), want)
    x = RNG.integers(0, 5, (1, 8, 8)).astype(F32)
    want = np.zeros((1, 1, 3, 3, 3), F32)
    for at, value in np.ndenumerate(x.reshape(2, 2, 2, 2, 2, 2)):
        want[(0, 0, *(at[k] + at[k + 3] for k in range(3)))] += value
    np.testing.assert_array_equal(first(node("Col2Im", "a b c", "y"), x, b=I64([3, 3, 3]), c=I64([2, 2, 2])), want)


# ---- paddings ----


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_wrapped_padding_repeats_elements(size: int) -> None:
    x = RNG.standard_normal((2, size, size + 1)).astype(F32)
    pads = np.array([0, 7, 1, 1, 3, 90])
    want = np.pad(x, [(0, 1), (7, 3), (1, 90)], "wrap")
    np.testing.assert_array_equal(first(node("Pad", "a b", "y", mode="wrap"), x, b=pads), want)
    with pytest.raises(ShapeError, match="too small"):
        first(node("Pad", "a b", "y", mode="wrap"), np.zeros((2, 0, 1), F32), b=pads)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_negative_padding_crops_before_it_grows(mode: str) -> None:
    x = RNG.standard_normal((4, 6, 9)).astype(F32)
    want = np.pad(x[:, 2:, 1:-3], [(0, 0), (0, 2), (0, 0)], mode)
    made = node("Pad", "a b", "y", mode=mode)
    np.testing.assert_array_equal(first(made, x, b=np.array([0, -2, -1, 0, 2, -3])), want)
    with pytest.raises(PliantError, match="negative pads remove"):
        first(made, x[:, :, :3], b=np.array([0, -2, -1, 0, 2, -3]))


# ---- sizes ----


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("sizes", [(2, 3, 9, 5), (2, 3, 4, 20), (4, 3, 9, 5)])
def test_non_constant_sizes_resize_as_constant_ones(mode: str, sizes: tuple[int, ...]) -> None:
    x, sizes = RNG.standard_normal((2, 3, 6, 10)).astype(F32), I64(sizes)
    made = node("Resize", "a r s b", "y", mode=mode)
    empty = {"r": np.array([], F32), "s": np.array([], F32)}
    np.testing.assert_allclose(first(made, x, sizes, **empty), first(made, x, b=sizes, **empty), atol=1e-6)


# ---- concatenation ----


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concat_of_many_parts_along_each_axis(axis: int) -> None:
    shapes = [[5, 6, 7] for _ in range(70)]
    for k, shape in enumerate(shapes):
        shape[axis] = k % 4
    parts = [RNG.standard_normal(shape).astype(F32) for shape in shapes]
    names = [f"x{k}" for k in range(len(parts))]
    inputs = {name: (1, [f"d{k}" if k != axis else name + "n" for k in range(3)]) for name in names}
    model = pliant.compile(model_of([node("Concat", " ".join(names), "y", axis=axis)], inputs, ["y"], {}))
    y = model.run(None, dict(zip(names, parts, strict=True)))[0]
    np.testing.assert_array_equal(y, np.concatenate(parts, axis))


# ---- nonzero elements ----


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("density", [0, 0.001, 0.5, 1])
def test_nonzero_across_chunks(dtype: str, density: float) -> None:
    made = node("NonZero", "a", "y")
    for shape in ((20_000,), (300, 41), (3, 1, 7000), (200, 3, 2, 11), (3, 0)):
        x = (RNG.random(shape) < density).astype(dtype)
        np.testing.assert_array_equal(first(made, x), np.stack(np.nonzero(x)))
        np.testing.assert_array_equal(first(made, x.T), np.stack(np.nonzero(x.T)))


def test_nonzero_includes_nan() -> None:
    x = F32([0, np.nan, -0.0, -1, np.inf, 1e-45])
    assert first(node("NonZero", "a", "y"), x).tolist() == [[1, 3, 4, 5]]
