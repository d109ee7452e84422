"""Operators against eager execution, each at several sizes including 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from comparing import check_function
from torch.export import Dim

SIZES = (1, 5, 0, 2)

UNARY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfinv exp exp2 expm1 floor frac log log10 log1p
    log2 logit neg rad2deg reciprocal relu round rsqrt sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc isnan isinf
    isfinite logical_not nan_to_num positive isposinf isneginf""".split()
}
ACTIVATIONS: dict[str, Callable[..., Any]] = {
    name: getattr(F, name)
    for name in """celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus
    softshrink softsign tanhshrink""".split()
}
BINARY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in """add sub mul div atan2 copysign eq ne lt le gt ge floor_divide fmax fmin fmod remainder hypot logaddexp logaddexp2
    logical_and logical_or logical_xor maximum minimum pow true_divide xlogy nextafter heaviside isclose""".split()
}


def check_sizes(function: Callable[..., Any], make: Callable[[int], tuple[torch.Tensor, ...]], sizes: tuple[int, ...] = SIZES) -> None:
    """Compiles a function with a dynamic first dim of all operands."""
    shapes = tuple({0: Dim("n")} for _ in make(3))
    check_function(function, make(3), shapes, [make(n) for n in sizes])


@pytest.mark.parametrize("name", [*UNARY, *ACTIVATIONS])
def test_unary(name: str) -> None:
    torch.manual_seed(0)
    check_sizes({**UNARY, **ACTIVATIONS}[name], lambda n: (torch.randn(n, 6) * 3,))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    torch.manual_seed(0)
    check_sizes(BINARY[name], lambda n: (torch.randn(n, 6).round(decimals=1), torch.randn(n, 6).round(decimals=1)))


INTEGERS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "true division": lambda a, b: a / b,
    "floor division": lambda a, b: a // b,
    "truncated division": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "remainder": lambda a, b: a % b,
    "fmod": torch.fmod,
    "bitwise": lambda a, b: (a & b) | (a ^ 3),
    "mean as float": lambda a, b: (a * 1.5).mean(0) + b,
    "sum": lambda a, b: a.to(torch.int8).sum(1) + b.sum(1),
    "power": lambda a, b: a**2,
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers(name: str, dtype: torch.dtype) -> None:
    def make(n: int) -> tuple[torch.Tensor, ...]:
        return torch.arange(-3 * n, 3 * n).reshape(n, 6).to(dtype), torch.tensor([2, -3, 5, -1, 7, 4]).to(dtype).expand(n, 6).contiguous()

    check_sizes(INTEGERS[name], make)


PROMOTION: dict[str, Callable[..., Any]] = {
    "int with float number": lambda x: x + 1.5,
    "bool sum": lambda x: (x > 0) + (x > 1),
    "bool product": lambda x: (x > 0) * 2,
    "scalar tensor": lambda x: x * torch.tensor(2.5, dtype=torch.float64),
    "where": lambda x: torch.where(x > 0, x, 0.5),
    "int division": lambda x: x / 2,
    "rsub": lambda x: 1 - x,
    "clamp": lambda x: x.clamp(min=0.5),
    "bool mean": lambda x: (x > 0).float().mean(),
}


@pytest.mark.parametrize("name", PROMOTION)
def test_promotion(name: str) -> None:
    check_sizes(PROMOTION[name], lambda n: (torch.arange(n * 2).reshape(n, 2),))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(),
    "sum of dims": lambda x: x.sum((0, -1), keepdim=True),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(-1),
    "max with indices": lambda x: x.max(1),
    "min with indices": lambda x: x.min(2, keepdim=True),
    "argmax": lambda x: (x.argmax(1), x.argmin(2, keepdim=True)),
    "any, all": lambda x: ((x > 0).any(1), (x > 0).all(2, keepdim=True), (x > 5).any()),
    "var": lambda x: (x.var(1), x.std((1, 2), correction=0), torch.var_mean(x, 2, correction=1.5)),
    "logsumexp": lambda x: torch.logsumexp(x, (1, 2)),
    "norms": lambda x: tuple(torch.linalg.vector_norm(x, p, 1) for p in (0, 1, 2, 3, float("inf"), -float("inf"))),
    "cumsum": lambda x: (x.cumsum(1), x.cumprod(-1)),
    "cummax": lambda x: (x.cummax(1), x.cummin(2), torch.logcumsumexp(x, 1)),
    "aminmax": lambda x: torch.aminmax(x, dim=1),
    "count_nonzero": lambda x: torch.count_nonzero(x > 0, 1),
    "nansum": lambda x: torch.nansum(torch.where(x > 1, torch.nan, x), 1),
    "softmax": lambda x: (x.softmax(1), x.log_softmax(-1), x.softmax(0)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    torch.manual_seed(0)
    check_sizes(REDUCTIONS[name], lambda n: (torch.randn(n, 4, 3),))


SHAPES: dict[str, Callable[..., Any]] = {
    "view": lambda x: (x.view(-1), x.flatten(1), x.reshape(x.shape[0] * 2, 2, 6)),
    "transposes": lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x.mT),
    "slices": lambda x: (x[:, 1:], x[:, ::2], x[..., -2:], x[:, 1], x[:, -1]),
    "joins": lambda x: (torch.cat([x, x + 1], 1), torch.stack([x, x], -1)),
    "splits": lambda x: (x.split(3, 1), x.chunk(2, 2), x.unbind(2)),
    "repeats": lambda x: (x.repeat(2, 1, 1), x.repeat_interleave(2, 1), x.tile(2)),
    "expand": lambda x: x[:, :1].expand(-1, 7, -1),
    "flips": lambda x: (x.flip(0, 2), x.roll(1, 1), x.roll((1, -1), (0, 2))),
    "pads": lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, -1, 2), value=3.0), F.pad(x, (1, 1), mode="reflect"), F.pad(x, (2, 1), "replicate")),
    "triangles": lambda x: (x.tril(), x.triu(1), torch.diagonal(x, 0, 1, 2), torch.diag_embed(x)),
    "in-place": lambda x: _overwritten(x.clone()),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "squeeze": lambda x: (x.unsqueeze(1).squeeze(1), x.unsqueeze(-1)),
}


