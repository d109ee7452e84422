"""The operators under `R.signal`, generated from their declarations (see docs/reference/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def dft(data: Operand, dft_length: Operand | None = None, axis: int | Sequence[int] = -2, inverse: bool = False, onesided: bool = False) -> Expr:
    """The discrete Fourier transform along an axis of real (last dim 1) or complex numbers (last dim 2). The signal is truncated or padded with zeros to `dft_length`. `onesided` returns the first `dft_length // 2 + 1` frequencies. The inverse is divided by the length.

    Corresponds to ``numpy.fft.fft``.

    Implements ONNX DFT."""

def stft(signal: Operand, frame_step: Operand, window: Operand | None = None, frame_length: Operand | None = None, onesided: bool = True) -> Expr:
    """The short-time Fourier transform of signals of shape (batch, length, 1 or 2): the discrete Fourier transforms of frames of `frame_length` elements that start every `frame_step` elements, each multiplied by the window.

    Implements ONNX STFT."""
