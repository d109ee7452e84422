"""The operators under `R.vision`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def all_class_non_max_suppression(boxes: Operand, scores: Operand, max_output_boxes_per_class: Operand, iou_threshold: Operand, score_threshold: Operand, output_format: str = "onnx") -> Expr:
    """ONNX's non-maximum suppression of boxes (batch, boxes, 4) for each class of scores (batch, classes, boxes). Boxes with a score above `score_threshold` are considered, and overlaps (IoU) above `iou_threshold` are suppressed. The output format "onnx" returns rows (batch, class, box), followed by -1, and their number. "tensorflow" returns, for each batch, rows (class, box), their scores, and their number. Raises an error if the numbers of batches or boxes differ, or a limit is not one number.

    Implements ONNX NonMaxSuppression.

    Data types: `boxes` floats; `scores` as `boxes`; `max_output_boxes_per_class` integers; `iou_threshold` any type; `score_threshold` any type. Tensors of other types raise `CompileError`."""

def get_valid_counts(data: Operand, score_threshold: float = 0.0, id_index: int | Sequence[int] = 0, score_index: int | Sequence[int] = 1) -> Expr:
    """Filters the boxes of `data` (batch, boxes, elements) whose score exceeds the threshold and whose class is not negative. Returns their number (int32), the boxes in order followed by rows of -1, and their indices (int32) followed by -1. With `id_index` -1, there is no class. Raises an error if `data` does not have 3 dims, or an index attribute is out of range for its last dim.

    Data types: `data` floats. Tensors of other types raise `CompileError`."""

def multibox_transform_loc(cls_pred: Operand, loc_pred: Operand, anchor: Operand, clip: bool = False, threshold: float = 0.0, variances: Any = None, keep_background: bool = True) -> Expr:
    """Decodes boxes (ymin, xmin, ymax, xmax) as in SSD (Liu et al., 2016): from offsets (x, y, w, h) to anchors (left, top, right, bottom). Also returns the softmax of the class logits, with 0 for scores below the threshold and, without `keep_background`, for class 0. Raises an error if the operands do not have the shapes (batch, classes, n), (batch, 4 * n) and (1, n, 4).

    Data types: `cls_pred` floats; `loc_pred` as `cls_pred`; `anchor` as `cls_pred`. Tensors of other types raise `CompileError`."""

def non_max_suppression(data: Operand, valid_count: Operand, indices: Operand, max_output_size: int | Sequence[int] = -1, iou_threshold: float = 0.5, force_suppress: bool = False, top_k: int | Sequence[int] = -1, coord_start: int | Sequence[int] = 2, score_index: int | Sequence[int] = 1, id_index: int | Sequence[int] = 0, return_indices: bool = True, invalid_to_bottom: bool = False) -> Expr:
    """Non-maximum suppression of the first `valid_count` boxes of `data` (batch, boxes, elements). The `top_k` boxes with the highest scores are considered in descending order. A box is kept if its score is positive and its overlap (IoU) with each kept box of the same class, or of any class with `force_suppress`, is below `iou_threshold`, until `max_output_size` boxes are kept. Returns the elements of `indices` for the kept boxes, followed by -1, and their number, both int32. Without `return_indices`, returns the rows, with -1 as score and class of suppressed boxes; with `invalid_to_bottom`, the kept rows are first. Raises an error if the numbers of batches or boxes differ, or `valid_count` or an index attribute is out of range.

    Data types: `data` floats; `valid_count` integers; `indices` integers. Tensors of other types raise `CompileError`."""

def roi_align(data: Operand, rois: Operand, pooled_size: Any, spatial_scale: Any, sample_ratio: int | Sequence[int] = -1, aligned: bool = False, layout: str = "NCHW", mode: str = "avg") -> Expr:
    """RoI align (He et al., 2017): for each bin of each region, the mean or the maximum of bilinear samples. There are `sample_ratio` samples along each side, or one per pixel of the bin if it is not positive. `aligned` shifts the coordinates by half a pixel. A row of `rois` is (image, x1, y1, x2, y2). Raises an error if `data` does not have 4 dims, `rois` does not have 5 columns, the image of a region is out of range, or `spatial_scale` is not positive.

    Implements ONNX RoiAlign.

    Data types: `data` floats; `rois` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def roi_pool(data: Operand, rois: Operand, pooled_size: Any, spatial_scale: Any, layout: str = "NCHW") -> Expr:
    """RoI max pooling (Girshick, 2015): the maximum of each bin of each region, whose corners are rounded to pixels. An empty bin results in 0. A row of `rois` is (image, x1, y1, x2, y2). Raises an error if `data` does not have 4 dims, `rois` does not have 5 columns, the image of a region is out of range, or `spatial_scale` is not positive.

    Implements ONNX MaxRoiPool.

    Data types: `data` floats; `rois` as `data`; result as `data`. Tensors of other types raise `CompileError`."""
