"""Packed functions for programs of tests, and a check of saved functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.registry import register_func
from pliant.runtime import NDArray, ShapeTuple, tensor

__all__ = ["check_saved_func"]


def _with_numpy(function: Any) -> Any:
    """Makes a packed function that returns a new tensor from a function of NumPy arrays."""
    return lambda *arrays: tensor(function(*(a.numpy() for a in arrays)))


def _into(function: Any) -> Any:
    """Makes a packed function that writes to its last argument from a function of NumPy arrays."""

    def write(*arrays: NDArray) -> None:
        *inputs, output = arrays
        output.copyfrom(function(*(a.numpy() for a in inputs)))

    return write


def _move(source: Any) -> Any:
    return source


def _shape_of(value: NDArray) -> ShapeTuple:
    return ShapeTuple(value.shape)


def _add_scalar(x: float, y: float) -> float:
    return x + y


def _subtract_scalar(x: float, y: float) -> float:
    return x - y


def _object(*_: Any) -> Any:
    return ShapeTuple((1, 2))


def _check_if_defined(value: Any) -> bool:
    return value is not None


def _argument_count(*args: Any) -> int:
    return len(args)


_FUNCTIONS: dict[str, Any] = {
    "test.vm.move": _move,
    "test.vm.add": _with_numpy(np.add),
    "test.vm.mul": _with_numpy(np.multiply),
    "test.vm.equal_zero": _with_numpy(lambda a: np.array(bool((a == 0).all()))),
    "test.vm.subtract_one": _with_numpy(lambda a: np.subtract(a, 1)),
    "test.vm.identity": _into(lambda a: a),
    "test.vm.identity_packed": _into(lambda a: a),
    "test.vm.tile": _into(lambda a: np.tile(a, (1, 2))),
    "test.vm.tile_packed": _into(lambda a: np.tile(a, (1, 2))),
    "test.vm.add_scalar": _add_scalar,
    "test.vm.subtract_scalar": _subtract_scalar,
    "test.vm.get_device_id": lambda device: device.index,
    "test.vm.check_if_defined": _check_if_defined,
    "test.vm.create_obj": _object,
    "test.vm.shape_of": _shape_of,
    "test.vm.argument_count": _argument_count,
}
for _name, _function in _FUNCTIONS.items():
    register_func(_name, _function, override=True)


def check_saved_func(vm: Any, func_name: str, *inputs: Any) -> Any:
    """Saves a function of a VM with its arguments, runs it and returns the result."""
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    return vm[saved]()


del _name, _function
