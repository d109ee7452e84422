"""Tests Resize with scales that differ from the ratio of the sizes, compared with ONNX's reference
implementation.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import pliant

from onnx_models import model_of

IMAGE = (2, 3, 7, 5)
VOLUME = (1, 2, 3, 4, 5)
TRANSFORMS = ["half_pixel", "align_corners", "asymmetric"]


def compared(shape: tuple[int, ...], scales: list[float], dtype: str = "float32", **attrs: str) -> None:
    """Compares a compiled model with symbolic dims with the reference implementation."""
    resize = helper.make_node("Resize", ["x", "", "scales"], ["y"], **attrs)
    dims = [f"d{k}" if k != 1 else size for k, size in enumerate(shape)]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = model_of([resize], {"x": (kind, dims)}, ["y"], {"scales": np.array(scales, np.float32)})
    x = (np.random.default_rng(0).standard_normal(shape) * 50 + 100).astype(dtype)
    want = ReferenceEvaluator(model).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.asarray(pliant.compile(model)(x)), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("shape", "scales"),
    [
        (IMAGE, [1, 1, 1.7, 0.6]),
        (IMAGE, [1, 1, 1, 1.7]),
        (IMAGE, [1, 1, 0.5, 1]),
        # Three channels stay three, but are not those of the input.
        (IMAGE, [1, 1.1, 2, 2]),
    ],
)
def test_images(shape: tuple[int, ...], scales: list[float], mode: str, transform: str) -> None:
    compared(shape, scales, mode=mode, coordinate_transformation_mode=transform)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_volumes(transform: str) -> None:
    compared(VOLUME, [1, 1, 1.7, 2, 0.6], mode="linear", coordinate_transformation_mode=transform)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize("scales", [[1, 1, 1.7, 0.6], [1, 1, 2, 3], [1, 1.1, 1, 1]])
def test_nearest_elements_of_any_type(scales: list[float], dtype: str) -> None:
    compared(IMAGE, scales, dtype, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
