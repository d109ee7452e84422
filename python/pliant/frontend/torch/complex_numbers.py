"""Complex tensors: pairs of real tensors, since Pliant has no complex data types.

Operators that are linear or only rearrange elements are converted once for each part, with the converters of real tensors. All
others are in ``TABLE``. Complex inputs and results of a program are real tensors with a last dim of size 2, as of
``torch.view_as_real``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from pliant.error import UnsupportedError
from pliant.frontend.torch.data_types import dtype_name

if TYPE_CHECKING:
    from pliant.frontend.torch.function_importer import FunctionImporter

Converter = Callable[..., Any]


@dataclass(frozen=True)
class Complex:
    """A complex tensor: two real tensors of the same shape and data type."""

    real: Any
    imag: Any


def part_type(dtype: torch.dtype) -> torch.dtype:
    """The data type of the parts of a complex type; other types are returned unchanged."""
    return dtype.to_real() if dtype.is_complex else dtype


def as_complex(cx: FunctionImporter, value: Any, dtype: str) -> Complex:
    """A tensor or number as a complex tensor whose parts have a data type."""
    if isinstance(value, Complex):
        return Complex(cx.cast(value.real, dtype), cx.cast(value.imag, dtype))
    if isinstance(value, complex):
        return Complex(cx.tensor(value.real, dtype), cx.tensor(value.imag, dtype))
    real = cx.tensor(value, dtype)
    return Complex(real, cx.ops.zeros_like(real))


def from_pairs(cx: FunctionImporter, pairs: Any) -> Complex:
    """A complex tensor from a real one with a last dim of size 2."""
    axis = cx.rank(pairs) - 1
    parts = [cx.ops.squeeze(cx.ops.strided_slice(pairs, axes=[axis], begin=[k], end=[k + 1]), axis=[axis]) for k in range(2)]
    return Complex(*parts)


def to_pairs(cx: FunctionImporter, x: Complex) -> Any:
    """A real tensor with a last dim of size 2."""
    return cx.ops.stack([x.real, x.imag], axis=cx.rank(x.real))


def is_complex_call(arguments: Any, meta: Any) -> bool:
    """Whether an operator reads or creates complex tensors or numbers."""
    if isinstance(meta, torch.Tensor) and meta.is_complex():
        return True
    return any(isinstance(v, Complex | complex) for v in pytree.tree_leaves(arguments))


def convert_complex(cx: FunctionImporter, name: str, convert: Converter | None, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Converts a call with complex operands or results."""
    short = name.removeprefix("aten.").removesuffix(".default")
    rule = TABLE.get(short)
    if rule is not None:
        return rule(cx, *args, **kwargs)
    if short not in LINEAR or convert is None:
        raise UnsupportedError("there is no conversion of this operator for complex tensors")
    return on_parts(cx, convert, args, kwargs)


def on_parts(cx: FunctionImporter, convert: Converter, args: list[Any], kwargs: dict[str, Any]) -> Complex:
    """Applies a converter to the real and to the imaginary parts. Real tensors have imaginary parts of 0."""
    dtype = dtype_name(part_type(cx.out.dtype))

    def part(value: Any, imaginary: bool) -> Any:
        if isinstance(value, Complex):
            return value.imag if imaginary else value.real
        if isinstance(value, complex):
            return value.imag if imaginary else value.real
        if imaginary and cx.is_tensor(value) and cx.dtype(value) == dtype:
            return cx.ops.zeros_like(value)
        return value

    keywords = {k: v for k, v in kwargs.items() if not (isinstance(v, torch.dtype) and v.is_complex)}
    results = []
    for imaginary in (False, True):
        own = [pytree.tree_map(lambda v, i=imaginary: part(v, i), a) for a in args]
        results.append(cx.cast(convert(cx, *own, **keywords), dtype))
    return Complex(*results)


def _parts(cx: FunctionImporter, *operands: Any) -> list[Complex]:
    """Operands as complex tensors of the type of the result."""
    dtype = dtype_name(part_type(cx.out.dtype))
    return [as_complex(cx, x, dtype) for x in operands]


def multiply(cx: FunctionImporter, a: Any, b: Any) -> Complex:
    """Converts ``mul``. Real operands have imaginary parts of 0."""
    return product(cx, cx.ops.multiply, *_parts(cx, a, b))


def product(cx: FunctionImporter, rule: Callable[[Any, Any], Any], x: Complex, y: Complex) -> Complex:
    """The complex product for any bilinear operator."""
    real = cx.ops.subtract(rule(x.real, y.real), rule(x.imag, y.imag))
    return Complex(real, cx.ops.add(rule(x.real, y.imag), rule(x.imag, y.real)))


