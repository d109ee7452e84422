"""Values that sessions take and return: tensors, sequences of tensors, maps and absent optional values, in host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant import _core
from pliant.onnxruntime._devices import check_device
from pliant.onnxruntime._element_types import ElementType, element_from_numpy, element_of_code

if TYPE_CHECKING:
    from pliant.onnxruntime._devices import OrtMemoryInfo

__all__ = ["OrtValue", "OrtValueVector", "array_at", "copy_tensors"]

Array = np.ndarray[Any, Any]
Held = Array | list[Any] | dict[Any, Any] | None


class OrtValue:
    """A value of any ONNX type. Tensors share the memory of the array from which they were created."""

    __slots__ = ("__weakref__", "_element", "_value")
    _value: Held
    _element: ElementType | None

    def __init__(self, value: object, element: ElementType | None = None) -> None:
        """``value`` is an array, a list of values, a dict or ``None``. ``element`` is the element type of a tensor.

        Use the factories, such as :meth:`ortvalue_from_numpy`. Raises ``ValueError`` for other values.
        """
        if isinstance(value, OrtValue):
            held, element = value._value, value._element
        elif isinstance(value, np.ndarray | list | dict) or value is None:
            held = value
        else:
            raise ValueError(f"an OrtValue holds an array, a list, a dict or None, not {type(value).__name__}")
        self._value = held
        if element is None and isinstance(held, np.ndarray):
            element = element_from_numpy(held.dtype)
        self._element = element

    @classmethod
    def of_tensor(cls, array: Array, element: ElementType) -> OrtValue:
        """Creates a tensor over an array whose element type is known."""
        value = cls.__new__(cls)
        value._value, value._element = array, element
        return value

    @property
    def _ortvalue(self) -> OrtValue:
        """The value itself. In ONNX Runtime, this is the object of the C++ library."""
        return self

    def _get_c_value(self) -> OrtValue:
        return self

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: Any = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Creates a tensor that shares the memory of a C-contiguous array, and copies other arrays.

        Raises ``RuntimeError`` for other objects, for strings, and for devices other than the CPU.
        """
        _check_cpu(device_type)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "USOT":
            raise RuntimeError("Creation of OrtValues is currently only supported from non-string numpy arrays")
        element = element_from_numpy(numpy_obj.dtype)
        return cls(np.ascontiguousarray(numpy_obj).reshape(numpy_obj.shape), element)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> OrtValue:
        """Creates a tensor over the memory of an array whose elements have the bits of another type, given by its number in
        ``TensorProto``, such as bfloat16 in an array of uint16. Raises ``RuntimeError`` if the sizes of the elements differ."""
        element = element_of_code(onnx_element_type)
        array = np.ascontiguousarray(data).reshape(data.shape)
        size = 2 if element.name == "bfloat16" else np.dtype(element.passed_as or element.numpy_name).itemsize
        if array.itemsize != size:
            raise RuntimeError(f"Items size in the incoming array: {array.itemsize} specified by onnxtype: {size}")
        try:
            return cls(array.view(element.dtype()), element)
        except RuntimeError:  # The type needs ml_dtypes.
            return cls(array, element)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: Any = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """Creates a tensor without initializing its elements. ``element_type`` is a NumPy type, or a number of ``TensorProto``.

        Raises ``RuntimeError`` for strings, negative dims, and devices other than the CPU.
        """
        if memory_info is None:
            _check_cpu(device_type)
        element = element_of_code(element_type) if isinstance(element_type, int) else element_from_numpy(element_type)
        if element.name == "string":
            raise RuntimeError("Creation of OrtValues is currently only supported from non-string numpy arrays")
        if any(dim < 0 for dim in shape):
            raise RuntimeError(f"Tensor shape.Size() must be >= 0, got the shape {list(shape)}")
        return cls(np.empty(tuple(shape), element.dtype()), element)

    ortvalue_from_shape_and_onnx_type = ortvalue_from_shape_and_type

    @classmethod
    def from_dlpack(cls, data: Any, /, *_: bool) -> OrtValue:
        """Creates a tensor that shares the memory of an object with ``__dlpack__`` or of a DLPack capsule.

        Raises ``TypeError`` for other objects.
        """
        if type(data).__name__ == "PyCapsule":
            data = _Capsule(data)
        elif not hasattr(data, "__dlpack__"):
            raise TypeError(f"from_dlpack expected an object with __dlpack__ or a DLPack capsule, got {type(data).__name__}")
        return cls(np.asarray(_core.from_dlpack(data)))

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return self._array().ctypes.data

    def device_name(self) -> str:
        """Returns ``cpu``."""
        return "cpu"

    def shape(self) -> list[int]:
        """Returns the dims of a tensor."""
        return list(self._array().shape)

    def data_type(self) -> str:
        """Returns the type, such as ``tensor(int64)``."""
        if isinstance(self._value, list):
            inner = OrtValue(self._value[0]).data_type() if self._value else "tensor(float)"
            return f"seq({inner})"
        if isinstance(self._value, dict):
            return _map_type(self._value)
        return self._tensor_element().tensor_type

    def element_type(self) -> int:
        """Returns the number of a tensor's element type in ``TensorProto``."""
        return self._tensor_element().code

    def tensor_size_in_bytes(self) -> int:
        """Returns the bytes of a tensor's elements."""
        return self._array().nbytes

    def has_value(self) -> bool:
        """Whether this is not an absent optional value."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether this is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Whether this is a sparse tensor; always ``False``."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether this is a sequence of tensors."""
        return isinstance(self._value, list) and all(isinstance(item, np.ndarray) for item in self._value)

    def numpy(self) -> Array:
        """Returns a tensor as an array that shares the memory. Raises ``RuntimeError`` for other values, and for types of
        ``ml_dtypes`` if that package is not installed."""
        array, element = self._array(), self._tensor_element()
        if element.name != "string" and array.dtype != element.dtype():
            return array.view(element.dtype())
        return array

    def to_dlpack(self) -> Any:
        """Returns a DLPack capsule of the tensor."""
        return self.__dlpack__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        if copy is not None:
            return np.array(array, dtype=dtype, copy=copy)
        return np.asarray(array, dtype=dtype)

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        array = self._array()
        if array.dtype.name == "bfloat16":
            return _core.array(array).__dlpack__(**options)
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def update_inplace(self, data: Array | OrtValue) -> None:
        """Copies the elements of an array or of another tensor into the memory of this tensor.

        Raises ``TypeError`` for other objects, and ``RuntimeError`` if the number or the type of the elements differs.
        """
        if not isinstance(data, np.ndarray | OrtValue):
            raise TypeError("data must be a numpy.ndarray or an OrtValue.")
        source, target = data._array() if isinstance(data, OrtValue) else data, self._array()
        if source.size != target.size:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if source.dtype != target.dtype:
            raise RuntimeError(f"The array has elements of type {source.dtype}, but the OrtValue of type {target.dtype}.")
        np.copyto(target, source.reshape(target.shape))

    def _array(self) -> Array:
        if not isinstance(self._value, np.ndarray):
            raise RuntimeError(f"Only OrtValues that are Tensors are currently supported, not {_kind_of(self._value)}")
        return self._value

    def _tensor_element(self) -> ElementType:
        if self._element is None:
            raise RuntimeError(f"Only OrtValues that are Tensors are currently supported, not {_kind_of(self._value)}")
        return self._element

    def __repr__(self) -> str:
        what = f"{self.data_type()}, {self.shape()}" if self.is_tensor() else _kind_of(self._value)
        return f"<OrtValue: {what}>"


