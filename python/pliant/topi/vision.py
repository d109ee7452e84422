"""The operators of ``relax.op.vision`` (object detection) as tensor expressions, and functions under other names of TVM's
``topi``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant._core import Tensor
from pliant.topi import _operator_wrapper
from pliant.topi._operator_wrapper import find

__all__ = ["roi_align_nchw", "roi_align_nhwc", "roi_pool_nchw"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return find(f"vision.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_operator_wrapper.names("vision.")})


def _align(layout: str, data: Tensor, rois: Tensor, pooled_size: Any, scale: float, mode: Any, ratio: int) -> Tensor:
    known = {0: "avg", 1: "max", b"avg": "avg", b"max": "max", "avg": "avg", "max": "max"}
    if mode not in known:
        raise ValueError(f"roi_align: mode must be 'avg' or 'max', got {mode!r}")
    return find("vision.roi_align")(
        data, rois, pooled_size=pooled_size, spatial_scale=scale, sample_ratio=ratio, layout=layout, mode=known[mode]
    )


def roi_align_nchw(
    data: Tensor, rois: Tensor, pooled_size: int | Sequence[int], spatial_scale: float, mode: Any, sample_ratio: int = -1
) -> Tensor:
    """RoI align in layout NCHW: ``relax.op.vision.roi_align``. ``mode`` is ``"avg"`` (0) or
    ``"max"`` (1); other values raise ``ValueError``."""
    return _align("NCHW", data, rois, pooled_size, spatial_scale, mode, sample_ratio)


def roi_align_nhwc(
    data: Tensor, rois: Tensor, pooled_size: int | Sequence[int], spatial_scale: float, mode: Any, sample_ratio: int = -1
) -> Tensor:
    """RoI align in layout NHWC: ``relax.op.vision.roi_align``. ``mode`` is ``"avg"`` (0) or
    ``"max"`` (1); other values raise ``ValueError``."""
    return _align("NHWC", data, rois, pooled_size, spatial_scale, mode, sample_ratio)


def roi_pool_nchw(data: Tensor, rois: Tensor, pooled_size: int | Sequence[int], spatial_scale: float) -> Tensor:
    """RoI max pooling in layout NCHW: ``relax.op.vision.roi_pool``."""
    return find("vision.roi_pool")(data, rois, pooled_size=pooled_size, spatial_scale=spatial_scale)
