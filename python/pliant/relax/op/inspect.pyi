"""The operators under `R.inspect`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def tensor_byte_offset(tensor: Operand) -> Expr:
    """How many bytes behind the beginning of its memory a tensor begins, as a scalar."""

def tensor_dtype_bits(tensor: Operand) -> Expr:
    """The bits of an element, as a scalar."""

def tensor_dtype_code(tensor: Operand) -> Expr:
    """DLPack's code of the kind of elements, as a scalar."""

def tensor_dtype_lanes(tensor: Operand) -> Expr:
    """The lanes of an element, as a scalar: 1."""

def tensor_elem_offset(tensor: Operand) -> Expr:
    """How many elements behind the beginning of its memory a tensor begins, as a scalar."""

def tensor_ndim(tensor: Operand) -> Expr:
    """The number of dims, as a scalar."""

def tensor_shape_i(tensor: Operand, axis: Any) -> Expr:
    """The size of a dim, as a scalar."""

def tensor_stride_i(tensor: Operand, axis: Any) -> Expr:
    """How many elements lie from one index of a dim to the next, as a scalar."""
