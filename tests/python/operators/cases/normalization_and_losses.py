"""Cases of batch, group and instance normalization, and of losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases
from .convolution import double


def along(values: Array, axis: int, ndim: int) -> Array:
    """Reshapes a vector so that it broadcasts along an axis."""
    return values.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])


def batch_norm(
    a: Array, gamma: Array, beta: Array, mean: Array, var: Array, axis: int, training: bool = True, **given: Any
) -> list[Array]:
    momentum, epsilon = given.get("momentum", 0.1), given.get("epsilon", 1e-5)
    others = tuple(i for i in range(a.ndim) if i != axis % a.ndim)
    own_mean, own_var = (a.mean(others), a.var(others)) if training else (mean, var)
    y = (a - along(own_mean, axis, a.ndim)) / np.sqrt(along(own_var, axis, a.ndim) + epsilon)
    if given.get("scale", True):
        y = y * along(gamma, axis, a.ndim)
    if given.get("center", True):
        y = y + along(beta, axis, a.ndim)
    if not training:
        return [y, mean, var]
    return [y, mean * (1 - momentum) + own_mean * momentum, var * (1 - momentum) + own_var * momentum]


def group_norm(
    a: Array, gamma: Array, beta: Array, groups: int, channel: int, axes: tuple[int, ...]
) -> Array | Refusal:
    if a.shape[channel] % groups:
        return Refusal("multiple of num_groups")
    n = channel % a.ndim
    split = a.reshape(*a.shape[:n], groups, a.shape[n] // groups, *a.shape[n + 1 :])
    over = (n + 1, *(i % a.ndim + (i % a.ndim > n) for i in axes))
    y = (split - split.mean(over, keepdims=True)) / np.sqrt(split.var(over, keepdims=True) + 1e-5)
    return y.reshape(a.shape) * along(gamma, channel, a.ndim) + along(beta, channel, a.ndim)


def instance_norm(a: Array, gamma: Array, beta: Array, channel: int, axes: tuple[int, ...]) -> Array:
    y = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-5)
    return y * along(gamma, channel, a.ndim) + along(beta, channel, a.ndim)


def each(reference: Any) -> Any:
    """Wraps a NumPy reference function with several results so that it computes in float64 and rounds
    to the type of the first input."""
    return lambda *inputs: [np.asarray(v).astype(inputs[0].dtype) for v in reference(*(i.astype("f8") for i in inputs))]


def norms() -> list[Case]:
    batch = (f32("g", "c"), f32("b", "c"), f32("mean", "c"), f32("var", "c", draw=positive))
    image = (x("n", "c", "h", 3), *batch)
    call = "R.nn.batch_norm(x, g, b, mean, var"
    pair = (f32("g", "c"), f32("b", "c"))
    more = {"sizes": (0, 1, 2, 3, 4, 6), "runs": 8, "cancels": True, "tolerance": 4.0}
    return [
        Case("batch_norm_training", image, f"{call}, axis=1)", each(lambda *a: batch_norm(*a, axis=1)), **more),
        Case(
            "batch_norm_momentum",
            image,
            f"{call}, 1, epsilon=0.01, momentum=0.75)",
            each(lambda *a: batch_norm(*a, axis=1, epsilon=0.01, momentum=0.75)),
            **more,
        ),
        Case(
            "batch_norm_inference",
            image,
            f"{call}, axis=1, training=False)",
            each(lambda *a: batch_norm(*a, axis=1, training=False)),
            **more,
        ),
        Case(
            "batch_norm_plain_last",
            (x("n", "c"), *batch),
            f"{call}, axis=-1, center=False, scale=False)",
            each(lambda *a: batch_norm(*a, axis=-1, center=False, scale=False)),
            **more,
        ),
        Case(
            "group_norm",
            (x("n", "c", "h", 3), *pair),
            "R.nn.group_norm(x, g, b, num_groups=2, channel_axis=1, axes=[2, 3])",
            double(lambda *a: group_norm(*a, 2, 1, (2, 3))),
            **more,
        ),
        Case(
            "group_norm_of_constants",
            (x("n", 6, "w"), f32("g", 6), f32("b", 6)),
            "R.nn.group_norm(x, g, b, 3, 1, [2])",
            double(lambda *a: group_norm(*a, 3, 1, (2,))),
            **more,
        ),
        Case(
            "group_norm_channels_last",
            (x("n", "w", 4), f32("g", 4), f32("b", 4)),
            "R.nn.group_norm(x, g, b, num_groups=2, channel_axis=-1, axes=[1])",
            double(lambda *a: group_norm(*a, 2, -1, (1,))),
            **more,
        ),
        Case(
            "instance_norm",
            (x("n", "c", "h", 3), *pair),
            "R.nn.instance_norm(x, g, b, channel_axis=1, axes=[2, 3])",
            double(lambda *a: instance_norm(*a, 1, (2, 3))),
            **more,
        ),
        Case(
            "instance_norm_float16",
            tuple(Param(p, "float16", d) for p, d in (("x", ("n", 3, "h")), ("g", (3,)), ("b", (3,)))),
            "R.nn.instance_norm(x, g, b, 1, [2])",
            double(lambda *a: instance_norm(*a, 1, (2,))),
            **more,
        ),
    ]


# ---- losses ----


def nll_loss(p: Array, t: Array, w: Array | None, reduction: str, ignored: int = -100) -> Array | Refusal:
    classes = p.shape[1] if p.ndim > 1 else p.shape[0]
    counts = t != ignored
    if np.any(counts & ((t < 0) | (t >= classes))):
        return Refusal("relax.nn.nll_loss: target ")
    weights = np.ones(classes) if w is None else w.astype("f8")
    if classes == 0:
        chosen, weight = np.zeros(t.shape), np.zeros(t.shape)
    else:
        safe = np.where(counts, t, 0)
        rows = np.moveaxis(p.astype("f8"), 1, -1) if p.ndim > 1 else p.astype("f8")
        chosen = np.take_along_axis(rows, safe[..., None], -1)[..., 0]
        weight = np.where(counts, weights[safe], 0.0)
    loss = np.where(counts, -chosen * weight, 0.0)
    if reduction == "mean":
        return np.asarray(loss.sum() / weight.sum()).astype(p.dtype)
    return np.asarray(loss if reduction == "none" else loss.sum()).astype(p.dtype)


def classes(low: int, high: int) -> Draw:
    """Draws class indices, including some that are the ignored class -100."""
    return lambda rng, shape: np.where(rng.random(shape) < 0.2, -100, rng.integers(low, high, shape))


def losses() -> list[Case]:
    cases = []
    for reduction in ("none", "sum", "mean"):
        words = f'reduction="{reduction}"'
        cases += [
            Case(
                f"nll_loss_{reduction}",
                (x("n", 5), i64("t", "n", draw=classes(0, 5))),
                f"R.nn.nll_loss(x, t, {words})",
                lambda p, t, r=reduction: nll_loss(p, t, None, r),
                tolerance=4.0,
            ),
            Case(
                f"nll_loss_weighted_{reduction}",
                (x("n", "c", "d"), i64("t", "n", "d", draw=classes(0, 3)), f32("v", "c", draw=positive)),
                f"R.nn.nll_loss(x, t, v, {words})",
                lambda p, t, v, r=reduction: nll_loss(p, t, v, r),
                sizes=(0, 1, 2, 3, 7),
                tolerance=4.0,
            ),
        ]
    return [
        *cases,
        Case(
            "nll_loss_of_one",
            (x("c"), Param("t", "int32", (), between(-1, 3))),
            "R.nn.nll_loss(x, t, ignore_index=-1)",
            lambda p, t: nll_loss(p, t, None, "mean", -1),
        ),
        Case(
            "cross_entropy_with_logits",
            (x("n", "m"), y("n", "m")),
            "R.nn.cross_entropy_with_logits(x, y)",
            double(lambda a, b: np.asarray(-(a * b).sum() / len(a))),
            cancels=True,
            tolerance=20.0,
        ),
        Case(
            "cross_entropy_with_logits_of_vectors",
            (x("n"), y("n")),
            "R.nn.cross_entropy_with_logits(x, y)",
            double(lambda a, b: np.asarray(-(a * b).sum())),
            cancels=True,
            tolerance=20.0,
        ),
    ]


CASES: list[Case] = [*norms(), *losses()]

image = x("n", 4, "h", "w")
four = (f32("g", 4), f32("b", 4), f32("mean", 4), f32("var", 4))
BATCH, GROUP = "R.nn.batch_norm(x, g, b, mean, var", "R.nn.group_norm(x, g, b, "
INSTANCE = "R.nn.instance_norm(x, g, b, "
REFUSED: list[Refused] = [
    Refused("batch_norm_axis", (image, *four), f"{BATCH}, axis=4)", "axis 4 is out of range"),
    Refused("batch_norm_size", (x("n", 5), *four), f"{BATCH}, axis=1)", "gamma has size 4 for axis 1"),
    Refused("batch_norm_momentum", (image, *four), f"{BATCH}, axis=1, momentum=2.0)", "momentum must be between"),
    Refused("batch_norm_type", (i64("x", "n", 4), *four), f"{BATCH}, axis=1)", "must be a tensor of floats"),
    Refused("batch_norm_axis_missing", (image, *four), f"{BATCH})", "axis"),
    Refused("group_norm_groups", (image, *four[:2]), f"{GROUP}3, 1, [2, 3])", "must be a multiple of num_groups"),
    Refused("group_norm_no_groups", (image, *four[:2]), f"{GROUP}0, 1, [2, 3])", "num_groups must be at least 1"),
    Refused("group_norm_axes", (image, *four[:2]), f"{GROUP}2, 1, [1, 2])", "must not name the channel axis"),
    Refused("group_norm_axis", (image, *four[:2]), f"{GROUP}2, 1, [4])", "axis 4 is out of range"),
    Refused("group_norm_rank", (image, f32("g", 4, 4), f32("b", 4)), f"{GROUP}2, 1, [2])", "gamma must have 1 dims"),
    Refused("instance_norm_axes", (image, *four[:2]), f"{INSTANCE}1, [2, 2])", "axis 2 appears twice"),
    Refused("instance_norm_size", (x("n", 5, 2), *four[:2]), f"{INSTANCE}1, [2])", "gamma has size 4 for axis 1"),
    Refused("nll_loss_ranks", (x("n", 5), i64("t", "n", 5)), "R.nn.nll_loss(x, t)", "targets must have the dims of"),
    Refused("nll_loss_shapes", (x(3, 5), i64("t", 4)), "R.nn.nll_loss(x, t)", "must have the shape of predictions"),
    Refused("nll_loss_targets", (x("n", 5), f32("t", "n")), "R.nn.nll_loss(x, t)", "must be a tensor of integers"),
    Refused("nll_loss_weights", (x("n", 5), i64("t", "n"), y(4)), "R.nn.nll_loss(x, t, y)", "weights has size 4"),
    Refused(
        "nll_loss_reduction",
        (x("n", 5), i64("t", "n")),
        'R.nn.nll_loss(x, t, reduction="max")',
        'reduction must be one of "none", "sum", "mean", but is "max"',
    ),
    Refused("cross_entropy_ranks", (x("n"), y("n", "n")), "R.nn.cross_entropy_with_logits(x, y)", "must have the same rank"),
    Refused("cross_entropy_shapes", (x(3), y(4)), "R.nn.cross_entropy_with_logits(x, y)", "must have the same shape"),
]