class _Capsule:
    """A DLPack capsule as an object with ``__dlpack__``."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OrtValueVector(Sequence[OrtValue]):
    """A list of values."""

    def __init__(self, values: Sequence[OrtValue] = ()) -> None:
        self._values = list(values)

    def push_back(self, value: OrtValue) -> None:
        """Appends a value."""
        self._values.append(value)

    def reserve(self, size: int) -> None:
        """Accepted for compatibility; ignored."""

    def shrink_to_fit(self) -> None:
        """Accepted for compatibility; ignored."""

    def element_type_at(self, index: int) -> int:
        """Returns the number of the element type of the tensor at an index."""
        return self._values[index].element_type()

    def dlpack_at(self, index: int) -> Any:
        """Returns a DLPack capsule of the tensor at an index."""
        return self._values[index].to_dlpack()

    def to_dlpacks(self, to_tensor: Any = None) -> list[Any]:
        """Returns DLPack capsules of all tensors, each converted with ``to_tensor`` unless it is ``None``."""
        capsules = [value.to_dlpack() for value in self._values]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __iter__(self) -> Iterator[OrtValue]:
        return iter(self._values)


def array_at(address: int, shape: Sequence[int], element_type: Any) -> OrtValue:
    """Returns a tensor over foreign memory, which the caller keeps alive."""
    element = element_of_code(element_type) if isinstance(element_type, int) else element_from_numpy(element_type)
    dtype = element.dtype()
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return OrtValue(np.empty(tuple(shape), dtype), element)
    memory = (ctypes.c_char * size).from_address(address)
    return OrtValue(np.frombuffer(memoryview(memory).cast("B"), np.uint8).view(dtype).reshape(tuple(shape)), element)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: object = None) -> None:
    """Copies the elements of tensors into other tensors. Raises ``RuntimeError`` if numbers, sizes or types differ."""
    if len(src) != len(dst):
        raise RuntimeError(f"copy_tensors: there are {len(src)} sources, but {len(dst)} targets")
    for source, target in zip(src, dst, strict=True):
        target.update_inplace(source)


def _check_cpu(device: Any) -> None:
    """Checks a device, which is given by name or as an ``OrtDevice``."""
    if isinstance(device, str):
        check_device(device.lower())
    elif device.device_type() != 0:
        raise RuntimeError("Can't allocate memory on the device: Pliant runs on the CPU")


def _kind_of(value: object) -> str:
    return {list: "a sequence", dict: "a map", type(None): "an absent optional value"}.get(type(value), "a tensor")


def _map_type(value: dict[Any, Any]) -> str:
    key, item = next(iter(value.items()), (0, 0.0))
    name = "string" if isinstance(key, str) else "int64"
    return f"map({name},{element_from_numpy(np.asarray(item).dtype).tensor_type})"
