"""Reads and writes files in the safetensors format: an 8-byte length, a JSON header with the data type, shape and position of each
tensor, and the elements."""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pliant import _core
from pliant._core import NDArray
from pliant.error import UnsupportedError
from pliant.relax.frontend.nn.core import Parameter, as_ndarray

_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_MAX_HEADER = 100_000_000


def load(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """Maps a file into memory and returns its tensors by name. They are read-only and share the memory of the file. A file with the
    extension ``.json`` is the index of several files.

    Raises ``ValueError`` for a damaged file, and ``UnsupportedError`` for data types that Pliant lacks.
    """
    path = Path(path)
    if path.suffix != ".json":
        return _load_file(path)
    index = json.loads(path.read_text(encoding="utf-8"))
    names = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(names, dict) or not all(isinstance(file, str) for file in names.values()):
        raise ValueError(f"'{path}' is not an index of safetensors files: it has no 'weight_map'")
    tensors: dict[str, NDArray] = {}
    for file in dict.fromkeys(names.values()):
        tensors.update(_load_file(path.parent / file))
    return tensors


def _load_file(path: Path) -> dict[str, NDArray]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise ValueError(f"'{path}' is not a safetensors file: it has {size} bytes")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (length,) = struct.unpack_from("<Q", content)
    if length > min(size - 8, _MAX_HEADER):
        raise ValueError(f"'{path}' is not a safetensors file: its header of {length} bytes does not fit")
    try:
        header = json.loads(content[8 : 8 + length])
        entries = [(name, entry) for name, entry in header.items() if name != "__metadata__"]
    except (ValueError, AttributeError):
        raise ValueError(f"'{path}' is not a safetensors file: its header is not a JSON object") from None
    start = 8 + length
    return {name: _tensor(path, name, entry, content, start, size) for name, entry in entries}


def _tensor(path: Path, name: str, entry: Any, content: mmap.mmap, start: int, size: int) -> NDArray:
    """Creates the array of one tensor. ``start`` is the position of the elements in the file."""
    try:
        code, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"'{path}': the header of the tensor '{name}' is invalid: {entry!r}") from None
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in (*shape, begin, end)):
        raise ValueError(f"'{path}': the header of the tensor '{name}' is invalid: {entry!r}")
    if code not in _DTYPES:
        raise UnsupportedError(f"'{path}': the tensor '{name}' has the unsupported data type {code}")
    dtype = numpy_dtype(_DTYPES[code])
    count = 1
    for dim in shape:
        count *= dim
    if end - begin != count * dtype.itemsize or start + end > size:
        raise ValueError(f"'{path}': the tensor '{name}' of shape {shape} and type {code} does not fit bytes {begin} to {end}")
    array = np.frombuffer(content, dtype, count, start + begin).reshape(shape)
    aligned = array.ctypes.data % dtype.itemsize == 0
    return _core.from_dlpack(array) if aligned and count else _core.array(array)


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Returns the NumPy type of a data type. Raises ``UnsupportedError`` for bfloat16 if ``ml_dtypes`` is not installed."""
    if dtype != "bfloat16":
        return np.dtype(dtype)
    try:
        import ml_dtypes
    except ModuleNotFoundError:
        raise UnsupportedError("bfloat16 tensors require the package ml_dtypes: pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def save(tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays or parameters to a file.

    Raises ``ValueError`` for a parameter without elements, and ``UnsupportedError`` for a data type that the format lacks.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts: list[bytes] = []
    position = 0
    for name, value in tensors.items():
        data = value.data if isinstance(value, Parameter) else value
        if data is None:
            raise ValueError(f"the parameter '{name}' has no elements")
        array = as_ndarray(data)
        if array.dtype not in _CODES:
            raise UnsupportedError(f"safetensors files cannot contain elements of type {array.dtype} ('{name}')")
        parts.append(np.ascontiguousarray(array.numpy()).tobytes())
        end = position + len(parts[-1])
        header[name] = {"dtype": _CODES[array.dtype], "shape": list(array.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with Path(path).open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(parts)


__all__ = ["load", "save"]
