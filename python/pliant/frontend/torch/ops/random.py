"""Random numbers. They come from torch's default generator, so that they are those of eager execution for the same seed."""

from __future__ import annotations

from typing import Any

from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def _in_torch(cx: FunctionImporter, *_: Any, **__: Any) -> Any:
    from pliant.frontend.torch.host_calls import call_in_torch

    assert cx.node is not None
    return call_in_torch(cx, cx.node, pure=False)


def dropout(cx: FunctionImporter, x: Any, rate: float, train: bool) -> Any:
    """Converts ``dropout`` to a call of torch in training, and to the identity in inference or if ``rate`` is 0."""
    return _in_torch(cx) if train and rate != 0.0 else x


def native_dropout(cx: FunctionImporter, x: Any, rate: float, train: bool | None) -> Any:
    """Converts ``native_dropout`` like ``dropout``. Also returns the mask of kept elements. ``train=None`` means training."""
    if train is False or rate == 0.0:
        return x, cx.ops.ones_like(x, dtype="bool")
    return _in_torch(cx)


GENERATORS = """rand randn randint randint.low rand_like randn_like randint_like randint_like.low_dtype randperm bernoulli
bernoulli.p bernoulli.Tensor normal.Tensor_float normal.Tensor_Tensor normal.float_Tensor normal.float_float normal_functional
uniform exponential multinomial poisson binomial cauchy geometric log_normal random random.from random.to rrelu_with_noise
_standard_gamma"""

TABLE: dict[str, Converter] = {
    **dict.fromkeys(GENERATORS.split(), _in_torch),
    "dropout": dropout,
    "native_dropout": native_dropout,
}
"""The converters of this family."""
