"""Losses: functions of predictions and targets that return a scalar (or, with ``reduction="none"``, one loss per element).

A loss is called with the types of its operands and returns a graph function. :func:`pliant.relax.training.AppendLoss` appends it to a
model.
"""

from __future__ import annotations

from typing import Any

from pliant import _core
from pliant.relax import op
from pliant.relax.block_builder import BlockBuilder

__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]

_relax = _core.relax
_REDUCTIONS = ("mean", "sum", "none")


def _as_var(name: str, value: Any) -> Any:
    """A parameter of the loss function from a type, or from a variable with the type of the parameter."""
    if isinstance(value, _relax.Var):
        return _relax.Var(value.name_hint, value.struct_info)
    return _relax.Var(name, value)


class Loss:
    """The base class of losses. A subclass defines ``__call__``, which returns the graph function.

    ``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``. ``num_backbone_outputs`` is the number of operands that the model computes;
    the remaining operands, such as targets, become parameters of the differentiated function. Raises ``ValueError`` for another
    reduction.
    """

    num_backbone_outputs = 1

    def __init__(self, loss_name: str, reduction: str = "mean", num_backbone_outputs: int = 1) -> None:
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{loss_name}: reduction must be one of {', '.join(_REDUCTIONS)}, but is {reduction!r}")
        self._loss_name = loss_name
        self._reduction = reduction
        self.num_backbone_outputs = num_backbone_outputs

    def _reduce(self, losses: Any) -> Any:
        """The losses after the reduction."""
        if self._reduction == "none":
            return losses
        return op.mean(losses) if self._reduction == "mean" else op.sum(losses)

    def _function(self, operands: list[Any], compute: Any) -> Any:
        """Builds the graph function over the parameters ``operands``, with the result ``compute(*operands)``."""
        builder = BlockBuilder()
        with builder.function(self._loss_name, operands):
            with builder.dataflow():
                result = builder.emit_output(compute(*operands))
            builder.emit_func_output(result)
        return builder.get()[self._loss_name]

    def __call__(self, *operands: Any) -> Any:
        """Returns the graph function for operands of the given types."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class L1Loss(Loss):
    """The absolute differences of predictions and targets of the same shape."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("l1_loss", reduction)

    def __call__(self, predictions: Any, targets: Any) -> Any:
        """Returns the function of two tensors of the given types."""
        operands = [_as_var("predictions", predictions), _as_var("targets", targets)]
        return self._function(operands, lambda p, t: self._reduce(op.abs(op.subtract(p, t))))


class MSELoss(Loss):
    """The squared differences of predictions and targets of the same shape."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__("mse_loss", reduction)

    def __call__(self, predictions: Any, targets: Any) -> Any:
        """Returns the function of two tensors of the given types."""
        operands = [_as_var("predictions", predictions), _as_var("targets", targets)]
        return self._function(operands, lambda p, t: self._reduce(op.square(op.subtract(p, t))))


class CrossEntropyLoss(Loss):
    """Cross entropy of logits of shape (n, classes, ...) and integer class indices of shape (n, ...).

    ``ignore_index`` is the target whose losses are ignored.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("cross_entropy_loss", reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions: Any, targets: Any, weights: Any = None) -> Any:
        """Returns the function of logits and targets, and optionally of a vector with the weight of each class."""
        operands = [_as_var("predictions", predictions), _as_var("targets", targets)]
        if weights is not None:
            operands.append(_as_var("weights", weights))
        rank = operands[0].struct_info.ndim
        axis = -1 if rank == 1 else 1

        def compute(logits: Any, targets: Any, *weights: Any) -> Any:
            log_probabilities = op.nn.log_softmax(logits, axis=axis)
            return op.nn.nll_loss(
                log_probabilities,
                targets,
                weights[0] if weights else None,
                reduction=self._reduction,
                ignore_index=self.ignore_index,
            )

        return self._function(operands, compute)


class CategoricalCrossEntropyLoss(Loss):
    """Cross entropy of logits and target probabilities of the same shape (n, classes), such as one-hot vectors.

    Targets whose most probable class is ``ignore_index`` are ignored if ``ignore_index`` is not negative.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__("categorical_cross_entropy_loss", reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions: Any, targets: Any, weights: Any = None) -> Any:
        """Returns the function of logits and target probabilities, and optionally of a vector with the weight of each class."""
        operands = [_as_var("predictions", predictions), _as_var("targets", targets)]
        if weights is not None:
            operands.append(_as_var("weights", weights))

        def compute(logits: Any, targets: Any, *weights: Any) -> Any:
            weighted = op.multiply(op.negative(op.nn.log_softmax(logits)), targets)
            scale = targets
            if weights:
                weighted = op.multiply(weighted, weights[0])
                scale = op.multiply(targets, weights[0])
            if self.ignore_index >= 0:
                index = op.argmax(targets, axis=1, keepdims=True)
                counted = op.astype(op.not_equal(index, _relax.relax_const(self.ignore_index, "int64")), self._dtype(operands))
                weighted, scale = op.multiply(weighted, counted), op.multiply(scale, counted)
            if self._reduction == "mean":
                return op.divide(op.sum(weighted), op.sum(scale))
            return op.sum(weighted) if self._reduction == "sum" else weighted

        return self._function(operands, compute)

    @staticmethod
    def _dtype(operands: list[Any]) -> str:
        return str(operands[0].struct_info.dtype)
