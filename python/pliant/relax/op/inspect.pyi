"""The operators under `R.inspect`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def tensor_byte_offset(tensor: Operand) -> Expr:
    """The offset of the tensor in its storage in bytes, as a uint64 scalar.

    Data types: `tensor` any type."""

def tensor_dtype_bits(tensor: Operand) -> Expr:
    """The number of bits per element, as a uint8 scalar.

    Data types: `tensor` any type."""

def tensor_dtype_code(tensor: Operand) -> Expr:
    """The DLPack type code of the elements, as a uint8 scalar.

    Data types: `tensor` any type."""

def tensor_dtype_lanes(tensor: Operand) -> Expr:
    """The number of lanes per element, as a uint16 scalar: always 1.

    Data types: `tensor` any type."""

def tensor_elem_offset(tensor: Operand) -> Expr:
    """The offset of the tensor in its storage in elements, as a uint64 scalar.

    Data types: `tensor` any type."""

def tensor_ndim(tensor: Operand) -> Expr:
    """The number of dims, as an int32 scalar.

    Data types: `tensor` any type."""

def tensor_shape_i(tensor: Operand, axis: Any) -> Expr:
    """The size of dim `axis`, as an int64 scalar. Raises an error if the axis is negative or not less than the number of dims.

    Data types: `tensor` any type."""

def tensor_stride_i(tensor: Operand, axis: Any) -> Expr:
    """The stride of dim `axis` in elements, as an int64 scalar. Raises an error if the axis is negative or not less than the number of dims.

    Data types: `tensor` any type."""
