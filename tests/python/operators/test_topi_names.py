"""Tests the names of TVM's ``topi`` that are not operators of the library: each is compiled once with symbolic sizes, and
compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pliant
from pliant import relax, te, tir, topi

RNG = np.random.default_rng(7)
Made = Callable[..., Any]


def check(make: Made, want: Any, *arrays: np.ndarray, symbolic: bool = True, rtol: float = 1e-5) -> None:
    """Checks that the function ``make``, applied to ``te`` tensors for ``arrays``, computes ``want``. If ``symbolic``, every size
    is a separate symbol."""
    bb = relax.BlockBuilder()
    params = []
    for k, a in enumerate(arrays):
        dims = [tir.Var(f"d{k}_{i}", "int64") if symbolic else n for i, n in enumerate(a.shape)]
        params.append(relax.Var(f"x{k}", relax.TensorStructInfo(dims, str(a.dtype))))
    with bb.function("main", params):
        bb.emit_func_output(bb.emit_te(make, *params))
    made = pliant.compile(bb.get())(*arrays)
    wants = want if isinstance(want, list) else [want]
    gots = list(made) if isinstance(want, list) else [made]
    for got, value in zip(gots, wants, strict=True):
        got = got.numpy()
        assert got.shape == value.shape and got.dtype == value.dtype, (got.shape, got.dtype, value.shape, value.dtype)
        np.testing.assert_allclose(got, value, rtol=rtol, atol=1e-6)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


A = f32(3, 4)


def test_elements() -> None:
    x = np.array([1, 2, 3, 4, 5, 127, 128, 129, 1 << 30], "int32")
    check(topi.ceil_log2, np.ceil(np.log2(x)).astype("int32"), x)
    check(lambda a: topi.reinterpret(a, "int32"), A.view("int32"), A)
    for name in ("exp", "tanh"):
        check(getattr(topi, f"fast_{name}"), getattr(np, name)(A), A)
    check(lambda: topi.arange(5), np.arange(5, dtype="float32"))
    check(lambda: topi.arange(0.0, 1.0, 0.25, "float32"), np.arange(0, 1, 0.25, "float32"))


def test_axes() -> None:
    check(lambda a: topi.expand_dims(a, 1, 2), A[:, None, None], A)
    check(lambda a: topi.expand_dims(a, -1), A[..., None], A)
    check(lambda a, b: topi.expand_like(a, b, [0, 2]), np.broadcast_to(A[None, :, None], (2, 3, 5, 4)), A, f32(2, 3, 5, 4))
    check(topi.argmax, np.int32(A.argmax())[()] * np.ones((), "int32"), A)
    twice = np.array([[1, 3, 3], [2, 2, 0]], "float32")
    check(lambda a: topi.argmax(a, 1, select_last_index=True), np.array([2, 1], "int32"), twice)
    check(lambda a: topi.argmin(a, select_last_index=True), np.array(5, "int32"), twice)


def test_positions() -> None:
    flat = np.array([[0, 5], [11, 7]], "int64")
    check(lambda i: topi.unravel_index(i, (3, 4)), np.stack(np.unravel_index(flat, (3, 4))), flat)
    rows, columns = np.array([[0], [2]], "int64"), np.array([1, 3], "int64")
    check(lambda a, i, j: topi.adv_index(a, [i, j]), A[rows, columns], A, rows, columns)
    order = np.array([2, 0, 3, 1], "int32")
    check(topi.invert_permutation, np.argsort(order).astype("int32"), order)
    steps = f32(4, 2, 3)
    masked = steps.copy()
    masked[1:, 0], masked[3:, 1] = -1, -1
    check(lambda a, n: topi.sequence_mask(a, n, -1.0), masked, steps, np.array([1, 3], "int32"))
    with pytest.raises(ValueError, match="expected axis 0 or 1"):
        topi.sequence_mask(te.placeholder((2, 2)), te.placeholder((2,)), axis=2)


def test_slices() -> None:
    values, x = f32(2, 2), f32(6, 5)
    want = x.copy()
    want[1:5:2, -2:] = values
    check(lambda a, v: topi.strided_set(a, v, [1, -2], [5, 5], [2, 1]), want, x, values)
    begin, end, stride = (np.array(v, "int64") for v in ([1, 0], [6, 4], [2, 3]))
    check(lambda a, b, e, s: topi.dynamic_strided_slice(a, b, e, s, (3, 2)), x[1:6:2, 0:4:3], x, begin, end, stride)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2))[::2, ::1]
    check(lambda a: topi.sliding_window(a, 0, [3, 2], [2, 1]), windows.copy(), x)
    dense = np.full((3, 4), -1, "float32")
    dense[0, 1], dense[2, 3] = 5, 6
    where = np.array([[0, 1], [2, 3]], "int64")
    check(lambda i, v: topi.sparse_to_dense(i, (3, 4), v, -1), dense, where, np.array([5, 6], "float32"))


def test_diagonals() -> None:
    x, d = f32(2, 3, 4), f32(2, 3)
    want = x.copy()
    for k in range(3):
        want[:, k, k] = d[:, k]
    check(topi.matrix_set_diag, want, x, d)
    band = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "float32")
    # The example in TensorFlow's documentation of the operator: the diagonals 1, 0 and -1 of a
    # matrix, aligned right and left.
    want = np.zeros((3, 3), "float32")
    want[[0, 1], [1, 2]], want[[0, 1, 2], [0, 1, 2]], want[[1, 2], [0, 1]] = [2, 3], [4, 5, 6], [7, 8]
    check(lambda a, b: topi.matrix_set_diag(a, b, (-1, 1)), want, np.zeros((3, 3), "float32"), band)


def test_layouts() -> None:
    x = f32(2, 8, 3, 5)
    packed = x.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)
    check(lambda a: topi.layout_transform(a, "NCHW", "NHWC"), x.transpose(0, 2, 3, 1), x)
    check(lambda a: topi.layout_transform(a, "NCHW", "NCHW4c"), packed, x)
    check(lambda a: topi.layout_transform(a, "NCHW4c", "NCHW"), x, packed.copy(), symbolic=False)
    check(lambda a: topi.layout_transform(a, "NCHW4c", "NHWC"), x.transpose(0, 2, 3, 1), packed.copy())
    with pytest.raises(ValueError, match="with 2 dims from layout 'NCHW'"):
        topi.layout_transform(te.placeholder((2, 2)), "NCHW", "NHWC")


def test_dilation_and_mirror_padding() -> None:
    x = f32(2, 3)
    spread = np.full((3, 7), 9, "float32")
    spread[::2, ::3] = x
    check(lambda a: topi.nn.dilate(a, [2, 3], 9.0), spread, x)
    for mode in ("SYMMETRIC", "REFLECT"):
        check(lambda a, m=mode: topi.nn.mirror_pad(a, [1, 2], [0, 1], m), np.pad(x, [(1, 0), (2, 1)], mode.lower()), x)
    image = f32(1, 8, 2, 3)
    blocks = image.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)
    check(lambda a: topi.nn.depth_to_space(a, 2), blocks, image)
    check(lambda a: topi.nn.space_to_depth(a, 2), image, blocks)
    check(lambda a: topi.nn.depth_to_space(a, 2, "NHWC"), blocks.transpose(0, 2, 3, 1), image.transpose(0, 2, 3, 1).copy())
    crd = image.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)
    check(lambda a: topi.nn.depth_to_space(a, 2, mode="CRD"), crd, image)
    y = f32(2, 3, 4, 1)
    padded = np.pad(y, [(0, 0), (1, 0), (0, 0), (0, 0)])
    batch = padded.reshape(2, 2, 2, 2, 2, 1).transpose(2, 4, 0, 1, 3, 5).reshape(8, 2, 2, 1)
    check(lambda a: topi.nn.space_to_batch_nd(a, [2, 2], [1, 0], [0, 0]), batch, y)
    check(lambda a: topi.nn.batch_to_space_nd(a, [2, 2], [1, 0], [0, 0]), y, batch)


def test_layers() -> None:
    x = f32(2, 5, 4, 4)
    squares = np.pad(x**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    total = sum(squares[:, k : k + 5] for k in range(3))
    check(lambda a: topi.nn.lrn(a, 3), x / (2 + 1e-4 / 3 * total) ** 0.75, x)
    gamma, beta, mean = (f32(5) for _ in range(3))
    var = np.abs(f32(5)) + 1
    wide = [v[None, :, None, None] for v in (gamma, beta, mean, var)]
    want = (x - wide[2]) / np.sqrt(wide[3] + 1e-5) * wide[0] + wide[1]
    check(lambda *v: topi.nn.batch_norm(*v)[0], want, x, gamma, beta, mean, var)
    parts = [(k * 4 // 3, -(-(k + 1) * 4 // 3)) for k in range(3)]
    pooled = np.stack([np.stack([x[..., a:b, c:d].max((2, 3)) for c, d in parts], -1) for a, b in parts], -2)
    check(lambda a: topi.nn.adaptive_pool(a, (3, 3), "max"), pooled, x)
    rows = np.stack([f32(2, 5, 7)[..., :]])[0]
    thirds = [(k * 7 // 3, -(-(k + 1) * 7 // 3)) for k in range(3)]
    for kind in ("max", "mean"):
        want = np.stack([getattr(rows[..., a:b], kind)(-1) for a, b in thirds], -1)
        check(lambda a, k=kind: topi.nn.adaptive_pool1d(a, 3, k.replace("mean", "avg")), want, rows)


def test_convolutions_of_other_layouts() -> None:
    x, w = f32(2, 3, 8), f32(4, 3, 3)
    plain = lambda a, k: topi.nn.conv1d_ncw(a, k, padding="SAME")  # noqa: E731
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1)])
    want = sum(np.einsum("nci,oc->noi", padded[..., k : k + 8], w[..., k]) for k in range(3))
    check(plain, want, x, w, symbolic=False)
    check(lambda a, k: topi.nn.conv1d_nwc(a, k, padding="SAME"), want.transpose(0, 2, 1), x.transpose(0, 2, 1).copy(),
          w.transpose(2, 1, 0).copy(), symbolic=False)
    image, kernel = f32(2, 3, 5, 6), f32(4, 3, 3, 2)
    shifted = sum(
        np.einsum("nchw,oc->nohw", image[:, :, i : i + 3, j : j + 5], kernel[..., i, j]) for i in range(3) for j in range(2)
    )
    hwio = kernel.transpose(2, 3, 1, 0).copy()
    check(lambda a, k: topi.nn.conv2d_nhwc(a, k, padding="VALID"), shifted.transpose(0, 2, 3, 1),
          image.transpose(0, 2, 3, 1).copy(), hwio, symbolic=False, rtol=1e-4)
    check(topi.nn.conv2d_hwcn, shifted.transpose(2, 3, 1, 0), image.transpose(2, 3, 1, 0).copy(), hwio,
          symbolic=False, rtol=1e-4)
    depth = f32(3, 3, 3, 2)
    wide = image.transpose(0, 2, 3, 1).copy()
    by_channel = np.zeros((2, 3, 4, 3, 2), "float32")
    for i in range(3):
        for j in range(3):
            by_channel += wide[:, i : i + 3, j : j + 4, :, None] * depth[i, j]
    check(topi.nn.depthwise_conv2d_nhwc, by_channel.reshape(2, 3, 4, 6), wide, depth, symbolic=False, rtol=1e-4)
    volume, cube = f32(1, 4, 4, 4, 2), f32(2, 2, 2, 2, 3)
    summed = sum(
        np.einsum("ndhwc,co->ndhwo", volume[:, a : a + 3, b : b + 3, c : c + 3], cube[a, b, c])
        for a in range(2) for b in range(2) for c in range(2)
    )
    check(topi.nn.conv3d_ndhwc, summed, volume, cube, symbolic=False, rtol=1e-4)
    with pytest.raises(ValueError, match="'SAME', 'VALID' or numbers, got 'FULL'"):
        topi.nn.conv1d_ncw(te.placeholder((1, 1, 4)), te.placeholder((1, 1, 2)), padding="FULL")


def test_images() -> None:
    x = f32(1, 2, 4, 6)
    check(lambda a: topi.nn.upsampling(a, 2, 3), x.repeat(2, 2).repeat(3, 3), x)
    check(lambda a: topi.image.resize2d(a, (0.0, 0.0, 0.0, 0.0), [8, 12], method="nearest_neighbor",
                                        coordinate_transformation_mode="asymmetric", rounding_method="floor"),
          x.repeat(2, 2).repeat(2, 3), x)
    row = f32(2, 3, 5)
    check(lambda a: topi.image.resize1d(a, (), [9], coordinate_transformation_mode="align_corners"),
          np.stack([np.interp(np.linspace(0, 4, 9), np.arange(5), r) for r in row.reshape(6, 5)]).reshape(2, 3, 9).astype("float32"),
          row)
    boxes = np.array([[0, 0, 1, 1], [0, 0.2, 1, 0.6]], "float32")
    whole = np.concatenate([x, x[..., 1:4:1][..., [0, 0, 1, 1, 2, 2]] * 0], 0)
    which = np.zeros(2, "int32")
    want = np.empty((2, 2, 4, 6), "float32")
    columns = 1 + np.linspace(0, 2, 6)
    want[0] = x[0]
    want[1] = np.stack([np.interp(columns, np.arange(6), r) for r in x[0].reshape(8, 6)]).reshape(2, 4, 6)
    assert whole.shape == want.shape
    check(lambda a, b, i: topi.image.crop_and_resize(a, b, i, (4, 6)), want, x, boxes, which, rtol=1e-4)
    regions = np.array([[0, 0, 0, 3, 3]], "float32")
    align = lambda a, r: topi.vision.roi_align_nchw(a, r, (2, 2), 1.0, "avg", 2)  # noqa: E731
    rolled = lambda a, r: topi.vision.roi_align_nhwc(a, r, (2, 2), 1.0, b"avg", 2)  # noqa: E731
    made = []
    for make, data in ((align, x), (rolled, x.transpose(0, 2, 3, 1).copy())):
        bb = relax.BlockBuilder()
        params = [relax.Var(n, relax.TensorStructInfo(list(v.shape), "float32")) for n, v in (("x", data), ("r", regions))]
        with bb.function("main", params):
            bb.emit_func_output(bb.emit_te(make, *params))
        made.append(pliant.compile(bb.get())(data, regions).numpy())
    np.testing.assert_allclose(made[0].transpose(0, 2, 3, 1), made[1], rtol=1e-5)


def test_functions_of_scalars() -> None:
    values = np.array([0.0, -0.0, 1.5, -2.5, 3e38, -1e-45, np.inf, -np.inf, np.nan, 1e20, 1.0], "float32")
    left, right = (v.ravel().copy() for v in np.meshgrid(values, values))

    def of(function: Any) -> Made:
        return lambda a, b: te.compute(a.shape, lambda i: function(a[i], b[i]))

    with np.errstate(all="ignore"):
        check(of(te.copysign), np.copysign(left, right), left, right, symbolic=False)
        check(of(te.nextafter), np.nextafter(left, right), left, right, symbolic=False)
        whole = np.hypot(left, right)
        # The hypotenuse of infinity and NaN is infinity in C; here it is NaN.
        whole[np.isnan(left) | np.isnan(right)] = np.nan
        check(of(te.hypot), whole, left, right, symbolic=False, rtol=1e-6)
        powers = np.linspace(-45, 39, 57).astype("float32")
        check(lambda a: te.compute(a.shape, lambda i: te.exp10(a[i])), np.float32(10) ** powers, powers, rtol=1e-6)
        steps = np.array([-280, -149, -3, 0, 7, 130, 276], "int32")
        small = np.array([3.0, 1.0, 0.3, -2.0, 1e-3, 1e-5, 1e-45], "float32")
        check(of(te.ldexp), np.ldexp(small, steps), small, steps, symbolic=False)
    for dtype in ("float16", "float32", "float64"):
        assert float(te.min_value(dtype).value) == np.finfo(dtype).min
        assert float(te.max_value(dtype).value) == np.finfo(dtype).max


def test_norms_and_scales() -> None:
    x, gamma, beta = f32(2, 3, 5), f32(5), f32(5)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma
    check(lambda a, g, b: topi.nn.layer_norm(a, g, b, axis=[-1]), normal + beta, x, gamma, beta, symbolic=False)
    check(lambda a, g, b: topi.nn.layer_norm(a, g, b, [2], 1e-5, center=False), normal, x, gamma, beta, symbolic=False)
    root = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gamma
    check(lambda a, g: topi.nn.rms_norm(a, g, axis=[-1]), root, x, gamma, symbolic=False)
    check(topi.nn.scale_shift_nhwc, x[None] * gamma + beta, x[None], gamma, beta)
    blocks, scale, shift = f32(2, 3, 4, 5, 2), f32(3, 2), f32(3, 2)
    wide = (v[:, None, None, :] for v in (scale, shift))
    check(topi.nn.scale_shift_nchwc, blocks * next(wide) + next(wide), blocks, scale, shift)


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("full", [False, True])
def test_lstm(steps: int, full: bool) -> None:
    batch, inputs, units, wide = 2, 3, 4, 5
    out = wide if full else units
    xs, wi, wh = f32(steps, batch, inputs), f32(4 * units, inputs), f32(4 * units, out)
    more = [f32(4 * units), f32(4 * units), f32(batch, out), f32(batch, units), f32(wide, units)]
    more += [f32(batch, units) for _ in range(3)]
    options = {"reverse": True, "weight_layout": "GIOF"} if full else {}
    more = more if full else []
    bi, bh, h, c, proj, p_i, p_f, p_o = more or [0, 0, np.zeros((batch, out)), np.zeros((batch, units)), None, 0, 0, 0]
    order = options.get("weight_layout", "IFGO")
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    hs, cs = np.zeros((steps, batch, out), "float32"), np.zeros((steps, batch, units), "float32")
    for t, x in enumerate(xs[::-1] if full else xs):
        rows = np.split(x @ wi.T + h @ wh.T + bi + bh, 4, 1)
        gates = {letter: rows[k] for k, letter in enumerate(order)}
        c = sigmoid(gates["F"] + p_f * c) * c + sigmoid(gates["I"] + p_i * c) * np.tanh(gates["G"])
        h = sigmoid(gates["O"] + p_o * c) * np.tanh(c)
        h = h @ proj.T if full else h
        hs[t], cs[t] = h, c
    sizes = {"s": steps, "b": batch, "i": inputs, "g": 4 * units, "o": out, "u": units, "w": wide}
    names = ["sbi", "gi", "go", "g", "g", "bo", "bu", "wu", "bu", "bu", "bu"]
    dims = {k: tir.Var(k, "int64") if k in "sb" else v for k, v in sizes.items()}
    bb = relax.BlockBuilder()
    arrays = [xs, wi, wh, *more]
    params = [relax.Var(f"x{k}", relax.TensorStructInfo([dims[d] for d in n], "float32")) for k, n in enumerate(names[: len(arrays)])]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit_te(lambda *a: topi.nn.lstm(*a, **options), *params))
    got = pliant.compile(bb.get())(*arrays)
    for made, want in zip(got, (hs, cs), strict=True):
        np.testing.assert_allclose(made.numpy(), want, rtol=1e-4, atol=1e-5)


def test_lstm_with_weights_of_the_operator() -> None:
    x, w, r = (te.placeholder(s) for s in ((3, 1, 2), (1, 16, 2), (1, 16, 4)))
    assert [len(t.shape) for t in topi.nn.lstm(x, w, r)] == [len(t.shape) for t in topi.nn.lstm(x, w, r, direction="forward")]
    with pytest.raises(ValueError, match="weight_layout must be a permutation of IFGO"):
        topi.nn.lstm(te.placeholder((3, 1, 2)), te.placeholder((16, 2)), te.placeholder((16, 4)), weight_layout="IFGX")


def test_convolutions_by_position_and_in_blocks() -> None:
    image, kernel = f32(2, 4, 5, 6), f32(6, 4, 3, 2)
    want = sum(np.einsum("nchw,oc->nohw", image[:, :, i : i + 3, j : j + 5], kernel[..., i, j]) for i in range(3) for j in range(2))
    plain = lambda *layout: lambda a, k: topi.nn.conv2d(a, k, 1, 0, 1, *layout)  # noqa: E731
    check(plain(), want, image, kernel, symbolic=False, rtol=1e-4)
    check(plain(1), want, image, kernel, symbolic=False, rtol=1e-4)
    check(plain("NCHW"), want, image, kernel, symbolic=False, rtol=1e-4)
    last = image.transpose(0, 2, 3, 1).copy()
    check(plain("NHWC"), want.transpose(0, 2, 3, 1), last, kernel.transpose(2, 3, 1, 0).copy(), symbolic=False, rtol=1e-4)
    check(plain("NHWC", "OIHW"), want.transpose(0, 2, 3, 1), last, kernel, symbolic=False, rtol=1e-4)
    data = image.reshape(2, 2, 2, 5, 6).transpose(0, 1, 3, 4, 2).copy()
    blocks = kernel.reshape(2, 3, 2, 2, 3, 2).transpose(0, 2, 4, 5, 3, 1).copy()
    packed = want.reshape(2, 2, 3, 3, 5).transpose(0, 1, 3, 4, 2)
    for symbolic in (False, True):
        check(lambda a, k: topi.nn.conv2d_NCHWc(a, k, 1, 0, 1, "NCHW2c", "NCHW3c"), packed, data, blocks, symbolic=symbolic, rtol=1e-4)
    check(lambda a: topi.nn.unpack_NCHWc_to_nchw(a, "float64"), image.astype("float64"), data)


def test_indices_of_elements() -> None:
    flat = np.array([[0, 5], [11, 7]], "int32")
    want = np.stack(np.unravel_index(flat, (3, 4))).astype("int32")
    check(topi.unravel_index, want, flat, np.array([3, 4], "int64"), symbolic=False)
    shape = (3, 4, 5)
    rows = np.arange(60, dtype="int64")
    for k, column in enumerate(np.unravel_index(rows, shape)):
        check(lambda a, k=k: te.compute(a.shape, lambda i: topi.utils.unravel_index(a[i], shape)[k]), column, rows)
    columns = np.stack(np.unravel_index(rows, shape))
    check(lambda a: te.compute((a.shape[1],), lambda i: topi.utils.ravel_index([a[k, i] for k in range(3)], shape)), rows, columns)
    for b, e, s in ((2, 9, 3), (9, 2, -3), (8, 0, -2), (3, 3, 1), (0, 12, 5)):
        inside = np.isin(np.arange(12), np.arange(b, e, s)).astype("int32")
        within = lambda i, r=(b, e, s): topi.utils.within_index(*r, i).astype("int32")  # noqa: E731
        check(lambda w=within: te.compute((12,), w), inside)


def test_shape_utilities() -> None:
    utils, n = topi.utils, tir.Var("n", "int64")
    assert [utils.get_max_power2_factor(v) for v in (1, 12, 7, 64)] == [1, 4, 1, 64]
    assert utils.get_max_power2_factor(64, 16) == 16 and utils.ceil_div(7, 2) == 4
    assert utils.is_empty_shape([3, 0, n]) and not utils.is_empty_shape([3, n])
    assert utils.is_dynamic_shape([3, n]) and not utils.is_dynamic_shape([3, n * 0 + 2])
    assert utils.swap([1, 2, 3], 0) == [3, 2, 1]
    table = np.array([[1.5, -2.0], [3.0, 4.0]], "float32")
    check(lambda: utils.const_matrix(table), table)
    check(lambda: utils.const_vector(np.array([7, 8, 9], "int32")), np.array([7, 8, 9], "int32"))
    pads = topi.nn.utils
    assert pads.get_pad_tuple("SAME", (3, 4)) == (1, 2, 1, 1) and pads.get_pad_tuple("VALID", (3, 3)) == (0, 0, 0, 0)
    assert pads.get_pad_tuple((1, 2), (3, 3)) == (1, 2, 1, 2) and pads.get_pad_tuple([1, 2, 3, 4], (3, 3)) == (1, 2, 3, 4)
    assert pads.get_pad_tuple1d(2, (3,)) == (2, 2) and pads.get_pad_tuple3d("SAME", (3, 2, 1)) == (1, 1, 0, 1, 0, 0)
    with pytest.raises(ValueError, match="2 or 4 values, got 1"):
        pads.get_pad_tuple([1], (3, 3))
    assert topi.math.exp.__name__ == topi.exp.__name__ and topi.reduction.sum and topi.broadcast.add and topi.tensor.full
    with pytest.raises(AttributeError):
        topi.math.nonsense  # noqa: B018


REFUSED: dict[str, tuple[Made, list[np.ndarray], str, type[Exception]]] = {
    "mirror_pad": (lambda a: topi.nn.mirror_pad(a, [0, 4], [0, 0], "REFLECT"), [f32(2, 4)],
                   r"mirror_pad: 4 elements cannot be mirrored along axis 1 of size 4 \(REFLECT\)", pliant.ShapeError),
    "depth_to_space": (lambda a: topi.nn.depth_to_space(a, 2), [f32(1, 6, 2, 2)],
                       "depth_to_space: axis 1 of size 6 is not a multiple of 4", pliant.ShapeError),
    "space_to_depth": (lambda a: topi.nn.space_to_depth(a, 2), [f32(1, 1, 2, 3)],
                       "space_to_depth: axis 3 of size 3 is not a multiple of 2", pliant.ShapeError),
    "space_to_batch": (lambda a: topi.nn.space_to_batch_nd(a, [2], [0], [0]), [f32(1, 3, 1)],
                       "space_to_batch_nd: axis 1 of size 3 is not a multiple of 2", pliant.ShapeError),
    "batch_to_space": (lambda a: topi.nn.batch_to_space_nd(a, [2], [0], [0]), [f32(3, 2, 1)],
                       "batch_to_space_nd: axis 0 of size 3 is not a multiple of 2", pliant.ShapeError),
    "layout_transform": (lambda a: topi.layout_transform(a, "NCHW", "NCHW3c"), [f32(1, 4, 1, 1)],
                         "layout_transform: the size 4 of axis C is not a multiple of its block size 3", pliant.ShapeError),
    "crop_and_resize": (lambda a, b, i: topi.image.crop_and_resize(a, b, i, (2, 2)),
                        [f32(2, 1, 3, 3), f32(1, 4), np.array([2], "int32")],
                        "crop_and_resize: index 2 is out of range for axis 0 of size 2", IndexError),
    "crop_and_resize_behind": (lambda a, b, i: topi.image.crop_and_resize(a, b, i, (2, 2)),
                               [f32(2, 1, 3, 3), f32(1, 4), np.array([-1], "int32")],
                               "crop_and_resize: index -1 is out of range for axis 0 of size 2", IndexError),
    "crop_of_nothing": (lambda a, b, i: topi.image.crop_and_resize(a, b, i, (2, 2)),
                        [f32(2, 1, 0, 3), f32(1, 4), np.array([1], "int32")],
                        "images of 0 x 3 pixels have no pixels to crop", pliant.ShapeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mismatches_name_the_function(name: str) -> None:
    make, arrays, message, kind = REFUSED[name]
    with pytest.raises(kind, match=message):
        check(make, np.zeros(()), *arrays)
    if kind is pliant.ShapeError:
        with pytest.raises(ValueError, match=message):
            check(make, np.zeros(()), *arrays, symbolic=False)


def test_even_numbers_of_neighbours_are_rejected() -> None:
    with pytest.raises(ValueError, match="size must be odd and positive"):
        topi.nn.lrn(te.placeholder((1, 4, 2, 2)), 4)


def test_sizes_as_integers() -> None:
    n = tir.Var("n", "int64")
    assert topi.utils.get_const_tuple((2, tir.const(3, "int64") + 1)) == (2, 4)
    assert topi.utils.get_const_int(n - n + 2) == 2 and topi.utils.equal_const_int(n * 0, 0)
    with pytest.raises(ValueError, match="n is known only at run time"):
        topi.utils.get_const_int(n)


def test_products_accumulate_in_the_result_type() -> None:
    a, b, bias = np.full((1, 4), 100, "int8"), np.full((2, 4), 100, "int8"), np.array([1, 2], "int32")
    check(lambda x, y: topi.nn.dense(x, y, out_dtype="int32"), np.full((1, 2), 40000, "int32"), a, b, symbolic=False)
    check(lambda x, y, z: topi.nn.dense(x, y, z, out_dtype="int32"), np.array([[40001, 40002]], "int32"), a, b, bias,
          symbolic=False)
    check(lambda x, y: topi.nn.batch_matmul(x, y, out_dtype="int32"), np.full((1, 1, 2), 40000, "int32"), a[None], b[None],
          symbolic=False)


def test_uneven_parts_are_rejected() -> None:
    image = te.placeholder((1, 4, 6, 6))
    for refused in (
        lambda: topi.layout_transform(image, "NCHW", "NCHW3c"),
        lambda: topi.nn.space_to_depth(image, 4),
        lambda: topi.nn.depth_to_space(image, 3),
    ):
        with pytest.raises(ValueError, match="no multiple of|not a multiple of|has no parts of"):
            refused()
