"""Cases of detection operators, such as non-maximum suppression, compared with explicit loops."""

from __future__ import annotations

import math

import numpy as np

from .operator_case import *  # the vocabulary of cases


def iou(a: Array, b: Array) -> float:
    (a0, a1), (b0, b1) = (np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])), (
        np.minimum(b[:2], b[2:]),
        np.maximum(b[:2], b[2:]),
    )
    both = np.prod(np.maximum(np.minimum(a1, b1) - np.maximum(a0, b0), 0))
    union = np.prod(a1 - a0) + np.prod(b1 - b0) - both
    return float(both / union) if union > 0 else 0.0


def valid_counts(a: Array) -> list[Array]:
    counts, rows = np.zeros(len(a), "int32"), np.full_like(a, -1)
    places = np.full(a.shape[:2], -1, "int32")
    for b in range(len(a)):
        hits = [n for n in range(a.shape[1]) if a[b, n, 1] > 0.5 and a[b, n, 0] >= 0]
        counts[b] = len(hits)
        rows[b, : len(hits)] = a[b, hits]
        places[b, : len(hits)] = hits
    return [counts, rows, places]


def kept(a: Array, valid: int, threshold: float, top: int, most: int, same: bool) -> tuple[list[int], list[int]]:
    order = sorted(range(valid), key=lambda n: -a[n, 1])
    order = order[:top] if top > 0 else order
    chosen: list[int] = []
    for n in order:
        if a[n, 1] <= 0 or (0 <= most <= len(chosen)):
            continue
        clash = (iou(a[n, 2:6], a[m, 2:6]) >= threshold and (a[n, 0] == a[m, 0] or not same) for m in chosen)
        if not any(clash):
            chosen.append(n)
    return order, chosen


def nms(a: Array, count: Array, i: Array) -> Any:
    if (count > a.shape[1]).any():
        return Refusal("valid_count")
    places, counts = np.full(i.shape, -1, "int32"), np.zeros((len(a), 1), "int32")
    for b in range(len(a)):
        _, chosen = kept(a[b], int(count[b]), 0.41, 5, 3, True)
        places[b, : len(chosen)] = i[b, chosen]
        counts[b] = len(chosen)
    return [places, counts]


def nms_rows(compact: bool) -> Callable[..., Any]:
    def reference(a: Array, count: Array, i: Array) -> Any:
        if (count > a.shape[1]).any():
            return Refusal("valid_count")
        out = np.full_like(a, -1)
        for b in range(len(a)):
            order, chosen = kept(a[b], int(count[b]), 0.41, -1, -1, False)
            if compact:
                out[b, : len(chosen)] = a[b, chosen]
                continue
            for r, n in enumerate(order):
                out[b, r] = a[b, n]
                if n not in chosen:
                    out[b, r, :2] = -1
        return out

    return reference


def all_class(boxes: Array, scores: Array) -> list[Array]:
    rows = []
    for b in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            chosen: list[int] = []
            for n in sorted(range(scores.shape[2]), key=lambda n: -scores[b, c, n]):
                if scores[b, c, n] <= np.float32(0.3) or len(chosen) == 2:
                    continue
                if not any(iou(boxes[b, n], boxes[b, m]) > 0.41 for m in chosen):
                    chosen.append(n)
            rows += [(b, c, n) for n in chosen]
    out = np.full((scores.size, 3), -1, "int64")
    out[: len(rows)] = np.array(rows, "int64").reshape(-1, 3)
    return [out, np.array([len(rows)], "int64")]


def multibox(cls: Array, loc: Array, anchor: Array) -> list[Array]:
    n = cls.shape[2]
    loc = loc.reshape(-1, n, 4).astype("float64") * [0.1, 0.1, 0.2, 0.2]
    a = anchor[0].astype("float64")
    size, centre = a[:, 2:] - a[:, :2], (a[:, 2:] + a[:, :2]) / 2
    middle, half = centre + loc[..., :2] * size, np.exp(loc[..., 2:]) * size / 2
    boxes = np.stack([middle[..., 1] - half[..., 1], middle[..., 0] - half[..., 0],
                      middle[..., 1] + half[..., 1], middle[..., 0] + half[..., 0]], -1)
    power = np.exp(cls.astype("float64") - cls.max(1, keepdims=True, initial=-9))
    with np.errstate(all="ignore"):
        scores = power / power.sum(1, keepdims=True)
    scores = np.where(scores >= 0.3, scores, 0)
    return [np.clip(boxes, 0, 1).astype("float32"), scores.astype("float32")]


def bilinear(image: Array, y: float, x: float) -> Any:
    """Computes the bilinear sample of an image (channels, height, width) at a point."""
    h, w = image.shape[1:]
    if y < -1 or y > h or x < -1 or x > w:
        return np.zeros(len(image))
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    v, u = y - y0, x - x0
    return (image[:, y0, x0] * (1 - v) * (1 - u) + image[:, y0, x1] * (1 - v) * u
            + image[:, y1, x0] * v * (1 - u) + image[:, y1, x1] * v * u)


