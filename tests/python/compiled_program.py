"""A client of the C interface to programs that are compiled ahead of time, with ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

OK, ARGUMENT, PROGRAM, RUN, MEMORY, INTERRUPTED, TIME_LIMIT, INTERNAL = range(8)
KIND_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
SYMBOLIC = -1


class CTensor(ctypes.Structure):
    """``pliant_tensor``."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_size_t),
        ("dtype", ctypes.c_int32),
    ]


class COptions(ctypes.Structure):
    """``pliant_options``."""

    _fields_ = [("function", ctypes.c_char_p), ("threads", ctypes.c_size_t)]


class ProgramError(Exception):
    """An error of the C interface: its status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status, self.message = status, message


# The result and the parameters of each function of pliant.h that the tests call.
POINTER, SIZE, TEXT, TENSOR = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.POINTER(CTensor)
FUNCTIONS: dict[str, tuple[type | None, list[type]]] = {
    "create": (ctypes.c_int, [POINTER, ctypes.POINTER(COptions), ctypes.POINTER(POINTER)]),
    "destroy": (None, [POINTER]),
    "error_message": (TEXT, []),
    "input_count": (SIZE, [POINTER]),
    "input_name": (TEXT, [POINTER, SIZE]),
    "input_index": (ctypes.c_int64, [POINTER, TEXT]),
    "input_dtype": (ctypes.c_int, [POINTER, SIZE]),
    "input_rank": (ctypes.c_int64, [POINTER, SIZE]),
    "input_dim": (ctypes.c_int64, [POINTER, SIZE, SIZE]),
    "input_dim_text": (TEXT, [POINTER, SIZE, SIZE]),
    "output_count": (SIZE, [POINTER]),
    "output_name": (TEXT, [POINTER, SIZE]),
    "set_input": (ctypes.c_int, [POINTER, SIZE, TENSOR]),
    "symbol": (ctypes.c_int, [POINTER, TEXT, ctypes.POINTER(ctypes.c_int64)]),
    "run": (ctypes.c_int, [POINTER]),
    "run_for": (ctypes.c_int, [POINTER, ctypes.c_double]),
    "interrupt": (None, [POINTER]),
    "output": (ctypes.c_int, [POINTER, SIZE, TENSOR]),
}


class Library:
    """A shared library with a program."""

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        name = path.stem.removeprefix("lib")
        self.program = ctypes.addressof(ctypes.c_char.in_dll(self.library, f"{name}_program"))
        for function, (result, parameters) in FUNCTIONS.items():
            self[function].restype, self[function].argtypes = result, parameters

    def __getitem__(self, function: str) -> Any:
        """Returns a function of the C interface, by its name without the prefix."""
        return getattr(self.library, f"pliant_{function}")

    def check(self, status: int) -> None:
        """Raises the last error if the status is not OK."""
        if status != OK:
            raise ProgramError(status, self["error_message"]().decode())


class CompiledProgram:
    """A model of the C interface."""

    def __init__(self, library: Library, function: str | None = None, threads: int = 0) -> None:
        self.library, self.model = library, ctypes.c_void_p()
        # The arrays that the model reads.
        self.kept: dict[int, np.ndarray] = {}
        options = COptions(None if function is None else function.encode(), threads)
        library.check(library["create"](library.program, options, self.model))

    def __enter__(self) -> CompiledProgram:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.library["destroy"](self.model)

    def set_tensor(self, index: int, data: int | None, shape: Sequence[int] | None, rank: int, dtype: int) -> None:
        """Sets an input to a tensor with any fields."""
        sizes = None if shape is None else (ctypes.c_int64 * len(shape))(*shape)
        self.library.check(self.library["set_input"](self.model, index, CTensor(data, sizes, rank, dtype)))

    def set_input(self, index: int, array: np.ndarray) -> None:
        array = np.ascontiguousarray(array).reshape(array.shape)
        self.set_tensor(index, array.ctypes.data, array.shape, array.ndim, dtype_number(array.dtype))
        self.kept[index] = array

    def output(self, index: int) -> np.ndarray:
        """Copies an output."""
        tensor = CTensor()
        self.library.check(self.library["output"](self.model, index, tensor))
        [dtype] = [d for d in map(np.dtype, "bBhHiIlLefd?") if dtype_number(d) == tensor.dtype]
        shape = tensor.shape[: tensor.rank]
        if 0 in shape:
            return np.empty(shape, dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(ctypes.string_at(tensor.data, size), dtype).reshape(shape)

    def symbol(self, name: str) -> int:
        size = ctypes.c_int64()
        self.library.check(self.library["symbol"](self.model, name.encode(), size))
        return size.value

    def run(self, *inputs: np.ndarray, seconds: float | None = None) -> list[np.ndarray]:
        """Sets the inputs, runs the model, and returns copies of the outputs."""
        for i, array in enumerate(inputs):
            self.set_input(i, array)
        run = self.library["run"](self.model) if seconds is None else self.library["run_for"](self.model, seconds)
        self.library.check(run)
        return [self.output(i) for i in range(self.library["output_count"](self.model))]


def dtype_number(dtype: np.dtype) -> int:
    """Returns the ``pliant_dtype`` of an element type."""
    bits = 8 * dtype.itemsize
    return 256 * KIND_CODES[dtype.kind] + bits