def matmul(cx: FunctionImporter, a: Any, b: Any) -> Complex:
    """Converts products of matrices and vectors. Real operands have imaginary parts of 0."""
    return product(cx, cx.ops.matmul, *_parts(cx, a, b))


def divide(cx: FunctionImporter, a: Any, b: Any) -> Complex:
    """Converts ``div`` by the conjugate of the divisor. Its squared magnitude is not scaled, and may overflow or underflow."""
    x, y = _parts(cx, a, b)
    size = cx.ops.add(cx.ops.multiply(y.real, y.real), cx.ops.multiply(y.imag, y.imag))
    numerator = product(cx, cx.ops.multiply, x, Complex(y.real, cx.ops.negative(y.imag)))
    return Complex(cx.ops.divide(numerator.real, size), cx.ops.divide(numerator.imag, size))


def absolute(cx: FunctionImporter, x: Complex) -> Any:
    """Converts ``abs`` to a real tensor. The squares of the parts are not scaled, and may overflow or underflow."""
    squares = cx.ops.add(cx.ops.multiply(x.real, x.real), cx.ops.multiply(x.imag, x.imag))
    return cx.ops.sqrt(squares)


def angle(cx: FunctionImporter, x: Complex) -> Any:
    """Converts ``angle`` to a real tensor of angles from -pi to pi."""
    return cx.ops.atan2(x.imag, x.real)


def exponential(cx: FunctionImporter, x: Complex) -> Complex:
    """Converts ``exp`` to polar coordinates: the exponential of the real part, and the imaginary part as the angle."""
    return polar(cx, cx.ops.exp(x.real), x.imag)


def polar(cx: FunctionImporter, size: Any, direction: Any) -> Complex:
    """Converts ``polar``, a complex tensor from magnitudes and angles."""
    return Complex(cx.ops.multiply(size, cx.ops.cos(direction)), cx.ops.multiply(size, cx.ops.sin(direction)))


def logarithm(cx: FunctionImporter, x: Complex) -> Complex:
    """Converts ``log``, the principal value: the imaginary part is the angle, from -pi to pi."""
    return Complex(cx.ops.log(absolute(cx, x)), angle(cx, x))


def conjugate(cx: FunctionImporter, x: Any) -> Any:
    """Converts ``conj``. Real tensors are returned unchanged."""
    return Complex(x.real, cx.ops.negative(x.imag)) if isinstance(x, Complex) else x


def equal(cx: FunctionImporter, a: Any, b: Any) -> Any:
    """Converts ``eq``. One operand may be real or a number; both parts must be equal."""
    dtype = cx.dtype((a if isinstance(a, Complex) else b).real)
    x, y = as_complex(cx, a, dtype), as_complex(cx, b, dtype)
    return cx.ops.logical_and(cx.ops.equal(x.real, y.real), cx.ops.equal(x.imag, y.imag))


def to_type(cx: FunctionImporter, x: Any, *_: Any, **__: Any) -> Any:
    """A conversion between real and complex types. The real part is kept."""
    if not cx.out.is_complex():
        return x.real if isinstance(x, Complex) else x
    return _parts(cx, x)[0]


def _filled(value: float) -> Converter:
    """The converter of operators that create complex tensors of one real number."""

    def convert(cx: FunctionImporter, *_: Any, **__: Any) -> Complex:
        dtype = dtype_name(part_type(cx.out.dtype))
        shape = cx.out_shape
        return Complex(*(cx.ops.full(shape, cx.tensor(v, dtype), dtype) for v in (value, 0.0)))

    return convert


# Fourier transforms


def _transform(cx: FunctionImporter, pairs: Any, axis: int, inverse: bool) -> Any:
    """The discrete Fourier transform of pairs, without division by the length."""
    result = cx.ops.signal.dft(pairs, axis=axis, inverse=inverse)
    if not inverse:
        return result
    return cx.ops.multiply(result, cx.tensor(cx.shape(pairs)[axis], cx.dtype(pairs)))


def _normalized(cx: FunctionImporter, pairs: Any, length: Any, normalization: int) -> Any:
    """Divides by the length, or by its square root. ``normalization`` is torch's: none, by the root, or by the length."""
    if normalization == 0:
        return pairs
    divisor = cx.tensor(length, cx.dtype(pairs))
    return cx.ops.divide(pairs, cx.ops.sqrt(divisor) if normalization == 1 else divisor)


def fft_of_complex(cx: FunctionImporter, x: Complex, dims: Sequence[int], normalization: int, forward: bool) -> Complex:
    """Converts ``_fft_c2c``. Transforms in both directions are scaled by ``normalization`` only."""
    axes = [cx.axis(x.real, d) for d in dims]
    pairs = to_pairs(cx, x)
    for axis in axes:
        pairs = _transform(cx, pairs, axis, inverse=not forward)
    length = math.prod((cx.shape(x.real)[a] for a in axes), start=1)
    return from_pairs(cx, _normalized(cx, pairs, length, normalization))