def roi_align(ratio: int, aligned: bool, mode: str, channels_last: bool = False) -> Callable[..., Any]:
    def reference(data: Array, rois: Array) -> Any:
        images = (data.transpose(0, 3, 1, 2) if channels_last else data).astype("float64")
        out = np.zeros((len(rois), images.shape[1], 2, 3))
        for r, roi in enumerate(rois.astype("float64")):
            if not 0 <= roi[0] < len(images):
                return Refusal("of rois is out of range")
            x0, y0, x1, y1 = roi[1:] * 0.5 - (0.5 if aligned else 0)
            h, w = (y1 - y0, x1 - x0) if aligned else (max(y1 - y0, 1), max(x1 - x0, 1))
            bh, bw = h / 2, w / 3
            ny, nx = (ratio, ratio) if ratio > 0 else (max(math.ceil(bh), 0), max(math.ceil(bw), 0))
            for p, q in np.ndindex(2, 3):
                samples = [
                    bilinear(images[int(roi[0])], y0 + p * bh + (i + 0.5) * bh / ny, x0 + q * bw + (j + 0.5) * bw / nx)
                    for i in range(ny)
                    for j in range(nx)
                ]
                if samples:
                    out[r, :, p, q] = np.mean(samples, 0) if mode == "avg" else np.max(samples, 0)
        return (out.transpose(0, 2, 3, 1) if channels_last else out).astype("float32")

    return reference


def roi_pool(data: Array, rois: Array) -> Any:
    h, w = data.shape[2:]
    out = np.zeros((len(rois), data.shape[1], 2, 3), "float32")
    for r, roi in enumerate(rois):
        if not 0 <= roi[0] < len(data):
            return Refusal("of rois is out of range")
        x0, y0, x1, y1 = np.floor(roi[1:] * np.float32(0.5) + np.float32(0.5))
        bh, bw = np.float32(max(y1 - y0 + 1, 1)) / np.float32(2), np.float32(max(x1 - x0 + 1, 1)) / np.float32(3)
        for p, q in np.ndindex(2, 3):
            ys = [min(max(int(v), 0), h) for v in (np.floor(p * bh) + y0, np.ceil(np.float32((p + 1) * bh)) + y0)]
            xs = [min(max(int(v), 0), w) for v in (np.floor(q * bw) + x0, np.ceil(np.float32((q + 1) * bw)) + x0)]
            part = data[int(roi[0]), :, ys[0] : ys[1], xs[0] : xs[1]]
            if part.shape[1] and part.shape[2]:
                out[r, :, p, q] = part.max((1, 2))
    return out


def detections(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Returns random detections as rows (class, score, x0, y0, x1, y1)."""
    rows = rng.integers(0, 8, shape).astype("float64")
    rows[..., 0] = rng.integers(-1, 2, shape[:-1])
    rows[..., 1] = rng.permutation(np.linspace(-0.2, 1.0, rows[..., 1].size)).reshape(shape[:-1])
    return rows


def distinct(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.permutation(np.linspace(0, 1, math.prod(shape))).reshape(shape)


def regions(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    rois = rng.integers(-3, 20, shape).astype("float64") + 0.25
    rois[:, 0] = rng.integers(0, 2, shape[0])
    return rois


def corners(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.integers(0, 8, shape)


DETECTIONS = (x("b", "n", 6, draw=detections), Param("c", "int32", ("b",), between(0, 4)), i64("i", "b", "n"))
INDICES = (DETECTIONS[0], DETECTIONS[1], Param("i", "int32", ("b", "n")))
ROIS = (x("b", 2, 5, 6), y("r", 5, draw=regions))
FEW = (0, 1, 2, 3, 7)
ONCE = 'R.const(2, "int64"), R.const(0.41, "float32"), R.const(0.3, "float32")'
CASES: list[Case] = [
    Case(
        "get_valid_counts",
        (x("b", "n", 6, draw=detections),),
        "R.vision.get_valid_counts(x, score_threshold=0.5)",
        valid_counts,
        FEW,
    ),
    Case(
        "non_max_suppression",
        INDICES,
        "R.vision.non_max_suppression(x, c, i, max_output_size=3, iou_threshold=0.41, top_k=5)",
        nms,
        FEW,
        runs=16,
    ),
    *(
        Case(
            f"non_max_suppression_rows_{compact}",
            INDICES,
            "R.vision.non_max_suppression(x, c, i, iou_threshold=0.41, force_suppress=True, return_indices=False, "
            f"invalid_to_bottom={compact})",
            nms_rows(compact),
            FEW,
            runs=16,
        )
        for compact in (False, True)
    ),
    Case(
        "all_class_non_max_suppression",
        (x("b", "n", 4, draw=corners), y("b", "c", "n", draw=distinct)),
        f"R.vision.all_class_non_max_suppression(x, y, {ONCE})",
        all_class,
        FEW,
        runs=16,
    ),
    Case(
        "multibox_transform_loc",
        (x("b", 3, 7), y("b", 28, draw=unit), f32("a", 1, 7, 4, draw=unit)),
        "R.vision.multibox_transform_loc(x, y, a, clip=True, threshold=0.3, variances=[0.1, 0.1, 0.2, 0.2])",
        multibox,
        FEW,
    ),
    *(
        Case(
            f"roi_align_{ratio}_{aligned}_{mode}",
            ROIS,
            f"R.vision.roi_align(x, y, pooled_size=[2, 3], spatial_scale=0.5, sample_ratio={ratio}, "
            f'aligned={aligned}, mode="{mode}")',
            roi_align(ratio, aligned, mode),
            FEW,
            cancels=True,
        )
        for ratio, aligned, mode in ((2, False, "avg"), (-1, False, "avg"), (-1, True, "avg"), (2, True, "max"))
    ),
    Case(
        "roi_align_nhwc",
        (x("b", 5, 6, 2), ROIS[1]),
        'R.vision.roi_align(x, y, pooled_size=[2, 3], spatial_scale=0.5, sample_ratio=2, layout="NHWC")',
        roi_align(2, False, "avg", True),
        FEW,
        cancels=True,
    ),
    Case("roi_pool", ROIS, "R.vision.roi_pool(x, y, pooled_size=[2, 3], spatial_scale=0.5)", roi_pool, FEW),
]