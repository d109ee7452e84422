"""Resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant.error import UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


def _resize(
    cx: FunctionImporter, x: Any, dims: int, method: str, mode: str, rounding: str, scales: Sequence[float | None] | None
) -> Any:
    """Resizes the last dims to the shape that torch inferred. ``scales`` are the ratios of sizes before rounding."""
    target = cx.out_shape[2:]
    given = None if scales is None or any(s is None for s in scales) else [float(s) for s in scales]  # type: ignore[arg-type]
    settings: dict[str, Any] = {"method": method, "coordinate_transformation_mode": mode, "rounding_method": rounding}
    if dims == 1:
        x, target = cx.ops.expand_dims(x, 2), [1, *target]
        given = [1.0, *given] if given else None
    if given is not None and mode != "align_corners":
        settings["scales"] = given
    if dims == 3:
        return cx.ops.image.resize3d(x, target, **settings)
    y = cx.ops.image.resize2d(x, target, cubic_alpha=-0.75, **settings)
    return cx.ops.squeeze(y, axis=[2]) if dims == 1 else y


def _nearest(dims: int, exact: bool = False) -> Converter:
    """The converter of nearest resizing. ``exact`` rounds from pixel centres, with ties up; otherwise, positions are truncated.
    Positions are rounded as torch rounds them, since the nearest element depends on it."""
    mode, rounding = ("torch_half_pixel", "round_prefer_ceil") if exact else ("torch_asymmetric", "floor")

    def convert(cx: FunctionImporter, x: Any, size: Any, *scales: Any) -> Any:
        return _resize(cx, x, dims, "nearest_neighbor", mode, rounding, _scales(scales, dims))

    return convert


def _smooth(dims: int, method: str = "linear") -> Converter:
    """The converter of linear or cubic resizing. Coordinates refer to pixel centres unless ``align_corners`` is set."""

    def convert(cx: FunctionImporter, x: Any, size: Any, align_corners: bool, *scales: Any) -> Any:
        mode = "align_corners" if align_corners else "half_pixel"
        return _resize(cx, x, dims, method, mode, "round", _scales(scales, dims))

    return convert


def _scales(scales: tuple[Any, ...], dims: int) -> Sequence[float | None] | None:
    """The scales of an overload: one list (``vec``), or one number for each dim."""
    if len(scales) == 1 and (scales[0] is None or isinstance(scales[0], list)):
        found: Sequence[float | None] | None = scales[0]
        return found
    return scales if len(scales) == dims else None


GRID_METHODS = ("bilinear", "nearest", "bicubic")
GRID_PADDING = ("zeros", "border", "reflection")


def grid_sampler(cx: FunctionImporter, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    """Converts ``grid_sampler``. Coordinates in the last dim of ``grid`` move to axis 1. Volumes have no bicubic sampling."""
    rank = cx.rank(grid)
    method = GRID_METHODS[interpolation]
    if rank == 5 and method == "bicubic":
        raise UnsupportedError("bicubic sampling of volumes is not supported")
    moved = cx.ops.permute_dims(grid, [0, rank - 1, *range(1, rank - 1)])
    layout = "NCHW" if rank == 4 else "NCDHW"
    return cx.ops.image.grid_sample(
        x, moved, method=method, layout=layout, padding_mode=GRID_PADDING[padding], align_corners=align_corners
    )


def _table() -> dict[str, Converter]:
    table: dict[str, Converter] = {}
    for n, name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
        table[f"upsample_{name}"] = table[f"upsample_{name}.vec"] = _smooth(n)
        table[f"upsample_nearest{n}d"] = table[f"upsample_nearest{n}d.vec"] = _nearest(n)
        table[f"_upsample_nearest_exact{n}d"] = table[f"_upsample_nearest_exact{n}d.vec"] = _nearest(n, exact=True)
    table["upsample_bicubic2d"] = table["upsample_bicubic2d.vec"] = _smooth(2, "cubic")
    for name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"):
        table[name] = grid_sampler
    return table


TABLE: dict[str, Converter] = _table()
"""The converters of this family."""
