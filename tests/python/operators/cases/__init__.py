"""The operators with their NumPy equivalents: one file of cases for each group of operators."""

from __future__ import annotations

from . import (
    attention,
    convolution,
    detection_operators,
    dynamic_shapes,
    einsum_quantize_random,
    elementwise,
    image_resizing_and_sampling,
    indexing,
    matrix_products,
    movement_and_selection,
    neural_network_layers,
    normalization_and_losses,
    pooling_and_padding,
    rearrangement,
    recurrent_and_fourier,
    reductions,
    scans_and_sorting,
    tensor_creation,
)
from .operator_case import Array, Case, Param, Refusal, Refused

__all__ = ["CASES", "REFUSED", "Array", "Case", "Param", "Refusal", "Refused"]

GROUPS = (
    elementwise,
    movement_and_selection,
    rearrangement,
    indexing,
    tensor_creation,
    reductions,
    scans_and_sorting,
    matrix_products,
    einsum_quantize_random,
    neural_network_layers,
    normalization_and_losses,
    attention,
    convolution,
    pooling_and_padding,
    image_resizing_and_sampling,
    recurrent_and_fourier,
    detection_operators,
    dynamic_shapes,
)

CASES: list[Case] = [case for group in GROUPS for case in group.CASES]
REFUSED: list[Refused] = [case for group in GROUPS for case in getattr(group, "REFUSED", [])]
