"""Tensors, parameters and other values of the method that is being exported."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant import _core
from pliant._core import IntImm, NDArray, PrimExpr
from pliant._core import Var as TirVar
from pliant.relax.block_builder import BlockBuilder
from pliant.relax.frontend.nn._tensor_operators import TensorOperators

if TYPE_CHECKING:
    from pliant._core.relax import Expr

_relax = _core.relax
_default_dtype = "float32"


def get_default_dtype() -> str:
    """Returns the data type of parameters that are created without one. It is float32 initially."""
    return _default_dtype


def set_default_dtype(dtype: str) -> None:
    """Sets the data type of parameters that are created without one."""
    global _default_dtype
    _default_dtype = str(dtype)


def current_builder() -> BlockBuilder:
    """Returns the block builder of the method that is being exported.

    Raises ``RuntimeError`` outside of an export.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError(
            "operators of nn run while a method is exported: call export_tvm or jit of the module, "
            "or open a function with 'with bb.function(...)'"
        )
    return builder


class Tensor(TensorOperators):
    """A tensor of the method that is being exported. It has no elements: operators on it emit bindings. Its rank, its data type and
    its dims are known, and the dims may be symbolic.

    Raises ``TypeError`` if ``_expr`` is not a tensor of known shape.
    """

    _expr: Expr

    def __init__(self, *, _expr: Expr) -> None:
        info = _expr.struct_info_
        if not isinstance(info, _relax.TensorStructInfo) or not isinstance(info.shape, _relax.ShapeExpr):
            raise TypeError(f"nn.Tensor requires a tensor of known shape, but the expression has the type {info}")
        self._expr = _expr

    @staticmethod
    def from_const(data: Any) -> Tensor:
        """Creates a constant from a number, a list or an array."""
        return Tensor(_expr=_relax.relax_const(data))

    @staticmethod
    def from_scalar(data: int | float, dtype: str) -> Tensor:
        """Creates a constant without dims."""
        return Tensor(_expr=_relax.relax_const(data, dtype))

    @staticmethod
    def from_struct_info(struct_info: Any, name: str = "tensor") -> Tensor:
        """Creates a placeholder of a type."""
        return Tensor(_expr=_relax.Var(name, struct_info))

    @staticmethod
    def placeholder(shape: Sequence[int | str | PrimExpr], dtype: str, name: str = "tensor") -> Tensor:
        """Creates a placeholder. A dim that is a string is a new size variable; equal strings in one shape are one variable.

        Raises ``TypeError`` for a dim that is neither a size nor a string, and ``ShapeError`` for a negative size.
        """
        symbols: dict[str, TirVar] = {}
        dims: list[int | PrimExpr] = []
        for dim in shape:
            if isinstance(dim, str):
                dims.append(symbols.setdefault(dim, TirVar(dim, "int64")))
            elif isinstance(dim, PrimExpr) and not isinstance(dim, IntImm):
                dims.append(dim)
            elif isinstance(dim, int | np.integer | IntImm):
                dims.append(int(dim))
            else:
                raise TypeError(f"'{name}': a dim must be an int, a string or a tir expression, got {dim!r} in {list(shape)}")
        return Tensor(_expr=_relax.Var(name, _relax.TensorStructInfo(dims, dtype)))

    @property
    def shape(self) -> list[Any]:
        """The dims: ints, and ``tir`` expressions for symbolic sizes."""
        return [int(dim) if isinstance(dim, IntImm) else dim for dim in self._expr.struct_info.shape.values]

    @property
    def ndim(self) -> int:
        """The rank."""
        return int(self._expr.struct_info.ndim)

    @property
    def dtype(self) -> str:
        """The data type of the elements."""
        return str(self._expr.struct_info.dtype)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.shape}, "{self.dtype}")'


