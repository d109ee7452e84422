"""The operators under `R.image`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def affine_grid(data: Operand, size: Operand, align_corners: bool = True) -> Expr:
    """The grid (n, 2, h, w) or (n, 3, d, h, w) of the places that affine maps (n, 2, 3) or (n, 3, 4) send each pixel to.

    Serves ONNX AffineGrid."""

def col2im(data: Operand, size: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0], dilation: int | Sequence[int] = [1]) -> Expr:
    """Sums patches (planes, patch dims, positions of patches) at their positions in images (planes, size), for any number of spatial dims. Elements outside of an image are dropped.

    Serves ONNX Col2Im."""

def grid_sample(data: Operand, grid: Operand, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = False) -> Expr:
    """Images (n, c, h, w) or (n, c, d, h, w) at the places of a grid (n, 2, ...) or (n, 3, ...): x, y and z of each element of the result, where -1 and 1 are the centres of the outermost pixels (align_corners) or their outer edges. Outside are zeros, the pixels at the border, or the image mirrored ("reflection").

    Serves ONNX GridSample."""

def resize2d(data: Operand, size: Operand, roi: Any = None, layout: str = "NCHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round", cubic_alpha: float = -0.75, cubic_exclude: int | Sequence[int] = 0, extrapolation_value: float = 0.0, out_dtype: Any = None, scales: Any = None) -> Expr:
    """Images of another size: the nearest element ("nearest_neighbor", by rounding_method), or an average of the neighbours ("linear", "cubic"), as ONNX's Resize has it. roi (start of each dim, then end of each) and extrapolation_value belong to "tf_crop_and_resize". scales are the sizes of the result over those of the data before rounding, one for each spatial dim; by default the quotients of the sizes.

    Serves ONNX Resize, Upsample."""

def resize3d(data: Operand, size: Operand, roi: Any = None, layout: str = "NCDHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.75, cubic_exclude: int | Sequence[int] = 0, extrapolation_value: float = 0.0, out_dtype: Any = None, scales: Any = None) -> Expr:
    """Images of another size: the nearest element ("nearest_neighbor", by rounding_method), or an average of the neighbours ("linear", "cubic"), as ONNX's Resize has it. roi (start of each dim, then end of each) and extrapolation_value belong to "tf_crop_and_resize". scales are the sizes of the result over those of the data before rounding, one for each spatial dim; by default the quotients of the sizes.

    Serves ONNX Resize, Upsample."""
