"""The operators under `R.grad`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def avg_pool2d_backward(output_grad: Operand, data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The adjoint of the data of `R.nn.avg_pool2d`, given the adjoint of its result.

    Data types: `output_grad` any type; `data` any type; result as `data`."""

def end_checkpoint(input: Operand) -> Expr:
    """Returns its operand, which is stored for the gradients; see `start_checkpoint`.

    Data types: `input` any type; result as `input`."""

def max_pool2d_backward(output_grad: Operand, data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The adjoint of the data of `R.nn.max_pool2d`, given the adjoint of its result.

    Data types: `output_grad` any type; `data` any type; result as `data`."""

def nll_loss_backward(output_grad: Operand, predictions: Operand, targets: Operand, weights: Operand | None = None, reduction: str = "mean", ignore_index: int | Sequence[int] = -100) -> Expr:
    """The adjoint of the predictions of `R.nn.nll_loss`, given the adjoint of its result.

    Data types: `output_grad` any type; `predictions` any type; `targets` any type; `weights` any type; result as `predictions`."""

def no_grad(input: Operand) -> Expr:
    """Returns its operand. Its adjoint is 0, so no gradient is computed for the values before it.

    Data types: `input` any type; result as `input`."""

def start_checkpoint(input: Operand) -> Expr:
    """Returns its operand. The pass `Gradient` computes the values between `start_checkpoint` and `end_checkpoint` again for the gradients, instead of storing them.

    Data types: `input` any type; result as `input`."""

def take_backward(output_grad: Operand, x: Operand, indices: Operand, axis: Any = None, mode: str = "fast") -> Expr:
    """The adjoint of the operand `x` of `R.take`, given the adjoint of its result: adds `output_grad` to zeros at the indices.

    Data types: `output_grad` any type; `x` any type; `indices` any type; result as `x`."""
