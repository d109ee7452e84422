"""Runs a compiled program with ctypes and NumPy, without Pliant: python run.py ./model.so"""

import ctypes
import sys

import numpy as np

FLOAT32 = 0x0220  # PLIANT_FLOAT32


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_size_t),
        ("dtype", ctypes.c_int32),
    ]


library = ctypes.CDLL(sys.argv[1])
library.pliant_error_message.restype = ctypes.c_char_p
library.pliant_set_input.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Tensor)]
library.pliant_output.argtypes = library.pliant_set_input.argtypes
model = ctypes.c_void_p()


def check(status: int) -> None:
    if status != 0:
        raise RuntimeError(library.pliant_error_message().decode())


def run(*inputs: np.ndarray) -> np.ndarray:
    arrays = [np.ascontiguousarray(array, dtype=np.float32) for array in inputs]
    for i, array in enumerate(arrays):
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        check(library.pliant_set_input(model, i, Tensor(array.ctypes.data, shape, array.ndim, FLOAT32)))
    check(library.pliant_run(model))
    output = Tensor()
    check(library.pliant_output(model, 0, output))
    data = ctypes.cast(output.data, ctypes.POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(data, output.shape[: output.rank]).copy()


program = ctypes.c_char.in_dll(library, "model_program")
check(library.pliant_create(ctypes.byref(program), None, ctypes.byref(model)))
for n in [1, 2]:
    print(run(5 * np.eye(n, 4), np.eye(3, 4)).round(3))
library.pliant_destroy(model)