def _overwritten(x: torch.Tensor) -> torch.Tensor:
    x[:, 0] = 1
    x[:, 1:3].mul_(2)
    return x


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    torch.manual_seed(0)
    check_sizes(SHAPES[name], lambda n: (torch.randn(n, 4, 6),))


INDEXING: dict[str, Callable[..., Any]] = {
    "index": lambda x, i: (x[i], x[:, i % 4], x[i, i % 4]),
    "gather": lambda x, i: torch.gather(x, 1, (i % 4)[:, None].expand(-1, 2)),
    "scatter": lambda x, i: x.scatter(1, (i % 4)[:, None], 7.0),
    "scatter_add": lambda x, i: torch.zeros_like(x).scatter_add(0, i[:, None].expand(-1, 4), x),
    "index_add": lambda x, i: (x.index_add(0, i, x), x.index_copy(0, i, x), x.index_fill(0, i, 3.0)),
    "index_put": lambda x, i: (x.index_put((i,), x * 2), x.index_put((i, i % 4), torch.tensor(1.0), accumulate=True)),
    "mask": lambda x, i: (x.masked_fill(x > 0, 0.5), x[x > 0], torch.masked_select(x, x > 0)),
    "nonzero": lambda x, i: torch.nonzero(x > 0),
    "masked write": lambda x, i: _masked(x.clone()),
    "embedding": lambda x, i: F.embedding(i, x),
    "one_hot": lambda x, i: F.one_hot(i % 4, 4),
    "sort": lambda x, i: (x.sort(1), x.sort(1, descending=True), x.argsort(0), x.topk(2, 1), x.kthvalue(2, 1)),
    "searchsorted": lambda x, i: torch.searchsorted(x.sort(1)[0], x),
    "reduce": lambda x, i: x.scatter_reduce(0, i[:, None].expand(-1, 4), x, "amax", include_self=False),
}


def _masked(x: torch.Tensor) -> torch.Tensor:
    x[x > 0.5] = 0
    return x


@pytest.mark.parametrize("name", INDEXING)
def test_indexing(name: str) -> None:
    torch.manual_seed(0)
    sizes = (1, 5, 2) if name in ("sort",) else SIZES
    check_sizes(INDEXING[name], lambda n: (torch.randn(n, 4), torch.randperm(n)), sizes)


LAYERS: dict[str, Callable[..., Any]] = {
    "conv": lambda x: F.conv2d(x, torch.ones(2, 4, 3, 3), torch.ones(2), stride=2, padding=1),
    "same padding": lambda x: F.conv2d(x, torch.ones(2, 4, 2, 3), padding="same", dilation=2),
    "transposed": lambda x: F.conv_transpose2d(x, torch.ones(4, 2, 3, 3), stride=2, padding=1, output_padding=1),
    "grouped": lambda x: F.conv2d(x, torch.ones(8, 1, 3, 3), groups=4),
    "max pool": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max pool indices": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "avg pool": lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, count_include_pad=False, padding=1)),
    "adaptive": lambda x: (F.adaptive_avg_pool2d(x, 3), F.adaptive_max_pool2d(x, (2, 5), return_indices=True)),
    "nearest": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, (5, 9), mode="nearest-exact")),
    "bilinear": lambda x: (F.interpolate(x, scale_factor=1.5, mode="bilinear"), F.interpolate(x, (5, 9), mode="bilinear", align_corners=True)),
    "bicubic": lambda x: F.interpolate(x, (5, 9), mode="bicubic"),
    "grid": lambda x: F.grid_sample(x, F.affine_grid(torch.eye(2, 3).expand(x.shape[0], 2, 3), [x.shape[0], 4, 5, 5], False), align_corners=False),
    "layer norm": lambda x: F.layer_norm(x, (8, 8)),
    "group norm": lambda x: F.group_norm(x, 2, torch.ones(4), torch.zeros(4)),
    "instance norm": lambda x: F.instance_norm(x),
    "batch norm": lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)),
    "pixel shuffle": lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2)),
    "rms norm": lambda x: F.rms_norm(x, (8,)),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(8, 8).tril().bool()),
    "matmul": lambda x: (x @ x, torch.einsum("bchw,bcwk->bhk", x, x), x @ torch.ones(8)),
    "glu": lambda x: F.glu(x, 1),
    "fft": lambda x: (torch.fft.rfft2(x).abs(), torch.fft.irfft(torch.fft.rfft(x), n=8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    torch.manual_seed(0)
    check_sizes(LAYERS[name], lambda n: (torch.randn(n, 4, 8, 8),), (1, 3, 2))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_floats(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> Any:
        return (x * 2).relu(), x.exp(), x.expm1(), x.sum(1), x @ x.mT, x.softmax(1)

    from comparing import Function, check_module

    torch.manual_seed(0)
    inputs = [(torch.randn(n, 4).to(dtype),) for n in (1, 3, 0)]
    tolerance = {"rtol": 2e-2, "atol": 2e-2}
    check_module(Function(function), (torch.randn(3, 4).to(dtype),), (({0: Dim("n")},),), inputs, tolerance)
