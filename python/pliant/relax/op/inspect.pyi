"""The operators under `R.inspect`, generated from their declarations (see docs/reference/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def tensor_byte_offset(tensor: Operand) -> Expr:
    """The offset of the tensor in its storage in bytes, as a scalar."""

def tensor_dtype_bits(tensor: Operand) -> Expr:
    """The number of bits per element, as a scalar."""

def tensor_dtype_code(tensor: Operand) -> Expr:
    """The DLPack type code of the elements, as a scalar."""

def tensor_dtype_lanes(tensor: Operand) -> Expr:
    """The number of lanes per element, as a scalar: always 1."""

def tensor_elem_offset(tensor: Operand) -> Expr:
    """The offset of the tensor in its storage in elements, as a scalar."""

def tensor_ndim(tensor: Operand) -> Expr:
    """The number of dims, as a scalar."""

def tensor_shape_i(tensor: Operand, axis: Any) -> Expr:
    """The size of dim `axis`, as a scalar."""

def tensor_stride_i(tensor: Operand, axis: Any) -> Expr:
    """The stride of dim `axis` in elements, as a scalar."""
