"""The operators under `R.image`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def affine_grid(data: Operand, size: Operand, align_corners: bool = True) -> Expr:
    """Creates the grid for grid_sample, of shape (n, 2, h, w) or (n, 3, d, h, w), by applying the affine maps `data`, of shape (n, 2, 3) or (n, 3, 4), to the coordinates of each pixel. Raises an error if a size is negative, or `data` does not have the shape for the number of sizes.

    Implements ONNX AffineGrid.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def col2im(data: Operand, size: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0], dilation: int | Sequence[int] = [1]) -> Expr:
    """The inverse of im2col: sums patches of shape (planes, patch dims..., patch positions...) at their positions in images of shape (planes, size...), for any number of spatial dims. Elements outside of an image are dropped. Raises an error if a size is negative, or `data` does not have one dim plus two for each spatial size.

    Implements ONNX Col2Im.

    Data types: `data` numbers; result as `data`. Tensors of other types raise `CompileError`."""

def grid_sample(data: Operand, grid: Operand, method: str = "bilinear", layout: str = "NCHW", padding_mode: str = "zeros", align_corners: bool = False, pixel_coordinates: bool = False) -> Expr:
    """Samples images of shape (n, c, h, w) or (n, c, d, h, w) at the coordinates in a grid of shape (n, 2, ...) or (n, 3, ...), which holds x, y and z for each element of the result. The coordinates -1 and 1 are the centres of the outermost pixels with `align_corners`, and their outer edges otherwise; with `pixel_coordinates`, they are positions in pixels, where 0 is the centre of the first pixel, and `align_corners` only matters for reflection. Outside of an image are zeros, the border pixels, or the mirrored image ("reflection"). Raises an error if the operands differ in rank or batch size, have neither 4 nor 5 dims, or have 3 spatial dims with "bicubic".

    Implements ONNX GridSample.

    Data types: `data` floats; `grid` floats; result as `data`. Tensors of other types raise `CompileError`."""

def resize2d(data: Operand, size: Operand, roi: Any = None, layout: str = "NCHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round", cubic_alpha: float = -0.75, cubic_exclude: int | Sequence[int] = 0, extrapolation_value: float = 0.0, out_dtype: Any = None, scales: Any = None) -> Expr:
    """Resizes images as ONNX's Resize: with the nearest element ("nearest_neighbor", rounded by `rounding_method`), or with a weighted average of the neighbours ("linear", "cubic"). `roi` (the start of each dim, then the end of each dim) and `extrapolation_value` apply to "tf_crop_and_resize". `scales` has the ratio of output to input size before rounding for each spatial dim. By default, it is the ratio of the sizes. The result has type `out_dtype`, by default that of `data`. Positions are exact or float64, except in the modes "torch_asymmetric" and "torch_half_pixel", which multiply by the reciprocal of the scale in float32 (float64 for float64 `data`), as PyTorch, and ignore `rounding_method`. Raises an error if the layout is invalid or differs in rank from `data`, `size` has neither one value nor one per spatial dim, or `scales` is set for "tf_crop_and_resize".

    Implements ONNX Resize, Upsample.

    Data types: `data` any type."""

def resize3d(data: Operand, size: Operand, roi: Any = None, layout: str = "NCDHW", method: str = "linear", coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "", cubic_alpha: float = -0.75, cubic_exclude: int | Sequence[int] = 0, extrapolation_value: float = 0.0, out_dtype: Any = None, scales: Any = None) -> Expr:
    """Resizes images as ONNX's Resize: with the nearest element ("nearest_neighbor", rounded by `rounding_method`), or with a weighted average of the neighbours ("linear", "cubic"). `roi` (the start of each dim, then the end of each dim) and `extrapolation_value` apply to "tf_crop_and_resize". `scales` has the ratio of output to input size before rounding for each spatial dim. By default, it is the ratio of the sizes. The result has type `out_dtype`, by default that of `data`. Positions are exact or float64, except in the modes "torch_asymmetric" and "torch_half_pixel", which multiply by the reciprocal of the scale in float32 (float64 for float64 `data`), as PyTorch, and ignore `rounding_method`. Raises an error if the layout is invalid or differs in rank from `data`, `size` has neither one value nor one per spatial dim, or `scales` is set for "tf_crop_and_resize".

    Implements ONNX Resize, Upsample.

    Data types: `data` any type."""
