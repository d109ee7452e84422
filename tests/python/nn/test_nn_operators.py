"""Tests the operators of the nn front end against NumPy, at sizes including 0 and 1, with symbolic dims."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from nn_programs import evaluate, normal

import pliant
from pliant import te
from pliant.error import UnsupportedError
from pliant.relax.frontend import nn
from pliant.script import tir as T

_ERF = np.vectorize(math.erf, otypes=[float])


def _softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


# Each case: the operator, the same with NumPy, and the dims of the operands.
CASES: dict[str, tuple[Any, Any, list[tuple[int | str, ...]]]] = {
    "add": (nn.add, np.add, [("n", "m"), ("n", "m")]),
    "add_broadcast": (nn.add, np.add, [("n", "m"), ("m",)]),
    "subtract": (nn.subtract, np.subtract, [("n", "m"), ("n", "m")]),
    "multiply": (nn.multiply, np.multiply, [("n", "m"), ("n", "m")]),
    "divide": (nn.divide, np.divide, [("n", "m"), ("n", "m")]),
    "maximum": (nn.maximum, np.maximum, [("n", "m"), ("n", "m")]),
    "minimum": (nn.minimum, np.minimum, [("n", "m"), ("n", "m")]),
    "less": (nn.less, np.less, [("n", "m"), ("n", "m")]),
    "less_equal": (nn.less_equal, np.less_equal, [("n", "m"), ("n", "m")]),
    "greater": (nn.greater, np.greater, [("n", "m"), ("n", "m")]),
    "greater_equal": (nn.greater_equal, np.greater_equal, [("n", "m"), ("n", "m")]),
    "equal": (nn.equal, np.equal, [("n", "m"), ("n", "m")]),
    "not_equal": (nn.not_equal, np.not_equal, [("n", "m"), ("n", "m")]),
    "where": (
        lambda a, b: nn.where(nn.greater(a, b), a, b),
        lambda a, b: np.where(a > b, a, b),
        [("n", "m"), ("n", "m")],
    ),
    "where_of_floats": (nn.where, lambda c, a, b: np.where(c.astype(bool), a, b), [("n",), ("n",), ("n",)]),
    "relu": (nn.relu, lambda x: np.maximum(x, 0), [("n", "m")]),
    "relu6": (nn.relu6, lambda x: np.clip(x, 0, 6), [("n", "m")]),
    "silu": (nn.silu, lambda x: x / (1 + np.exp(-x)), [("n", "m")]),
    "gelu": (nn.gelu, lambda x: 0.5 * x * (1 + _ERF(x / math.sqrt(2))), [("n", "m")]),
    "gelu_tanh": (
        lambda x: nn.gelu(x, approximate="tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        [("n", "m")],
    ),
    "softplus": (nn.softplus, lambda x: np.log1p(np.exp(x)), [("n", "m")]),
    "prelu": (nn.prelu, lambda x, a: np.where(x > 0, x, a * x), [("n", "m"), ("m",)]),
    "sigmoid": (nn.sigmoid, lambda x: 1 / (1 + np.exp(-x)), [("n", "m")]),
    "softmax": (nn.softmax, _softmax, [("n", "m")]),
    "softmax_axis": (lambda x: nn.softmax(x, axis=0), lambda x: _softmax(x, 0), [("n", "m")]),
    "tanh": (nn.tanh, np.tanh, [("n", "m")]),
    "exp": (nn.exp, np.exp, [("n", "m")]),
    "log": (lambda x: nn.log(nn.square(x) + 1), lambda x: np.log(x * x + 1), [("n", "m")]),
    "floor": (nn.floor, np.floor, [("n", "m")]),
    "negative": (nn.negative, np.negative, [("n", "m")]),
    "square": (nn.square, np.square, [("n", "m")]),
    "sqrt": (lambda x: nn.sqrt(nn.square(x)), np.abs, [("n", "m")]),
    "sum": (lambda x: nn.sum(x, axis=1), lambda x: x.sum(1), [("n", "m")]),
    "sum_all": (nn.sum, np.sum, [("n", "m")]),
    "sum_keepdims": (lambda x: nn.sum(x, [0], True), lambda x: x.sum(0, keepdims=True), [("n", "m")]),
    "max": (lambda x: nn.max(x, axis=1), lambda x: x.max(1), [("n", "k")]),
    "min": (lambda x: nn.min(x, axis=-1, keepdims=True), lambda x: x.min(-1, keepdims=True), [("n", "k")]),
    "matmul": (nn.matmul, np.matmul, [("n", "m"), ("m", "k")]),
    "matmul_batch": (nn.matmul, np.matmul, [("n", "m", "k"), ("k", "m")]),
    "unsqueeze": (lambda x: nn.unsqueeze(x, 1), lambda x: x[:, None], [("n", "m")]),
    "squeeze": (lambda x: nn.squeeze(nn.unsqueeze(x, 1), 1), lambda x: x, [("n", "m")]),
    "concat": (lambda a, b: nn.concat([a, b], 1), lambda a, b: np.concatenate([a, b], 1), [("n", "m"), ("n", "k")]),
    "split": (lambda x: nn.split(x, 2, axis=1), lambda x: np.split(x, 2, 1), [("n", 6)]),
    "split_at": (lambda x: nn.split(x, [1, 4], axis=1), lambda x: np.split(x, [1, 4], 1), [("n", 6)]),
    "chunk": (lambda x: nn.chunk(x, 3, dim=1), lambda x: np.split(x, 3, 1), [("n", 6)]),
    "reshape": (lambda x: nn.reshape(x, [x.shape[1], x.shape[0]]), lambda x: x.reshape(x.shape[::-1]), [("n", "m")]),
    "reshape_flat": (lambda x: x.reshape(-1), lambda x: x.reshape(x.size), [("n", "m")]),
    "broadcast_to": (
        lambda x: nn.broadcast_to(x, [3, *x.shape]),
        lambda x: np.broadcast_to(x, (3, *x.shape)),
        [("n", "m")],
    ),
    "permute_dims": (lambda x: nn.permute_dims(x, [1, 0]), np.transpose, [("n", "m")]),
    "permute_dims_reversed": (nn.permute_dims, np.transpose, [("n", "m", 2)]),
    "permute": (lambda x: nn.permute(x, [0, 2, 1]), lambda x: x.transpose(0, 2, 1), [("n", "m", 2)]),
    "repeat": (lambda x: nn.repeat(x, 2, 1), lambda x: np.repeat(x, 2, 1), [("n", "m")]),
    "repeat_flat": (lambda x: x.repeat(3), lambda x: np.repeat(x, 3), [("n", "m")]),
    "triu": (lambda x: nn.triu(x, 1), lambda x: np.triu(x, 1), [("n", "m")]),
    "cumsum": (lambda x: nn.cumsum(x, axis=1), lambda x: x.cumsum(1), [("n", "m")]),
    "cumsum_exclusive": (
        lambda x: nn.cumsum(x, axis=1, exclusive=True),
        lambda x: x.cumsum(1) - x,
        [("n", "m")],
    ),
    "sort": (nn.sort, np.sort, [("n", "m")]),
    "sort_descending": (lambda x: nn.sort(x, 0, True), lambda x: -np.sort(-x, 0), [("n", "m")]),
    "argsort": (nn.argsort, lambda x: x.argsort(-1), [("n", "m")]),
    "astype": (lambda x: x.astype("float64"), lambda x: x.astype("float64"), [("n", "m")]),
    "pad": (lambda x: nn.pad(x, [1, 0, 0, 2], value=3), lambda x: np.pad(x, [(1, 0), (0, 2)], constant_values=3), [("n", "m")]),
    "full": (lambda x: nn.full(x.shape, 2.5), lambda x: np.full(x.shape, 2.5, "float32"), [("n", "m")]),
    "full_of_tensor": (lambda x: nn.full(x.shape, nn.sum(x)), lambda x: np.full(x.shape, x.sum()), [("n", "m")]),
    "zeros": (lambda x: nn.zeros(x.shape, "int32"), lambda x: np.zeros(x.shape, "int32"), [("n", "m")]),
    "ones": (lambda x: nn.ones(x.shape), lambda x: np.ones(x.shape, "float32"), [("n", "m")]),
    "arange": (lambda x: nn.arange(x.shape[0], dtype="int64"), lambda x: np.arange(x.shape[0]), [("n",)]),
    "allreduce": (nn.ccl_allreduce, lambda x: x, [("n", "m")]),
    "allgather": (lambda x: nn.ccl_allgather(x, 1), lambda x: x, [("n", "m")]),
    "broadcast_from_worker0": (nn.ccl_broadcast_from_worker0, lambda x: x, [("n", "m")]),
    "python_operators": (
        lambda a, b: (-a + 1) * b - 2.0 / (b * b + 1) + (3 - a) / 2,
        lambda a, b: (-a + 1) * b - 2.0 / (b * b + 1) + (3 - a) / 2,
        [("n", "m"), ("n", "m")],
    ),
    "python_comparisons": (
        lambda a: nn.where(a < 0.5, a.maximum(0), a.minimum(1)),
        lambda a: np.where(a < 0.5, np.maximum(a, 0), np.minimum(a, 1)),
        [("n", "m")],
    ),
}
# `k` is never 0, for reductions that have no result over an empty axis.
SIZES = [{"n": n, "m": m, "k": k} for n, m, k in [(0, 3, 2), (1, 1, 1), (4, 0, 3), (3, 5, 4), (1, 7, 1)]]


@pytest.mark.parametrize("name", CASES)
def test_operator_matches_numpy(name: str) -> None:
    function, reference, dims = CASES[name]
    for sizes in SIZES:
        rng = np.random.default_rng(3)
        arrays = [normal(rng, *(sizes.get(d, d) if isinstance(d, str) else d for d in shape)) for shape in dims]
        expected, got = reference(*arrays), evaluate(function, arrays, dims)
        if not isinstance(expected, list | tuple):
            expected, got = [expected], [got]
        assert len(expected) == len(got)
        for e, g in zip(expected, got, strict=True):
            assert g.shape == np.shape(e), (name, sizes)
            np.testing.assert_allclose(g, e, rtol=2e-5, atol=2e-5, err_msg=f"{name} {sizes}")


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(k: int, largest: bool) -> None:
    x = normal(np.random.default_rng(0), 2, 5)
    order = np.argsort(-x if largest else x, -1)[:, :k]
    values, indices = evaluate(lambda t: nn.topk(t, k, largest=largest), [x], [("n", 5)])
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))
    only = evaluate(lambda t: nn.topk(t, k, ret_type="indices", largest=largest, dtype="int64"), [x])
    assert only.dtype == np.int64


@pytest.mark.parametrize("shape", [(0,), (1,), (4,), (2, 3)])
def test_take(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, indices = normal(rng, 6, 2), rng.integers(0, 6, shape).astype("int32")
    got = evaluate(lambda a, i: nn.take(a, i, axis=0), [x, indices])
    np.testing.assert_array_equal(got, x[indices])


def _convolution(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """The convolution over any number of spatial dims."""
    spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding, padding)] * spatial)
    out = [(x.shape[2 + i] - dilation * (w.shape[2 + i] - 1) - 1) // stride + 1 for i in range(spatial)]
    result = np.zeros((x.shape[0], w.shape[0], *out), "float32")
    per_group, filters = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        first = o // filters * per_group
        for position in itertools.product(*map(range, out)):
            window = tuple(
                slice(p * stride, p * stride + dilation * (w.shape[2 + i] - 1) + 1, dilation) for i, p in enumerate(position)
            )
            patch = x[(slice(None), slice(first, first + per_group), *window)]
            result[(slice(None), o, *position)] = (patch * w[o]).sum(tuple(range(1, x.ndim)))
    return result


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
@pytest.mark.parametrize("batch", [0, 1, 2])
def test_convolutions(dims: int, stride: int, padding: int, dilation: int, groups: int, batch: int) -> None:
    rng = np.random.default_rng(1)
    x, w, b = normal(rng, batch, 4, *[6, 5, 5][:dims]), normal(rng, 6, 4 // groups, *[3, 2, 1][:dims]), normal(rng, 6)
    operator = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[dims]
    got = evaluate(
        lambda x, w, b: operator(x, w, b, stride, padding, dilation, groups),
        [x, w, b],
        [("batch", 4, *x.shape[2:]), w.shape, b.shape],
    )
    expected = _convolution(x, w, stride, padding, dilation, groups) + b.reshape(1, -1, *[1] * dims)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_convolution_of_channels_last() -> None:
    rng = np.random.default_rng(1)
    x, w, b = normal(rng, 2, 4, 6, 5), normal(rng, 6, 4, 3, 2), normal(rng, 6)
    got = evaluate(lambda x, w, b: nn.conv2d(x, w, b, data_layout="NHWC"), [x.transpose(0, 2, 3, 1).copy(), w, b])
    expected = _convolution(x, w, 1, 0, 1, 1) + b.reshape(1, -1, 1, 1)
    np.testing.assert_allclose(got.transpose(0, 3, 1, 2), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("stride", "padding", "output_padding"), [(1, 0, 0), (2, 1, 1), (3, 0, 0)])
def test_conv1d_transpose(stride: int, padding: int, output_padding: int) -> None:
    rng = np.random.default_rng(1)
    x, w, b = normal(rng, 2, 3, 4), normal(rng, 3, 5, 3), normal(rng, 5)
    full = np.zeros((2, 5, (4 - 1) * stride + 3), "float32")
    for i in range(4):
        full[:, :, i * stride : i * stride + 3] += np.einsum("nc,cok->nok", x[:, :, i], w)
    full = np.pad(full, [(0, 0), (0, 0), (0, output_padding)])
    expected = full[:, :, padding : full.shape[2] - padding] + b.reshape(1, -1, 1)
    got = evaluate(lambda x, w, b: nn.conv1d_transpose(x, w, b, stride, padding, output_padding), [x, w, b])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_normalizations(n: int) -> None:
    rng = np.random.default_rng(1)
    x, w, b = normal(rng, n, 6, 5), normal(rng, 5), normal(rng, 5)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    normalized = (x - mean) / np.sqrt(var + 1e-5)
    dims = [("n", 6, 5), (5,), (5,)]
    got = evaluate(lambda x, w, b: nn.layer_norm(x, 5, w, b), [x, w, b], dims)
    np.testing.assert_allclose(got, normalized * w + b, rtol=1e-4, atol=1e-4)
    got = evaluate(lambda x: nn.layer_norm(x, 5), [x], dims[:1])
    np.testing.assert_allclose(got, normalized, rtol=1e-4, atol=1e-4)
    got = evaluate(lambda x, w: nn.rms_norm(x, w, [-1], 1e-6), [x, w], dims[:2])
    np.testing.assert_allclose(got, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w, rtol=1e-4, atol=1e-4)
    grouped = x.reshape(n, 2, 15)
    normalized = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    got = evaluate(lambda x: nn.group_norm(x, 2, None, None), [x], dims[:1])
    np.testing.assert_allclose(got, normalized.reshape(x.shape), rtol=1e-4, atol=1e-4)


def attention(q: Any, k: Any, v: Any, mask: Any = None, scale: float | None = None) -> Any:
    """Attention over (batch, length, heads, size)."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * (scale or 1 / math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = scores + mask
    return np.einsum("bhqk,bkhd->bqhd", _softmax(scores), v)


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (1, 1), (1, 6), (5, 5), (4, 7)])
def test_attention(queries: int, keys: int) -> None:
    rng = np.random.default_rng(1)
    q, k, v = normal(rng, 2, queries, 3, 8), normal(rng, 2, keys, 3, 8), normal(rng, 2, keys, 3, 8)
    dims = [("b", "s", 3, 8), ("b", "t", 3, 8), ("b", "t", 3, 8)]
    sdpa = nn.scaled_dot_product_attention
    np.testing.assert_allclose(evaluate(sdpa, [q, k, v], dims), attention(q, k, v), rtol=1e-4, atol=1e-4)
    got = evaluate(lambda q, k, v: sdpa(q, k, v, scale=0.5), [q, k, v], dims)
    np.testing.assert_allclose(got, attention(q, k, v, scale=0.5), rtol=1e-4, atol=1e-4)
    causal = np.where(np.arange(keys)[None] <= np.arange(queries)[:, None], 0, -np.inf).astype("float32")
    got = evaluate(lambda q, k, v: sdpa(q, k, v, is_causal=True), [q, k, v], dims)
    np.testing.assert_allclose(got, attention(q, k, v, causal), rtol=1e-4, atol=1e-4)
    bias = normal(rng, queries, keys)
    got = evaluate(lambda q, k, v, m: sdpa(q, k, v, m), [q, k, v, bias], [*dims, ("s", "t")])
    np.testing.assert_allclose(got, attention(q, k, v, bias), rtol=1e-4, atol=1e-4)
    got = evaluate(lambda q, k, v, m: sdpa(q, k, v, m), [q, k, v, causal == 0], [*dims, ("s", "t")])
    np.testing.assert_allclose(got, attention(q, k, v, causal), rtol=1e-4, atol=1e-4)


