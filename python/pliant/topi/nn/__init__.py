"""The operators of ``relax.op.nn`` as tensor expressions, and functions under other names of TVM's ``topi``."""

from __future__ import annotations

from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi import _operator_wrapper, tvm_signatures
from pliant.topi._conv import *  # noqa: F403
from pliant.topi._conv import __all__ as _convolutions
from pliant.topi._operator_wrapper import accumulator, axis_of, find
from pliant.topi._pool import *  # noqa: F403
from pliant.topi._pool import __all__ as _pools
from pliant.topi._pad_and_resize import *  # noqa: F403
from pliant.topi._pad_and_resize import __all__ as _spaces
from pliant.topi.nn import utils
from pliant.topi.nn._recurrent import lstm

__all__ = [
    "batch_matmul",
    "batch_norm",
    "bias_add",
    "dense",
    "flatten",
    "layer_norm",
    "leaky_relu",
    "lrn",
    "lstm",
    "matmul",
    "rms_norm",
    "scale_shift_nchw",
    "scale_shift_nchwc",
    "scale_shift_nhwc",
    "utils",
    *_convolutions,
    *_pools,
    *_spaces,
]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return find(f"nn.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_operator_wrapper.names("nn.")})


def leaky_relu(t: Tensor, alpha: float = 0.01) -> Tensor:
    """Leaky ReLU: ``t`` if it is positive, otherwise ``t * alpha``. The same as
    ``relax.op.nn.leakyrelu``.
    """
    return find("nn.leakyrelu")(t, alpha=alpha)


def flatten(data: Tensor) -> Tensor:
    """Combines all dims after the first one: ``relax.op.nn.batch_flatten``."""
    return find("nn.batch_flatten")(data)


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Tensor:
    """The matrix product over the last two dims, with broadcast batch dims, plus a bias. Sums are
    computed in ``out_dtype``."""
    out = tvm_signatures.matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    return out if bias is None else find("add")(out, bias)


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """The batched matrix product of ``tensor_a`` and ``tensor_b``. By default, the matrices of
    ``tensor_b`` are transposed. ``oshape`` is ignored."""
    return matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """Computes a dense layer: ``data @ weight.T + bias``."""
    return matmul(data, weight, bias, out_dtype, transpose_b=True)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Adds the vector ``bias`` to ``data``, broadcast along all axes but ``axis``."""
    after = data.ndim - 1 - axis_of(axis, data.ndim)
    return find("add")(data, find("expand_dims")(bias, list(range(1, after + 1))) if after else bias)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 (TVM's names)
    """Computes ``Input * Scale + Shift``, with one scale and shift for each channel. The channels
    are dim 1.
    """
    wide = [find("expand_dims")(t, [1, 2]) for t in (Scale, Shift)]
    return find("add")(find("multiply")(Input, wide[0]), wide[1])


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 (TVM's names)
    """Computes ``Input * Scale + Shift``, with one scale and shift for each channel. The channels
    are the last dim.
    """
    return find("add")(find("multiply")(Input, Scale), Shift)


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 (TVM's names)
    """Computes ``Input * Scale + Shift``, with one scale and shift for each channel. The channels
    are blocked: ``Input`` has the layout NCHWc, ``Scale`` and ``Shift`` the layout Cc.
    """
    wide = [find("expand_dims")(t, [1, 2]) for t in (Scale, Shift)]
    return find("add")(find("multiply")(Input, wide[0]), wide[1])


def layer_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, axis: Any = None, epsilon: float = 1e-5, **options: Any
) -> Tensor:
    """Layer normalization: ``relax.op.nn.layer_norm``. ``axis`` is TVM's name for ``axes``."""
    return find("nn.layer_norm")(data, gamma, beta, epsilon=epsilon, **_axes(axis, options))


def rms_norm(data: Tensor, weight: Tensor, axis: Any = None, epsilon: float = 1e-5, **options: Any) -> Tensor:
    """Root mean square normalization: ``relax.op.nn.rms_norm``. ``axis`` is TVM's name for
    ``axes``."""
    return find("nn.rms_norm")(data, weight, epsilon=epsilon, **_axes(axis, options))


def _axes(axis: Any, options: dict[str, Any]) -> dict[str, Any]:
    return options if axis is None else {"axes": axis, **options}


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> Any:
    """Batch normalization: ``relax.op.nn.batch_norm``. Returns the result, the mean and the
    variance. By default, ``axis`` is 1 and the moving statistics are used (no training)."""
    return find("nn.batch_norm")(
        data,
        gamma,
        beta,
        moving_mean,
        moving_var,
        axis=1 if axis is None else axis,
        epsilon=1e-5 if epsilon is None else epsilon,
        center=center is not False,
        scale=scale is not False,
        momentum=0.1 if momentum is None else momentum,
        training=bool(training),
    )


def lrn(
    data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2.0
) -> Tensor:
    """Local response normalization (Krizhevsky 2012): ``data / (bias + alpha / size * s) ** beta``,
    where ``s`` is the sum of the squares of ``size`` neighbours along an axis.

    Raises ``ValueError`` if ``size`` is not odd and positive.
    """
    if size < 1 or size % 2 == 0:
        raise ValueError(f"topi.nn.lrn: size must be odd and positive, got {size}")
    axis, dim = axis_of(axis, data.ndim), data.shape[axis]
    k = te.reduce_axis((0, size), "k")

    wide = accumulator(data.dtype)

    def squares(*i: Any) -> Any:
        near = i[axis] + k.var - size // 2
        inside = tir.all(near >= 0, near < dim)
        value = data(*i[:axis], tir.max(tir.min(near, dim - 1), 0), *i[axis + 1 :]).astype(wide)
        return te.sum(tir.if_then_else(inside, value * value, tir.const(0, wide)), axis=k)

    total = te.compute(data.shape, squares, name="lrn_squares")

    def element(*i: Any) -> Any:
        result = data(*i).astype(wide) / tir.power(total(*i) * (alpha / size) + bias, tir.const(beta, wide))
        return result.astype(data.dtype) if wide != data.dtype else result

    return te.compute(data.shape, element, name="lrn")
