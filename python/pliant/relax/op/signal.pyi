"""The operators under `R.signal`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def dft(data: Operand, dft_length: Operand | None = None, axis: int | Sequence[int] = -2, inverse: bool = False, onesided: bool = False) -> Expr:
    """The discrete Fourier transform along an axis, of numbers that are real (last dim 1) or complex (last dim 2). The signal is cut or padded with zeros to dft_length; onesided gives the first dft_length // 2 + 1 frequencies; inverse divides by the length.

    As ``numpy.fft.fft``.

    Serves ONNX DFT."""

def stft(signal: Operand, frame_step: Operand, window: Operand | None = None, frame_length: Operand | None = None, onesided: bool = True) -> Expr:
    """The discrete Fourier transforms of windows of frame_length that begin every frame_step elements of the signals (batch, length, 1 or 2), each multiplied by the window.

    Serves ONNX STFT."""