def test_interpolate() -> None:
    x = normal(np.random.default_rng(0), 1, 2, 3, 4)
    rows, columns = (np.minimum(np.round(np.arange(2 * n) / 2).astype(int), n - 1) for n in (3, 4))
    nearest = x[:, :, rows][..., columns]
    for dims in ([x.shape], [("n", 2, "h", "w")]):
        np.testing.assert_array_equal(evaluate(lambda t: nn.interpolate(t, scale_factor=2), [x], dims), nearest)
    assert evaluate(lambda t: nn.interpolate(t, size=(5, 6), mode="bilinear"), [x]).shape == (1, 2, 5, 6)
    corners = evaluate(lambda t: nn.interpolate(t, size=5, mode="bicubic", align_corners=True), [x])
    np.testing.assert_allclose(corners[..., ::4, ::4], x[..., ::2, ::3], rtol=1e-5)
    with pytest.raises(UnsupportedError, match="symbolic size n"):
        evaluate(lambda t: nn.interpolate(t, scale_factor=1.5), [x], [("b", "c", "n", "m")])
    with pytest.raises(UnsupportedError, match="antialias"):
        evaluate(lambda t: nn.interpolate(t, size=3, antialias=True), [x])
    with pytest.raises(ValueError, match="either size or scale_factor"):
        evaluate(nn.interpolate, [x])


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("dim", [4, 5])
def test_timestep_embedding(n: int, flip: bool, dim: int) -> None:
    steps = np.arange(n).astype("int64") * 10
    angles = steps[:, None] * np.exp(-math.log(10000) * np.arange(2) / (2 - 1)) * 0.5
    waves = [np.cos(angles), np.sin(angles)] if flip else [np.sin(angles), np.cos(angles)]
    expected = np.pad(np.concatenate(waves, -1), [(0, 0), (0, dim - 4)])
    got = evaluate(lambda x: nn.get_timestep_embedding(x, dim, flip, scale=0.5), [steps], [("n",)])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_empty_is_allocated() -> None:
    got = evaluate(lambda x: nn.empty([2, x.shape[0]], "int32"), [np.ones(3, "float32")], [("n",)])
    assert got.shape == (2, 3)
    assert got.dtype == np.int32


