"""The operators under `R.vision`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def all_class_non_max_suppression(boxes: Operand, scores: Operand, max_output_boxes_per_class: Operand, iou_threshold: Operand, score_threshold: Operand, output_format: str = "onnx") -> Expr:
    """Non-maximum suppression of boxes (batch, boxes, 4) for each class of scores (batch, classes, boxes), as ONNX has it: scores above score_threshold, overlaps above iou_threshold. output_format "onnx" gives rows (batch, class, box), then -1, and their number; "tensorflow" gives for each batch rows (class, box), their scores, and their number.

    Serves ONNX NonMaxSuppression."""

def get_valid_counts(data: Operand, score_threshold: float = 0.0, id_index: int | Sequence[int] = 0, score_index: int | Sequence[int] = 1) -> Expr:
    """How many boxes of data (batch, boxes, elements) have a score above the threshold and a class not below 0; these boxes first, in order, then rows of -1; and their indices, then -1. With id_index -1 there is no class."""

def multibox_transform_loc(cls_pred: Operand, loc_pred: Operand, anchor: Operand, clip: bool = False, threshold: float = 0.0, variances: Any = None, keep_background: bool = True) -> Expr:
    """Boxes (ymin, xmin, ymax, xmax) from offsets (x, y, w, h) to anchors (left, top, right, bottom), and the softmax of the class logits, 0 where it is below the threshold or, without keep_background, of class 0."""

def non_max_suppression(data: Operand, valid_count: Operand, indices: Operand, max_output_size: int | Sequence[int] = -1, iou_threshold: float = 0.5, force_suppress: bool = False, top_k: int | Sequence[int] = -1, coord_start: int | Sequence[int] = 2, score_index: int | Sequence[int] = 1, id_index: int | Sequence[int] = 0, return_indices: bool = True, invalid_to_bottom: bool = False) -> Expr:
    """Of the first valid_count boxes of data (batch, boxes, elements), at most top_k, by falling score: those with a score above 0 that overlap no box kept before them, of the same class unless force_suppress, by iou_threshold or more; at most max_output_size. Gives their elements of indices, then -1, and their number; or, without return_indices, the rows, with -1 for score and class of what is not kept, kept ones first with invalid_to_bottom."""

def roi_align(data: Operand, rois: Operand, pooled_size: Any, spatial_scale: Any, sample_ratio: int | Sequence[int] = -1, aligned: bool = False, layout: str = "NCHW", mode: str = "avg") -> Expr:
    """For each bin of each region the mean or the largest of bilinear samples: sample_ratio of them along each side, or as many as the bin has pixels where it is not above 0. aligned shifts by half a pixel.

    Serves ONNX RoiAlign."""

def roi_pool(data: Operand, rois: Operand, pooled_size: Any, spatial_scale: Any, layout: str = "NCHW") -> Expr:
    """For each bin of each region, its corners rounded to pixels, the largest element; 0 where it is empty.

    Serves ONNX MaxRoiPool."""
