"""Data types with the properties that code written for TVM reads."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

from pliant import _core

__all__ = ["DataType", "DataTypeCode"]


class DataTypeCode(IntEnum):
    """DLPack's codes for the kinds of elements."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    BOOL = 6


_KINDS = {
    "int": DataTypeCode.INT,
    "uint": DataTypeCode.UINT,
    "float": DataTypeCode.FLOAT,
    "bfloat": DataTypeCode.BFLOAT,
    "bool": DataTypeCode.BOOL,
}


class DataType(str):
    """The name of a data type, such as ``float32``, with its ``type_code``, ``bits`` and ``lanes``.

    >>> DataType("int8").bits
    8

    Raises ``DTypeError`` for a name that is not a data type.
    """

    __slots__ = ("bits", "lanes", "type_code")

    type_code: DataTypeCode
    bits: int
    lanes: int

    def __new__(cls, dtype: Any) -> DataType:
        name = str(_core.relax.DataTypeImm(dtype).value)
        self = super().__new__(cls, name)
        kind, bits = re.fullmatch(r"([a-z]+)([0-9]*)", name).groups()  # type: ignore[union-attr]
        self.type_code, self.bits, self.lanes = _KINDS[kind], int(bits or 8), 1
        return self

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.bits // 8

    def with_lanes(self, lanes: int) -> DataType:
        """Returns the type itself for one lane. Elements of tensors are not vectors, so there are
        no other types.

        Raises ``ValueError`` for another number of lanes.
        """
        if lanes != 1:
            raise ValueError(f"the data type {self} cannot have {lanes} lanes: the elements of tensors have one lane")
        return self