class Parameter(Tensor):
    """A weight of a module. Its elements may be set (``param.data = array``) before or after the export."""

    _data: NDArray | None

    def __init__(self, shape: Sequence[int | str | PrimExpr], dtype: str | None = None) -> None:
        super().__init__(_expr=Tensor.placeholder(shape, dtype or get_default_dtype(), name="param")._expr)
        self._data = None
        self.attrs: OrderedDict[str, Any] = OrderedDict()

    @property
    def data(self) -> NDArray | None:
        """The elements, or ``None`` if they are not set.

        Accepts an ``NDArray``, a NumPy array, which is copied, or any DLPack tensor, such as one of PyTorch, which is shared.
        Raises ``ValueError`` for another shape or data type, and ``TypeError`` for other objects.
        """
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if data is None:
            self._data = None
            return
        array = as_ndarray(data)
        if problem := self.mismatch(array):
            raise ValueError(f"the parameter {problem}")
        self._data = array

    def mismatch(self, array: NDArray) -> str | None:
        """Describes how an array differs from the shape and data type of this parameter, or returns ``None`` if it fits. A symbolic
        dim fits any size."""
        fits = len(array.shape) == self.ndim and all(
            not isinstance(dim, int) or dim == size for dim, size in zip(self.shape, array.shape, strict=False)
        )
        if not fits:
            dims = ", ".join(str(dim) for dim in self.shape)
            return f"has the shape ({dims}), but the array has the shape {tuple(array.shape)}"
        if array.dtype != self.dtype:
            return f"has the data type {self.dtype}, but the array has {array.dtype}"
        return None

    def to(self, dtype: str | None = None) -> None:
        """Changes the data type. Raises ``ValueError`` if the elements are already set."""
        if dtype is None:
            return
        if self._data is not None:
            raise ValueError(
                f"cannot change the data type of a parameter from {self.dtype} to {dtype}, because its elements are set; "
                "call to() before loading the parameters"
            )
        self._expr = Tensor.placeholder(self.shape, dtype, name="param")._expr


class Object:
    """A value of the method that is being exported that is not a tensor, such as a KV cache."""

    _expr: Expr

    def __init__(self, *, _expr: Expr, _name: str) -> None:
        if not isinstance(_expr, _relax.Var):
            _expr = current_builder().emit(_expr, _name)
        self._expr = _expr
        if not isinstance(_expr.struct_info_, _relax.ObjectStructInfo):
            raise TypeError(f"nn.Object '{_name}' requires a value of the type R.Object, not {_expr.struct_info_}")


def wrap_nested(expr: Expr, name: str) -> Any:
    """Binds an expression to a variable and returns it as an ``nn.Tensor``, or as a tuple of tensors.

    Raises ``TypeError`` if the type of the expression contains other values.
    """
    if not isinstance(expr, _relax.DataflowVar):
        expr = current_builder().emit(expr, name)
    info = expr.struct_info_
    if isinstance(info, _relax.TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, _relax.TupleStructInfo):
        return tuple(wrap_nested(_relax.TupleGetItem(expr, i), f"{name}.{i}") for i in range(len(info.fields)))
    raise TypeError(f"'{name}' must be a tensor or a tuple of tensors, but has the type {info}")


def as_ndarray(data: Any) -> NDArray:
    """Converts an array to an ``NDArray``. NumPy arrays are copied; arrays of other libraries are shared if possible.

    Raises ``TypeError`` for other objects.
    """
    if isinstance(data, NDArray):
        return data
    if isinstance(data, np.ndarray):
        return _core.array(data)
    if hasattr(data, "__dlpack__"):
        tensor = data.detach() if hasattr(data, "detach") else data
        return _core.from_dlpack(tensor if not hasattr(tensor, "contiguous") else tensor.contiguous())
    raise TypeError(f"expected an array of NumPy, PyTorch or Pliant, got {type(data).__name__}")


__all__ = [
    "Object",
    "Parameter",
    "Tensor",
    "as_ndarray",
    "current_builder",
    "get_default_dtype",
    "set_default_dtype",
    "wrap_nested",
]
