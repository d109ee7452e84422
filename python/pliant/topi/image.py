"""The operators of ``relax.op.image`` as tensor expressions, with the order of arguments of TVM's ``topi``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi import _operator_wrapper
from pliant.topi._size_checks import require_indices_within, require_condition
from pliant.topi._operator_wrapper import find

__all__ = ["affine_grid", "crop_and_resize", "grid_sample", "resize1d", "resize2d", "resize3d"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return find(f"image.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_operator_wrapper.names("image.")})


def _resize(
    name: str,
    data: Tensor,
    roi: Any,
    size: Any,
    layout: str,
    method: str,
    mode: str,
    rounding: str,
    alpha: float,
    exclude: int,
    outside: float,
    out_dtype: str | None,
    output_shape: None,
) -> Tensor:
    if output_shape is not None:
        raise NotImplementedError(f"topi.image.{name} does not support output_shape; use size")
    return find(f"image.{name}")(
        data,
        size,
        roi=list(roi) if roi and any(roi) else None,
        layout=layout,
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method=rounding,
        cubic_alpha=alpha,
        cubic_exclude=exclude,
        extrapolation_value=outside,
        out_dtype=out_dtype,
    )


def resize1d(
    data: Tensor,
    roi: Sequence[float],
    size: Any,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: None = None,
) -> Tensor:
    """Resizes the width of 1-d data with ``relax.op.image.resize2d``. ``roi`` is the start and the
    end of the region for the mode ``"tf_crop_and_resize"``, or empty.

    Raises ``NotImplementedError`` for ``output_shape``.
    """
    at = layout.index("W")
    tall = find("expand_dims")(data, [at])
    width = size[0] if isinstance(size, Sequence) else size
    part = [0.0, roi[0], 1.0, roi[1]] if roi and any(roi) else None
    wide = _resize(
        "resize2d", tall, part, [1, width], layout.replace("W", "HW"), method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype, output_shape,
    )
    shape = [d for k, d in enumerate(wide.shape) if k != at]
    return te.compute(shape, lambda *i: wide(*i[:at], 0, *i[at:]), name="T_resize1d")


def resize2d(
    data: Tensor,
    roi: Sequence[float],
    size: Any,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: None = None,
) -> Tensor:
    """Resizes images with ``relax.op.image.resize2d``. ``roi`` is the region for the mode
    ``"tf_crop_and_resize"`` (the start of each dim, then the end of each dim), or empty.

    Raises ``NotImplementedError`` for ``output_shape``.
    """
    return _resize(
        "resize2d", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
        bicubic_exclude, extrapolation_value, out_dtype, output_shape,
    )


def resize3d(
    data: Tensor,
    roi: Sequence[float],
    size: Any,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: None = None,
) -> Tensor:
    """Resizes volumes with ``relax.op.image.resize3d``. ``roi`` is the region for the mode
    ``"tf_crop_and_resize"`` (the start of each dim, then the end of each dim), or empty.

    Raises ``NotImplementedError`` for ``output_shape``.
    """
    return _resize(
        "resize3d", data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
        bicubic_exclude, extrapolation_value, out_dtype, output_shape,
    )


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """Samples images at the coordinates in a grid, with ``relax.op.image.grid_sample``. By default,
    the coordinates -1 and 1 are the centres of the outermost pixels."""
    return find("image.grid_sample")(
        data, grid, method=method, layout=layout, padding_mode=padding_mode, align_corners=align_corners
    )


def affine_grid(data: Tensor, target_shape: Sequence[Any]) -> Tensor:
    """Applies affine maps to the coordinates of each pixel, with ``relax.op.image.affine_grid``.
    The coordinates -1 and 1 are the centres of the outermost pixels. ``target_shape`` is the size
    of the images."""
    return find("image.affine_grid")(data, list(target_shape), align_corners=True)


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sequence[Any],
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> Tensor:
    """Crops boxes from images and resizes them to ``crop_size`` (height, width). ``boxes`` has rows
    ``y1, x1, y2, x2`` between 0 and 1, and ``box_indices`` has the index of the image of each box.
    Pixels outside of an image have the value ``extrapolation_value``, 0 by default.

    Raises ``ValueError`` for an unsupported ``layout`` or ``method``. An index out of range is a
    run-time error.
    """
    if layout not in ("NCHW", "NHWC") or method not in ("bilinear", "nearest_neighbor"):
        raise ValueError(
            f"crop_and_resize: expected layout 'NCHW' or 'NHWC' and method 'bilinear' or 'nearest_neighbor', "
            f"got layout '{layout}' and method '{method}'"
        )
    rows, columns, channels = (layout.index(c) for c in "HWC")
    outside = tir.const(extrapolation_value or 0.0, data.dtype)
    shape = [boxes.shape[0]] * 4
    shape[rows], shape[columns], shape[channels] = crop_size[0], crop_size[1], data.shape[channels]

    def place(box: Any, corner: int, i: Any, count: Any, dim: Any) -> Any:
        first, last = boxes(box, corner), boxes(box, corner + 2)
        width = (dim - 1).astype(boxes.dtype)
        gap = tir.max(tir.const(count, "int64") - 1, 1).astype(boxes.dtype)
        several = first * width + i.astype(boxes.dtype) * ((last - first) * width / gap)
        return tir.Select(tir.const(count, "int64") > 1, several, (first + last) * width * 0.5)

    def element(*i: Any) -> Any:
        box = i[0]
        y = place(box, 0, i[rows], crop_size[0], data.shape[rows])
        x = place(box, 1, i[columns], crop_size[1], data.shape[columns])

        def pixel(row: Any, column: Any) -> Any:
            at = [box_indices(box), i[channels], i[channels], i[channels]]
            at[rows] = tir.max(tir.min(row.astype("int64"), data.shape[rows] - 1), 0)
            at[columns] = tir.max(tir.min(column.astype("int64"), data.shape[columns] - 1), 0)
            return data(*at)

        if method == "nearest_neighbor":
            value = pixel(tir.floor(y + 0.5), tir.floor(x + 0.5))
        else:
            top, left = tir.floor(y), tir.floor(x)
            down, right = (y - top).astype(data.dtype), (x - left).astype(data.dtype)
            upper = pixel(top, left) * (1.0 - right) + pixel(top, left + 1.0) * right
            lower = pixel(top + 1.0, left) * (1.0 - right) + pixel(top + 1.0, left + 1.0) * right
            value = upper * (1.0 - down) + lower * down
        height, width = ((data.shape[k] - 1).astype(boxes.dtype) for k in (rows, columns))
        value = tir.if_then_else(tir.all(y >= 0.0, y <= height, x >= 0.0, x <= width), value, outside)
        return value if out_dtype is None else value.astype(out_dtype)

    name = "topi.image.crop_and_resize"
    result = te.compute(shape, element, name="T_crop_and_resize")
    height, width = data.shape[rows], data.shape[columns]
    message = f"{name}: images of {{0}} x {{1}} pixels have no pixels to crop"
    # Without boxes, the images may be empty.
    result = require_condition(result, tir.any(boxes.shape[0] < 1, tir.all(height > 0, width > 0)), message, height, width)
    return require_indices_within(result, box_indices, name, 0, data.shape[0])
