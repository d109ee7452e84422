"""Cases of neural network layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operator_case import *  # the vocabulary of cases


def log_softmax(a: Array, axis: int) -> Any:
    shifted = a - a.max(axis, keepdims=True, initial=-1e9)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def layer_norm(a: Array, gamma: Array, beta: Array) -> Any:
    centred = a - a.mean(-1, keepdims=True)
    return centred / np.sqrt(a.var(-1, keepdims=True) + 1e-5) * gamma + beta


def rms_norm(a: Array, gamma: Array) -> Any:
    return a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-5) * gamma


LAYERS: list[Case] = [
    *(
        Case(
            f"softmax_{axis}",
            (x("n", "m", "s"),),
            f"R.nn.softmax(x, axis={axis})",
            rounded(lambda a, v=axis: np.exp(log_softmax(a, v))),
            SMALL,
            runs=10,
        )
        for axis in (-1, 0, 1)
    ),
    *(
        Case(
            f"log_softmax_{axis}",
            (x("n", "m", "s"),),
            f"R.nn.log_softmax(x, axis={axis})",
            rounded(lambda a, v=axis: log_softmax(a, v)),
            SMALL,
            runs=10,
        )
        for axis in (-1, 0, 1)
    ),
    Case(
        "layer_norm",
        (x("b", "s", 24), f32("g", 24), f32("h", 24)),
        "R.nn.layer_norm(x, g, h, axes=[-1])",
        rounded(layer_norm),
        runs=12,
        cancels=True,
    ),
    Case(
        "layer_norm_symbolic",
        (x("b", "s", "h"), f32("g", "h"), f32("k", "h")),
        "R.nn.layer_norm(x, g, k, axes=[-1], epsilon=1e-5)",
        rounded(layer_norm),
        runs=12,
        cancels=True,
    ),
    Case("rms_norm", (x("b", "h"), f32("g", "h")), "R.nn.rms_norm(x, g, axes=[-1])", rounded(rms_norm)),
]

CASES = LAYERS
