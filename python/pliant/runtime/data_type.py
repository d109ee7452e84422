"""Data types as code written for TVM takes them apart."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

from pliant import _core

__all__ = ["DataType", "DataTypeCode"]


class DataTypeCode(IntEnum):
    """DLPack's codes of kinds of elements."""

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
    """The name of a data type, such as ``float32``, with what it says: ``type_code``, ``bits`` and ``lanes``.

    >>> DataType("int8").bits
    8

    Raises ``ValueError`` for names of no data type.
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
        """The bytes of an element."""
        return self.bits // 8

    def with_lanes(self, lanes: int) -> DataType:
        """The type itself for one lane. Tensors hold no vectors, so there are no others.

        Raises ``ValueError`` for more lanes."""
        if lanes != 1:
            raise ValueError(f"{self}x{lanes}: elements of tensors have one lane")
        return self
