"""Operands for the gradient test of every operator that has a gradient.

A case is a function of a random generator that returns the operands and attributes of a call. Float operands are differentiated. Integer
and bool operands are not. Values keep away from points where an operator has no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Rng = np.random.Generator


@dataclass
class Case:
    """The operands of a call: arrays, tuples of arrays, or Python values that are passed as they are; and its attributes."""

    operands: list[Any]
    attrs: dict[str, Any] = field(default_factory=dict)


def floats(rng: Rng, *shape: int, low: float = 0.3, high: float = 0.9) -> np.ndarray:
    """Random numbers whose signs are random and whose absolute values are between ``low`` and ``high``."""
    values = rng.uniform(low, high, shape)
    return np.asarray(values * np.where(rng.random(shape) < 0.5, -1.0, 1.0))


def positive(rng: Rng, *shape: int, low: float = 0.3, high: float = 0.9) -> np.ndarray:
    """Random numbers between ``low`` and ``high``."""
    return np.asarray(rng.uniform(low, high, shape))


def distinct(rng: Rng, *shape: int) -> np.ndarray:
    """A random permutation of numbers that differ by at least 0.1."""
    count = int(np.prod(shape))
    return np.asarray((rng.permutation(count).reshape(shape) - count / 2 + 0.3) * 0.1)


def indices(rng: Rng, size: int, *shape: int) -> np.ndarray:
    """Random indices below ``size``."""
    return rng.integers(0, max(size, 1), shape)


SHAPES = [(3, 4), (0, 4), (1, 1), (2, 1, 3), ()]
PAIRS = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((0, 4), (4,)), ((2, 3), ()), ((1,), (5, 1))]


def unary(make: Callable[..., np.ndarray] = floats, **attrs: Any) -> Callable[[Rng], Iterator[Case]]:
    """Cases of an elementwise operator with one operand."""
    return lambda rng: (Case([make(rng, *shape)], attrs) for shape in SHAPES)


def binary(first: Callable[..., np.ndarray] = floats, second: Callable[..., np.ndarray] = floats) -> Callable[[Rng], Iterator[Case]]:
    """Cases of a broadcasting operator with two operands."""
    return lambda rng: (Case([first(rng, *a), second(rng, *b)]) for a, b in PAIRS)


def reduction(make: Callable[..., np.ndarray] = floats) -> Callable[[Rng], Iterator[Case]]:
    """Cases of a reduction."""

    def cases(rng: Rng) -> Iterator[Case]:
        for shape, axis in [((3, 4), None), ((3, 4), 1), ((2, 3, 4), [0, 2]), ((1, 1), 0), ((0, 3), 1)]:
            yield Case([make(rng, *shape)], {"axis": axis, "keepdims": bool(rng.integers(2))})

    return cases


def listed(*cases: Callable[[Rng], Case]) -> Callable[[Rng], Iterator[Case]]:
    """The given cases."""
    return lambda rng: (case(rng) for case in cases)


def conv(n: int, transposed: bool) -> Callable[[Rng], Iterator[Case]]:
    """Cases of a convolution over ``n`` spatial dims."""

    def cases(rng: Rng) -> Iterator[Case]:
        options: list[dict[str, Any]] = [{}, {"padding": 1, "strides": 2}, {"groups": 2, "dilation": 2, "padding": 2}]
        for options_ in options:
            groups = options_.get("groups", 1)
            channels, filters = 2 * groups, 3 * groups
            size = [5, 4, 4][:n]
            weight = (channels, filters // groups) if transposed else (filters, channels // groups)
            yield Case([floats(rng, 2, channels, *size), floats(rng, *weight, *[2] * n)], options_)

    return cases


def pool(n: int, make: Callable[..., np.ndarray]) -> Callable[[Rng], Iterator[Case]]:
    """Cases of pooling over ``n`` spatial dims."""

    def cases(rng: Rng) -> Iterator[Case]:
        size = [5, 4, 4][:n]
        yield Case([make(rng, 2, 2, *size)], {"pool_size": 2, "strides": 2})
        yield Case([make(rng, 1, 2, *size)], {"pool_size": 3, "strides": 1, "padding": 1})

    return cases


def attention(rng: Rng) -> Iterator[Case]:
    """Cases of attention: masks, windows, a bias, groups of heads."""
    for options in ({}, {"causal_mask": "TopLeft"}, {"causal_mask": "BottomRight", "window_size": 2}, {"scale": 0.5}):
        heads, kv_heads = (4, 2) if options.get("scale") else (2, 2)
        q, k, v = floats(rng, 2, 3, heads, 4), floats(rng, 2, 5, kv_heads, 4), floats(rng, 2, 5, kv_heads, 3)
        operands = [q, k, v, floats(rng, 2, 1, 3, 5)] if not options else [q, k, v]
        yield Case(operands, options)


def _norm(operands: int, **attrs: Any) -> Callable[[Rng], Iterator[Case]]:
    def cases(rng: Rng) -> Iterator[Case]:
        for shape in [(2, 3, 4), (1, 3, 1), (0, 3, 4)]:
            yield Case([floats(rng, *shape), *(floats(rng, 3) for _ in range(operands))], attrs)

    return cases


CASES: dict[str, Callable[[Rng], Iterator[Case]]] = {
    **{name: unary() for name in ("abs", "negative", "square", "exp", "sin", "cos", "tanh", "erf", "sigmoid", "tan", "sinh", "cosh")},
    **{name: unary() for name in ("asin", "acos", "atan", "asinh", "atanh")},
    **{name: unary(positive) for name in ("log", "sqrt", "rsqrt")},
    "acosh": unary(lambda rng, *s: positive(rng, *s, low=1.3, high=2.0)),
    "clip": listed(lambda rng: Case([floats(rng, 3, 4), -0.5, 0.6])),
    "astype": unary(dtype="float64"),
    "wrap_param": unary(dtype="float64"),
    **{name: binary() for name in ("add", "subtract", "multiply", "divide", "log_add_exp", "atan2")},
    **{name: binary(distinct, lambda rng, *s: distinct(rng, *s) + 0.037) for name in ("maximum", "minimum")},
    "power": binary(positive),
    "mod": binary(lambda rng, *s: positive(rng, *s, low=0.55, high=0.85), lambda rng, *s: positive(rng, *s, low=0.3, high=0.5)),
    "floor_mod": binary(lambda rng, *s: positive(rng, *s, low=0.55, high=0.85), lambda rng, *s: positive(rng, *s, low=0.3, high=0.5)),
    "where": listed(lambda rng: Case([rng.random((3, 4)) < 0.5, floats(rng, 3, 4), floats(rng, 4)])),
    "masked_fill": listed(lambda rng: Case([floats(rng, 3, 4), rng.random((3, 4)) < 0.5, 0.5])),
    "ewise_fma": listed(lambda rng: Case([floats(rng, 3, 4), floats(rng, 4), floats(rng, 3, 1)])),
    "reshape": listed(lambda rng: Case([floats(rng, 3, 4), (2, 6)]), lambda rng: Case([floats(rng, 0, 4), (4, 0)])),
    "flatten": unary(),
    "expand_dims": listed(lambda rng: Case([floats(rng, 3, 4)], {"axis": [0, 2]})),
    "squeeze": listed(lambda rng: Case([floats(rng, 1, 4, 1)], {"axis": [0]}), lambda rng: Case([floats(rng, 1, 4, 1)])),
    "permute_dims": listed(lambda rng: Case([floats(rng, 2, 3, 4)], {"axes": [2, 0, 1]}), lambda rng: Case([floats(rng, 2, 0)])),
    "broadcast_to": listed(lambda rng: Case([floats(rng, 3, 1), (2, 3, 4)]), lambda rng: Case([floats(rng, 1), (0,)])),
    "repeat": listed(lambda rng: Case([floats(rng, 2, 3)], {"repeats": 2, "axis": 1}), lambda rng: Case([floats(rng, 2, 3)], {"repeats": 3})),
    "tile": listed(lambda rng: Case([floats(rng, 2, 3)], {"repeats": [2, 1, 2]})),
    "collapse_sum_to": listed(lambda rng: Case([floats(rng, 2, 3, 4), (3, 1)])),
    "collapse_sum_like": listed(lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 1, 4)])),
    "concat": listed(
        lambda rng: Case([(floats(rng, 2, 3), floats(rng, 2, 1), floats(rng, 2, 0))], {"axis": 1}),
        lambda rng: Case([(floats(rng, 2, 3), floats(rng, 2))], {"axis": None}),
    ),
    "split": listed(
        lambda rng: Case([floats(rng, 2, 6)], {"indices_or_sections": 3, "axis": 1}),
        lambda rng: Case([floats(rng, 5, 2)], {"indices_or_sections": [1, 3], "axis": 0}),
    ),
    "flip": listed(lambda rng: Case([floats(rng, 3, 4)], {"axis": 1})),
    "stack": listed(lambda rng: Case([(floats(rng, 2, 3), floats(rng, 2, 3))], {"axis": 1}), lambda rng: Case([(floats(rng, 2),)])),
    "meshgrid": listed(lambda rng: Case([(floats(rng, 2), floats(rng, 3))])),
    "reverse_sequence": listed(lambda rng: Case([floats(rng, 3, 4), indices(rng, 4, 3)], {"seq_axis": 1, "batch_axis": 0})),
    "full": listed(lambda rng: Case([(2, 3), floats(rng)])),
    "full_like": listed(lambda rng: Case([floats(rng, 2, 3), floats(rng)])),
    "tril": listed(lambda rng: Case([floats(rng, 2, 3, 4)], {"k": 1})),
    "triu": listed(lambda rng: Case([floats(rng, 3, 3)], {"k": -1})),
    "take": listed(
        lambda rng: Case([floats(rng, 5, 3), indices(rng, 5, 2, 4)], {"axis": 0}),
        lambda rng: Case([floats(rng, 5), indices(rng, 5, 4)]),
        lambda rng: Case([floats(rng, 2, 5), indices(rng, 5, 0)], {"axis": 1}),
    ),
    "strided_slice": listed(lambda rng: Case([floats(rng, 5, 6), (0, 1), (1, 5), (4, 0), (1, -2)])),
    "tensor_scatter": listed(lambda rng: Case([floats(rng, 2, 5, 3), floats(rng, 2, 2, 3), np.array([1, 3])])),
    "gather_elements": listed(lambda rng: Case([floats(rng, 4, 3), indices(rng, 4, 2, 3)], {"axis": 0})),
    "gather_nd": listed(lambda rng: Case([floats(rng, 4, 3, 2), indices(rng, 3, 5, 2)])),
    "index_tensor": listed(lambda rng: Case([floats(rng, 4, 3), (indices(rng, 4, 5), indices(rng, 3, 5))])),
    "scatter_elements": listed(
        lambda rng: Case([floats(rng, 4, 3), np.array([[0, 1, 2], [3, 0, 1]]), floats(rng, 2, 3)]),
        lambda rng: Case([floats(rng, 4, 3), indices(rng, 4, 2, 3), floats(rng, 2, 3)], {"reduction": "add"}),
    ),
    "scatter_nd": listed(
        lambda rng: Case([floats(rng, 4, 3), np.array([[0], [2]]), floats(rng, 2, 3)]),
        lambda rng: Case([floats(rng, 4, 3), np.array([[0], [0]]), floats(rng, 2, 3)], {"reduction": "add"}),
    ),
    "index_put": listed(
        lambda rng: Case([floats(rng, 5), (np.array([0, 3]),), floats(rng, 2)]),
        lambda rng: Case([floats(rng, 5), (np.array([1, 1]),), floats(rng, 2)], {"accumulate": True}),
    ),
    "slice_scatter": listed(lambda rng: Case([floats(rng, 5, 2), floats(rng, 2, 2), 1, 5, 2], {"axis": 0})),
    "matmul": listed(
        lambda rng: Case([floats(rng, 3, 4), floats(rng, 4, 2)]),
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 4, 2)]),
        lambda rng: Case([floats(rng, 1, 3, 4), floats(rng, 5, 4, 2)]),
        lambda rng: Case([floats(rng, 4), floats(rng, 2, 4, 3)]),
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 4)]),
        lambda rng: Case([floats(rng, 4), floats(rng, 4)]),
        lambda rng: Case([floats(rng, 0, 4), floats(rng, 4, 1)]),
    ),
    "linear": listed(
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 5, 4), floats(rng, 5)]),
        lambda rng: Case([floats(rng, 4), floats(rng, 5, 4)]),
    ),
    "outer": listed(lambda rng: Case([floats(rng, 3), floats(rng, 4)])),
    "einsum": listed(
        lambda rng: Case([(floats(rng, 3, 4), floats(rng, 4, 2))], {"subscripts": "ij,jk->ik"}),
        lambda rng: Case([(floats(rng, 2, 3, 4), floats(rng, 2, 4, 5), floats(rng, 5))], {"subscripts": "bij,bjk,k->b"}),
        lambda rng: Case([(floats(rng, 3, 4),)], {"subscripts": "ij->i"}),
        lambda rng: Case([(floats(rng, 3, 3),)], {"subscripts": "ii->i"}),
        lambda rng: Case([(floats(rng, 1, 3), floats(rng, 4, 3, 2))], {"subscripts": "...j,...jk->...k"}),
    ),
    **{name: reduction() for name in ("sum", "mean", "variance", "prod")},
    "std": listed(lambda rng: Case([distinct(rng, 3, 4)], {"axis": 1}), lambda rng: Case([distinct(rng, 2, 3, 2)], {"axis": [0, 2]})),
    **{
        name: listed(lambda rng: Case([distinct(rng, 3, 4)]), lambda rng: Case([distinct(rng, 2, 3, 2)], {"axis": [0, 2], "keepdims": True}))
        for name in ("max", "min")
    },
    **{
        name: listed(
            lambda rng: Case([floats(rng, 3, 4)], {"axis": 1}),
            lambda rng: Case([floats(rng, 3, 4)], {"axis": 0, "exclusive": True}),
            lambda rng: Case([floats(rng, 2, 3)]),
        )
        for name in ("cumsum", "cumprod")
    },
    "sort": listed(lambda rng: Case([distinct(rng, 3, 4)], {"axis": 0, "descending": True})),
    "topk": listed(lambda rng: Case([distinct(rng, 3, 5)], {"k": 2}), lambda rng: Case([distinct(rng, 3, 5)], {"k": 2, "ret_type": "values"})),
    "median": listed(lambda rng: Case([distinct(rng, 3, 5)]), lambda rng: Case([distinct(rng, 3, 5)], {"axis": 1})),
    **{f"nn.{name}": unary() for name in ("relu", "gelu", "gelu_tanh", "silu", "selu", "leakyrelu", "softplus", "dropout")},
    "nn.relu6": unary(lambda rng, *s: np.asarray(floats(rng, *s, low=1.0, high=8.0) + 0.01)),
    "nn.prelu": listed(lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 3)]), lambda rng: Case([floats(rng, 2, 3), floats(rng, 1)])),
    "nn.attention": attention,
    "nn.attention_bias": attention,
    "nn.batch_norm": lambda rng: (
        Case([floats(rng, 4, 3, 2), floats(rng, 3), floats(rng, 3), floats(rng, 3), positive(rng, 3)], {"axis": 1, "training": t})
        for t in (True, False)
    ),
    **{f"nn.conv{n}d": conv(n, False) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": conv(n, True) for n in (1, 2, 3)},
    "nn.group_norm": listed(
        lambda rng: Case([floats(rng, 2, 4, 3), floats(rng, 4), floats(rng, 4)], {"num_groups": 2, "channel_axis": 1, "axes": [2]})
    ),
    "nn.instance_norm": _norm(2, channel_axis=1, axes=[2]),
    "nn.cross_entropy_with_logits": listed(lambda rng: Case([floats(rng, 3, 4), floats(rng, 3, 4)]), lambda rng: Case([floats(rng, 4), floats(rng, 4)])),
    "nn.nll_loss": lambda rng: (
        Case([floats(rng, 3, 4, 2), np.array([[0, 1], [3, -100], [2, 2]]), *weights], {"reduction": reduction_})
        for reduction_ in ("mean", "sum", "none")
        for weights in ([], [positive(rng, 4)])
    ),
    "nn.layer_norm": listed(
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 4), floats(rng, 4)], {"axes": [-1]}),
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 4, 2), floats(rng, 4, 2)], {"axes": [2, 0]}),
        lambda rng: Case([floats(rng, 0, 4), floats(rng, 4), floats(rng, 4)], {"axes": [-1]}),
    ),
    "nn.rms_norm": listed(
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 4)], {"axes": [-1]}),
        lambda rng: Case([floats(rng, 2, 3, 4), floats(rng, 3)], {"axes": [1]}),
    ),
    "nn.pad": listed(
        lambda rng: Case([floats(rng, 3, 4)], {"pad_width": [1, 0, 2, 1]}),
        lambda rng: Case([floats(rng, 3, 4)], {"pad_width": [1, 1, 2, 1], "pad_mode": "reflect"}),
    ),
    **{f"nn.max_pool{n}d": pool(n, distinct) for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": pool(n, floats) for n in (1, 2, 3)},
    **{
        f"nn.adaptive_avg_pool{n}d": (lambda n: lambda rng: iter([Case([floats(rng, 2, 2, *[5, 4, 4][:n])], {"output_size": [3, 2, 2][:n]})]))(n)
        for n in (1, 2, 3)
    },
    "nn.pixel_shuffle": listed(lambda rng: Case([floats(rng, 1, 8, 2, 3)], {"upscale_factor": 2})),
    "nn.batch_flatten": listed(lambda rng: Case([floats(rng, 2, 3, 4)])),
    **{
        f"nn.{name}": listed(lambda rng: Case([floats(rng, 3, 4)]), lambda rng: Case([floats(rng, 2, 3, 4)], {"axis": 1}), lambda rng: Case([floats(rng, 0, 4)]))
        for name in ("softmax", "log_softmax")
    },
    "image.grid_sample": listed(lambda rng: Case([floats(rng, 1, 2, 4, 5), floats(rng, 1, 2, 3, 3, low=0.31, high=0.77)])),
    "image.affine_grid": listed(lambda rng: Case([floats(rng, 2, 2, 3), (3, 4)])),
    "image.resize3d": listed(lambda rng: Case([floats(rng, 1, 1, 3, 4, 2), (2, 5, 3)])),
    "dequantize": listed(lambda rng: Case([rng.integers(-5, 5, (3, 4)).astype("int8"), positive(rng), np.array(1, "int8")], {"out_dtype": "float64"})),
    "builtin.stop_lift_params": unary(),
    "grad.start_checkpoint": unary(),
    "grad.end_checkpoint": unary(),
}