def fft_of_real(cx: FunctionImporter, x: Any, dims: Sequence[int], normalization: int, onesided: bool) -> Complex:
    """Converts ``_fft_r2c``. With ``onesided``, the last of ``dims`` has only the ``size // 2 + 1`` non-negative frequencies."""
    axes = [cx.axis(x, d) for d in dims]
    pairs = cx.ops.signal.dft(cx.ops.expand_dims(x, cx.rank(x)), axis=axes[-1], onesided=onesided)
    for axis in axes[:-1]:
        pairs = _transform(cx, pairs, axis, inverse=False)
    length = math.prod((cx.shape(x)[a] for a in axes), start=1)
    return from_pairs(cx, _normalized(cx, pairs, length, normalization))


def fft_to_real(cx: FunctionImporter, x: Complex, dims: Sequence[int], normalization: int, size: Any) -> Any:
    """The inverse transform of the first half of a Hermitian spectrum."""
    *others, last = [cx.axis(x.real, d) for d in dims]
    for axis in others:
        x = from_pairs(cx, _transform(cx, to_pairs(cx, x), axis, inverse=True))
    half = size // 2 + 1
    pairs = to_pairs(cx, x)
    head = cx.ops.strided_slice(pairs, axes=[last], begin=[0], end=[half])
    mirrored = cx.ops.flip(cx.ops.strided_slice(pairs, axes=[last], begin=[1], end=[size - half + 1]), last)
    sign = cx.constant(torch.tensor([1.0, -1.0]).to(part_type(cx.out.dtype)))
    full = cx.ops.concat([head, cx.ops.multiply(mirrored, sign)], axis=last)
    result = _transform(cx, full, last, inverse=True)
    length = math.prod((cx.shape(x.real)[a] for a in others), start=1) * size
    return from_pairs(cx, _normalized(cx, result, length, normalization)).real


LINEAR = frozenset(
    """add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Tensor rsub.Scalar neg negative sum sum.dim_IntList mean mean.dim view
    reshape _unsafe_view _reshape_alias flatten.using_ints squeeze squeeze.dim squeeze.dims unsqueeze expand permute transpose.int t
    slice.Tensor select.int cat concat stack split.Tensor split_with_sizes flip roll repeat tile constant_pad_nd pad unfold diagonal
    select_scatter slice_scatter tril triu as_strided index.Tensor index_select gather take where.self alias detach clone contiguous
    cumsum trace diag_embed broadcast_to masked_fill.Scalar index_put lift_fresh_copy""".split()
)
"""Operators that act on both parts in the same way."""

TABLE: dict[str, Converter] = {
    **dict.fromkeys("mul.Tensor mul.Scalar".split(), multiply),
    **dict.fromkeys("div.Tensor div.Scalar true_divide.Tensor".split(), divide),
    "reciprocal": lambda cx, x: divide(cx, 1.0, x),
    **dict.fromkeys("mm bmm mv dot matmul".split(), matmul),
    **dict.fromkeys("abs absolute".split(), absolute),
    "angle": angle,
    "exp": exponential,
    "log": logarithm,
    "polar": polar,
    "complex": lambda cx, real, imag: Complex(*(cx.ops.broadcast_to(x, cx.out_shape) for x in (real, imag))),
    "real": lambda cx, x: x.real,
    "imag": lambda cx, x: x.imag,
    **dict.fromkeys("conj _conj conj_physical _conj_physical".split(), conjugate),
    **dict.fromkeys("resolve_conj resolve_neg".split(), lambda cx, x: x),
    "view_as_real": to_pairs,
    "view_as_real_copy": to_pairs,
    "view_as_complex": from_pairs,
    "view_as_complex_copy": from_pairs,
    "eq.Tensor": equal,
    "eq.Scalar": equal,
    "ne.Tensor": lambda cx, a, b: cx.ops.logical_not(equal(cx, a, b)),
    **dict.fromkeys("_to_copy to.dtype prims.convert_element_type type_as".split(), to_type),
    **dict.fromkeys("zeros zeros_like new_zeros empty.memory_format empty_like new_empty".split(), _filled(0.0)),
    **dict.fromkeys("ones ones_like new_ones".split(), _filled(1.0)),
    "_fft_c2c": fft_of_complex,
    "_fft_r2c": fft_of_real,
    "_fft_c2r": fft_to_real,
}
"""Converters for complex operands or results, by the name of the overload."""
