"""Tests `OrtValue`: tensors that share memory, their types, conversions, and what cannot be a value."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from session_models import add_model, sequence_model

import pliant.onnxruntime

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_tensors_share_memory(ort: ModuleType) -> None:
    x = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    assert (value.shape(), value.data_type(), value.element_type()) == ([3, 2], "tensor(float)", 1)
    assert (value.device_name(), value.tensor_size_in_bytes(), value.has_value()) == ("cpu", 24, True)
    assert (value.is_tensor(), value.is_sparse_tensor(), value.is_tensor_sequence()) == (True, False, False)
    assert value.data_ptr() == value.numpy().ctypes.data == x.ctypes.data
    value.update_inplace(np.full((3, 2), 5, np.float32))
    assert x[0, 0] == 5
    assert np.asarray(value, np.float64).dtype == np.float64 and np.array(value, copy=True).ctypes.data != x.ctypes.data
    assert np.from_dlpack(value).ctypes.data == x.ctypes.data and value.__dlpack_device__() == (1, 0)
    assert ort.OrtValue.from_dlpack(x).data_ptr() == x.ctypes.data


def test_other_layouts_are_copied(ort: ModuleType) -> None:
    np.testing.assert_array_equal(ort.OrtValue.ortvalue_from_numpy(X.T).numpy(), X.T)
    assert ort.OrtValue.ortvalue_from_numpy(np.array(2.0)).shape() == []


@pytest.mark.parametrize(
    "create",
    [
        lambda ort: ort.OrtValue.ortvalue_from_numpy([1, 2]),
        lambda ort: ort.OrtValue.ortvalue_from_numpy(np.array(["a"])),
        lambda ort: ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
        lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([-2, 3], np.float32),
        lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2], object),
        lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2], np.complex64),
        lambda ort: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(3, np.uint8), 16),
        lambda ort: ort.OrtValue.ortvalue_from_numpy(X).update_inplace(np.ones((3, 3), np.float32)),
    ],
)
def test_values_that_cannot_be_created(ort: ModuleType, create: Any) -> None:
    with pytest.raises(RuntimeError):
        create(ort)


def test_arguments_of_other_types(ort: ModuleType) -> None:
    with pytest.raises(ValueError):
        ort.OrtValue(3)
    with pytest.raises(TypeError, match="must be a numpy.ndarray or an OrtValue"):
        ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace([1])
    with pytest.raises(TypeError, match="from_dlpack"):
        ort.OrtValue.from_dlpack(3)
    with pytest.raises(Exception, match="Unsupported device type: foo"):
        ort.OrtValue.ortvalue_from_numpy(X, "foo", 0)


def test_values_by_shape_and_type(ort: ModuleType) -> None:
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 0], np.int64)
    assert (value.shape(), value.data_type()) == ([2, 0], "tensor(int64)")
    assert ort.OrtValue.ortvalue_from_shape_and_type([2], 16).data_type() == "tensor(bfloat16)"
    bits = np.full(3, 0x3F80, np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    assert (value.data_type(), value.element_type(), value.shape(), value.data_ptr()) == ("tensor(bfloat16)", 16, [3], bits.ctypes.data)


def test_values_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = pliant.onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(2, ml_dtypes.bfloat16))
    assert value.data_type() == "tensor(bfloat16)" and value.numpy().dtype == ml_dtypes.bfloat16
    assert pliant.onnxruntime.OrtValue.from_dlpack(value).data_type() == "tensor(bfloat16)"


def test_an_element_type_of_another_size_is_not_copied() -> None:
    """ONNX Runtime copies the bytes."""
    with pytest.raises(RuntimeError, match="elements of type float64"):
        pliant.onnxruntime.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(X.astype(float))


def test_runs_with_values(ort: ModuleType, session: Any) -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X)
    (result,) = session.run_with_ort_values(["w"], {"in/x": value, "in.y": value})
    assert isinstance(result, ort.OrtValue) and result.data_type() == "tensor(float)"
    np.testing.assert_array_equal(result.numpy(), -2 * X)
    np.testing.assert_array_equal(session.run(["w"], {"in/x": value, "in.y": X})[0], -2 * X)
    with pytest.raises(AttributeError):
        session.run_with_ort_values(None, {"in/x": X, "in.y": X})
    with pytest.raises(ValueError, match="Required inputs"):
        session.run_with_ort_values(None, {"in/x": value})


def test_results_are_inputs_of_the_next_run(ort: ModuleType, session: Any) -> None:
    state = ort.OrtValue.ortvalue_from_numpy(X)
    for _ in range(3):
        (state,) = session.run_with_ort_values(["z:0"], {"in/x": state, "in.y": state})
    np.testing.assert_array_equal(state.numpy(), 8 * X)


def test_sequences_are_values(ort: ModuleType) -> None:
    session = ort.InferenceSession(sequence_model())
    x, items = np.ones(2, np.float32), [np.arange(2), np.arange(3)]
    assert session.run(["item"], {"x": x, "items": items})[0].tolist() == [0, 1, 2]
    if ort is pliant.onnxruntime:
        pair, item = session.run_with_ort_values(None, {"x": ort.OrtValue(x), "items": ort.OrtValue(items)})
        assert pair.is_tensor_sequence() and pair.data_type() == "seq(tensor(float))" and item.shape() == [3]
        with pytest.raises(RuntimeError, match="a sequence"):
            pair.numpy()


def test_copy_tensors() -> None:
    """ONNX Runtime copies only between devices."""
    ort = pliant.onnxruntime
    target = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(X)], [target])
    np.testing.assert_array_equal(target.numpy(), X)


def test_run_with_vectors() -> None:
    session = pliant.onnxruntime.InferenceSession(add_model())
    results = pliant.onnxruntime.OrtValueVector()
    value = pliant.onnxruntime.OrtValue(X)
    session.run_with_ortvaluevector(None, ["in/x", "in.y"], [value, value], ["w"], results, [])
    assert len(results) == 1 and results.element_type_at(0) == 1
    np.testing.assert_array_equal(results[0].numpy(), -2 * X)


def test_devices(ort: ModuleType) -> None:
    device = ort.OrtDevice.make("cpu", 0)
    assert (device.device_type(), device.device_id(), device.device_vendor_id(), device.device_mem_type()) == (0, 0, 0, 0)
    assert ort.OrtDevice.make("cuda", 1).device_vendor_id() == ort.OrtDeviceVendorId.NVIDIA == 0x10DE


@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4)])
def test_capsules(ort: ModuleType, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    value = ort.OrtValue.from_dlpack(ort.OrtValue.ortvalue_from_numpy(x).__dlpack__())
    assert value.shape() == list(shape)
    np.testing.assert_array_equal(value.numpy(), x)
