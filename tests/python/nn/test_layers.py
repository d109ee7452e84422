"""Tests the layers of the nn front end against NumPy, with symbolic batch sizes that include 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn_programs import normal, run_module
from test_nn_operators import _convolution, attention

from pliant.error import UnsupportedError
from pliant.relax.frontend import nn

BATCHES = [0, 1, 3]


def _close(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", BATCHES)
def test_linear_layers(n: int) -> None:
    x = normal(np.random.default_rng(0), n, 2, 6)
    got, p = run_module(nn.Linear(6, 5), [x], [("n", 2, 6)])
    _close(got, x @ p["weight"].T + p["bias"])
    got, p = run_module(nn.Linear(6, 5, bias=False), [x], [("n", 2, 6)])
    assert list(p) == ["weight"]
    _close(got, x @ p["weight"].T)
    got, p = run_module(nn.MultiLinear(6, [3, 1, 4]), [x], [("n", 2, 6)])
    whole = x @ p["weight"].T + p["bias"]
    for part, expected in zip(got, np.split(whole, [3, 4], -1), strict=True):
        _close(part, expected)


def test_linear_with_another_result_type() -> None:
    layer = nn.Linear(4, 3, dtype="float16", out_dtype="float32")
    assert (layer.weight.dtype, layer.bias.dtype) == ("float16", "float32")  # type: ignore[union-attr]
    x = normal(np.random.default_rng(0), 2, 4).astype("float16")
    got, p = run_module(layer, [x])
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, x.astype("float32") @ p["weight"].T.astype("float32") + p["bias"], rtol=1e-2, atol=1e-2)
    layer = nn.Linear(4, 3, out_dtype="float32")
    layer.to("float16")
    assert (layer.weight.dtype, layer.bias.dtype) == ("float16", "float32")  # type: ignore[union-attr]


def test_linear_of_symbolic_size() -> None:
    class Head(nn.Module):
        def __init__(self) -> None:
            self.head = nn.Linear(4, "vocab", bias=False)
            self.table = nn.Embedding("vocab", 4)

        def forward(self, x: nn.Tensor) -> Any:
            return self.head(self.table(x))

    mod, params = Head().export_tvm({"forward": {"x": nn.spec.Tensor(["n"], "int32")}})
    types = [str(p.struct_info) for p in mod["forward"].params]
    assert types[1:] == ['R.Tensor((vocab, 4), dtype="float32")'] * 2
    for _, param in params:
        param.data = np.ones((7, 4), "float32")
    assert [str(dim) for dim in params[0][1].shape] == ["vocab", "4"]


@pytest.mark.parametrize("n", BATCHES)
def test_convolution_layers(n: int) -> None:
    rng = np.random.default_rng(0)
    for layer, x in (
        (nn.Conv1D(4, 6, 3, stride=2, padding=1, groups=2), normal(rng, n, 4, 8)),
        (nn.Conv2D(4, 6, 3, stride=2, padding=1, groups=2), normal(rng, n, 4, 8, 7)),
        (nn.Conv3D(4, 6, 2, stride=2, padding=1, groups=2), normal(rng, n, 4, 5, 4, 4)),
    ):
        got, p = run_module(layer, [x], [("n", *x.shape[1:])])
        _close(got, _convolution(x, p["weight"], 2, 1, 1, 2) + p["bias"].reshape(1, -1, *[1] * (x.ndim - 2)))
    got, p = run_module(nn.ConvTranspose1D(4, 3, 2, stride=2, bias=False), [normal(rng, n, 4, 5)], [("n", 4, 5)])
    assert got.shape == (n, 3, 10)
    with pytest.raises(ValueError, match="cannot be divided into 3 groups"):
        nn.Conv2D(4, 6, 3, groups=3)


@pytest.mark.parametrize("n", BATCHES)
def test_normalization_layers(n: int) -> None:
    x = normal(np.random.default_rng(0), n, 4, 6)

    def normalized(values: Any) -> Any:
        return (values - values.mean(-1, keepdims=True)) / np.sqrt(values.var(-1, keepdims=True) + 1e-5)

    got, p = run_module(nn.LayerNorm(6), [x], [("n", 4, 6)])
    _close(got, normalized(x) * p["weight"] + p["bias"])
    got, p = run_module(nn.LayerNorm(6, elementwise_affine=False), [x], [("n", 4, 6)])
    _close(got, normalized(x))
    got, p = run_module(nn.RMSNorm(6, -1), [x], [("n", 4, 6)])
    _close(got, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["weight"] + p["bias"])
    got, p = run_module(nn.GroupNorm(2, 4), [x], [("n", 4, 6)])
    groups = normalized(x.reshape(n, 2, 12)).reshape(x.shape)
    _close(got, groups * p["weight"][:, None] + p["bias"][:, None])


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (2, 0), (1, 2, 2)])
def test_embedding(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype("int32")
    got, p = run_module(nn.Embedding(9, 4), [x], [tuple("abc"[: len(shape)])])
    _close(got, p["weight"][x])


@pytest.mark.parametrize("n", BATCHES)
def test_activation_layers(n: int) -> None:
    x = normal(np.random.default_rng(0), n, 3)
    for layer, expected in (
        (nn.ReLU(), np.maximum(x, 0)),
        (nn.SiLU(), x / (1 + np.exp(-x))),
        (nn.Identity(), x),
        (nn.Dropout(), x),
        (nn.ModuleList([nn.ReLU(), nn.SiLU()]), np.maximum(x, 0) / (1 + np.exp(-np.maximum(x, 0)))),
    ):
        got, _ = run_module(layer, [x], [("n", 3)])
        _close(got, expected)
    assert run_module(nn.GELU(), [x], [("n", 3)])[0].shape == x.shape


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("cross", [False, True])
def test_attention_layer(n: int, cross: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = normal(rng, n, 5, 8), normal(rng, n, 3, 6)
    layer = nn.Attention(8, 6 if cross else None, heads=2, dim_head=4, norm_num_groups=None if cross else 2)
    dims = [("n", 5, 8), ("n", 3, 6)] if cross else [("n", 5, 8)]
    got, p = run_module(layer, [x, y] if cross else [x], dims)
    source = x
    if not cross:
        groups = x.reshape(n, 5, 2, 4)
        mean, var = groups.mean((1, 3), keepdims=True), groups.var((1, 3), keepdims=True)
        source = ((groups - mean) / np.sqrt(var + 1e-5)).reshape(x.shape) * p["group_norm.weight"] + p["group_norm.bias"]
    keys = y if cross else source
    q, k, v = (
        (t @ p[f"to_{name}.weight"].T).reshape(n, -1, 2, 4) for name, t in (("q", source), ("k", keys), ("v", keys))
    )
    result = attention(q, k, v).reshape(n, 5, 8)
    _close(got, result @ p["to_out.0.weight"].T + p["to_out.0.bias"])


@pytest.mark.parametrize("n", BATCHES)
def test_timestep_layers(n: int) -> None:
    x = np.arange(n).astype("float32")
    got, _ = run_module(nn.Timesteps(8), [x], [("n",)])
    assert got.shape == (n, 8)
    layer = nn.TimestepEmbedding(4, 6, out_dim=5, cond_proj_dim=3, post_act_fn="silu")
    sample, condition = normal(np.random.default_rng(0), n, 4), normal(np.random.default_rng(1), n, 3)
    got, p = run_module(layer, [sample, condition], [("n", 4), ("n", 3)])

    def silu(t: Any) -> Any:
        return t / (1 + np.exp(-t))

    hidden = (sample + condition @ p["cond_proj.weight"].T) @ p["linear_1.weight"].T + p["linear_1.bias"]
    _close(got, silu(silu(hidden) @ p["linear_2.weight"].T + p["linear_2.bias"]))
    with pytest.raises(UnsupportedError, match="act_fn must be 'silu'"):
        nn.TimestepEmbedding(4, 6, act_fn="relu")
