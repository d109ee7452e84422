"""The operators and methods of ``nn.Tensor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pliant._core import FloatImm, IntImm

if TYPE_CHECKING:
    from pliant._core import PrimExpr
    from pliant.relax.frontend.nn.core import Tensor


def _op() -> Any:
    from pliant.relax.frontend.nn import op

    return op


class TensorOperators:
    """The mixin with the Python operators of ``nn.Tensor``. Numbers become scalars with the data type of the tensor."""

    def _operand(self, other: Any) -> Any:
        from pliant.relax.frontend.nn.core import Tensor

        if isinstance(other, FloatImm | IntImm):
            other = other.value
        if isinstance(other, int | float):
            return Tensor.from_scalar(other, dtype=self.dtype)  # type: ignore[attr-defined]
        return other

    def __add__(self, other: Any) -> Tensor:
        return _op().add(self, self._operand(other))

    def __radd__(self, other: Any) -> Tensor:
        return _op().add(self, self._operand(other))

    def __sub__(self, other: Any) -> Tensor:
        return _op().subtract(self, self._operand(other))

    def __rsub__(self, other: Any) -> Tensor:
        return _op().subtract(self._operand(other), self)

    def __mul__(self, other: Any) -> Tensor:
        return _op().multiply(self, self._operand(other))

    def __rmul__(self, other: Any) -> Tensor:
        return _op().multiply(self, self._operand(other))

    def __truediv__(self, other: Any) -> Tensor:
        return _op().divide(self, self._operand(other))

    def __rtruediv__(self, other: Any) -> Tensor:
        return _op().divide(self._operand(other), self)

    def __neg__(self) -> Tensor:
        return _op().negative(self)

    def __matmul__(self, other: Tensor) -> Tensor:
        return _op().matmul(self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _op().less(self, self._operand(other))

    def __le__(self, other: Any) -> Tensor:
        return _op().less_equal(self, self._operand(other))

    def __gt__(self, other: Any) -> Tensor:
        return _op().greater(self, self._operand(other))

    def __ge__(self, other: Any) -> Tensor:
        return _op().greater_equal(self, self._operand(other))

    def astype(self, dtype: str) -> Tensor:
        """Converts the elements to another data type."""
        return _op().astype(self, dtype)

    def maximum(self, other: Any) -> Tensor:
        """The elementwise maximum of this tensor and a tensor or number."""
        return _op().maximum(self, self._operand(other))

    def minimum(self, other: Any) -> Tensor:
        """The elementwise minimum of this tensor and a tensor or number."""
        return _op().minimum(self, self._operand(other))

    def reshape(self, *shape: int | PrimExpr) -> Tensor:
        """Changes the shape. One size may be -1, which is inferred."""
        return _op().reshape(self, shape)

    def permute_dims(self, *axes: int) -> Tensor:
        """Permutes the dims."""
        return _op().permute_dims(self, axes)

    def repeat(self, repeats: int, axis: int | None = None) -> Tensor:
        """Repeats every element, along an axis or of the flattened tensor."""
        return _op().repeat(self, repeats, axis)


__all__ = ["TensorOperators"]
