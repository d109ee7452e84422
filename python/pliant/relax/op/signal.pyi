"""The operators under `R.signal`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def dft(data: Operand, dft_length: Operand | None = None, axis: int | Sequence[int] = -2, inverse: bool = False, onesided: bool = False) -> Expr:
    """The discrete Fourier transform along an axis of real (last dim 1) or complex numbers (last dim 2). The signal is truncated or padded with zeros to `dft_length`. `onesided` returns the first `dft_length // 2 + 1` frequencies. The inverse is divided by the length. The last dim of the result has size 2. Raises an error if `data` has fewer than 2 dims, its last dim is neither 1 nor 2, the axis is out of range or the last one, or `dft_length` is not positive.

    Corresponds to ``numpy.fft.fft``.

    Implements ONNX DFT.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def stft(signal: Operand, frame_step: Operand, window: Operand | None = None, frame_length: Operand | None = None, onesided: bool = True) -> Expr:
    """The short-time Fourier transform of float signals of shape (batch, length, 1 or 2): the discrete Fourier transforms of frames of `frame_length` elements that start every `frame_step` elements, each multiplied by the window. The result has the shape (batch, frames, frequencies, 2). Raises an error if `signal` does not have 3 dims, `window` and `frame_length` are missing or differ in length, or a complex signal is `onesided`.

    Implements ONNX STFT.

    Data types: `window` as `signal`. Tensors of other types raise `CompileError`."""