@pytest.mark.parametrize("n", [0, 1, 4])
def test_tensor_expressions_and_loop_functions(n: int) -> None:
    x = normal(np.random.default_rng(0), n, 3)

    @T.prim_func(private=True)
    def scale(var_x: T.handle, var_y: T.handle, factor: T.int64):
        rows = T.int64()
        x = T.match_buffer(var_x, (rows, 3), "float32")
        y = T.match_buffer(var_y, (rows, 3), "float32")
        for i, j in T.grid(rows, 3):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.Cast("float32", factor)

    @T.prim_func(private=True)
    def increment(var_x: T.handle):
        rows = T.int64()
        x = T.match_buffer(var_x, (rows, 3), "float32")
        for i, j in T.grid(rows, 3):
            with T.block("increment"):
                vi, vj = T.axis.remap("SS", [i, j])
                x[vi, vj] = x[vi, vj] + T.float32(1)

    def program(x: nn.Tensor) -> Any:
        doubled = nn.tensor_expr_op(lambda a, f: te.compute(a.shape, lambda *i: a(*i) * f), "times", [x, 2.0])
        scaled = nn.tensor_ir_op(scale, "scale", [doubled, x.shape[0]], out=nn.Tensor.placeholder(x.shape, "float32"))
        return nn.tensor_ir_inplace_op(increment, "increment", [nn.exp(scaled)], 0, out=scaled)

    got = evaluate(program, [x], [("n", 3)])
    np.testing.assert_allclose(got, np.exp(x * 2 * n) + 1, rtol=1e-5)


def test_extern_calls_a_packed_function() -> None:
    def weighted(x: Any, factor: float, name: str, out: Any) -> None:
        assert name == "weights"
        out.copyfrom(x.numpy() * factor)

    pliant.register_func("test_nn.weighted", weighted, override=True)
    x = normal(np.random.default_rng(0), 2, 3)
    got = evaluate(lambda x: nn.extern("test_nn.weighted", [x, 1.5, "weights"], out=x), [x], [("n", 3)])
    np.testing.assert_allclose(got, x * 1.5)


def test_errors_of_operators() -> None:
    x = np.ones((2, 3), "float32")
    with pytest.raises(RuntimeError, match="while a method is exported"):
        nn.relu(nn.Tensor.placeholder([2], "float32"))
    with pytest.raises(UnsupportedError, match="one worker"):
        evaluate(lambda t: nn.ccl_allgather(t, 2), [x])
    with pytest.raises(ValueError, match="op_type"):
        evaluate(lambda t: nn.ccl_allreduce(t, "xor"), [x])
    with pytest.raises(ValueError, match="approximate"):
        evaluate(lambda t: nn.gelu(t, "erf"), [x])
    with pytest.raises(RuntimeError, match="debug=True"):
        evaluate(lambda t: nn.print_(t) or t, [x])
    with pytest.raises(TypeError, match="packed function takes"):
        evaluate(lambda t: nn.extern("f", [object()], out=t), [x])
    with pytest.raises(TypeError, match="got object"):
        evaluate(lambda t: nn.tensor_ir_op(None, "f", [object()], out=t), [x])  # type: ignore[arg-type]
