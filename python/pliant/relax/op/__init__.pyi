"""The operators, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr
from pliant.relax.op import builtin as builtin, grad as grad, image as image, inspect as inspect, memory as memory, nn as nn, signal as signal, vision as vision, vm as vm
from pliant.relax.op._calls import call_tir as call_tir, call_dps_packed as call_dps_packed, call_kernel as call_kernel, call_packed as call_packed, call_pure_packed as call_pure_packed
from pliant.relax.op._user_operators import register_op as register_op

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def abs(x: Operand) -> Expr:
    """Absolute value.

    Corresponds to ``numpy.abs``.

    Implements ONNX Abs.

    Data types: `x` any type; result as `x`."""

def acos(x: Operand) -> Expr:
    """Inverse cosine, an angle in radians.

    Corresponds to ``numpy.arccos``.

    Implements ONNX Acos.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def acosh(x: Operand) -> Expr:
    """Inverse hyperbolic cosine.

    Corresponds to ``numpy.arccosh``.

    Implements ONNX Acosh.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def add(x1: Operand, x2: Operand) -> Expr:
    """`x1 + x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.add``.

    Implements ONNX Add.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def arange(start: Operand, end: Operand | None = None, step: Operand | None = None, dtype: Any = None) -> Expr:
    """Evenly spaced values from `start` (inclusive) to `end` (exclusive). A single operand is `end`, and `start` is 0. The default `dtype` is int64, or float32 if an operand is a float. Raises an error if `step` is 0, or an integer `dtype` cannot represent the values.

    Corresponds to ``numpy.arange``.

    Implements ONNX Range."""

def argmax(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The index of the first maximum, or of the first NaN if there is one. Without an axis, the index is that in the flattened tensor. Raises an error if the axis is out of range, or the reduction is over no elements.

    Corresponds to ``numpy.argmax``.

    Implements ONNX ArgMax.

    Data types: `x` any type; result int64."""

def argmin(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The index of the first minimum, or of the first NaN if there is one. Without an axis, the index is that in the flattened tensor. Raises an error if the axis is out of range, or the reduction is over no elements.

    Corresponds to ``numpy.argmin``.

    Implements ONNX ArgMin.

    Data types: `x` any type; result int64."""

def argsort(data: Operand, axis: int | Sequence[int] = -1, descending: bool = False, dtype: str = "int32") -> Expr:
    """The indices that sort the elements along an axis, of type `dtype`. The sort is stable, and NaN is last. Raises an error if the axis is out of range, or `dtype` is bool or cannot represent the indices.

    Corresponds to ``numpy.argsort``.

    Data types: `data` any type."""

def asin(x: Operand) -> Expr:
    """Inverse sine, an angle in radians.

    Corresponds to ``numpy.arcsin``.

    Implements ONNX Asin.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def asinh(x: Operand) -> Expr:
    """Inverse hyperbolic sine.

    Corresponds to ``numpy.arcsinh``.

    Implements ONNX Asinh.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def assert_op(condition: Operand, *format_args: Operand, format: str = "") -> Expr:
    """Fails at run time if the condition is false. Raises an error if the condition is not a bool scalar."""

def astype(x: Operand, dtype: Any) -> Expr:
    """Conversion to another data type. Raises an error if `dtype` is not the name of a data type.

    Corresponds to ``numpy.astype``.

    Implements ONNX Cast.

    Data types: `x` any type."""

def atan(x: Operand) -> Expr:
    """Inverse tangent, an angle in radians.

    Corresponds to ``numpy.arctan``.

    Implements ONNX Atan.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def atan2(x1: Operand, x2: Operand) -> Expr:
    """The angle of the point (x2, x1), in radians. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.arctan2``.

    Data types: `x1` floats; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def atanh(x: Operand) -> Expr:
    """Inverse hyperbolic tangent.

    Corresponds to ``numpy.arctanh``.

    Implements ONNX Atanh.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def bitcast(x: Operand, dtype: Any) -> Expr:
    """The bits of the elements as elements of another data type of the same size. A byte other than 0 becomes True. 16-bit floats are not accepted; R.memory.view reinterprets them. Raises an error if `dtype` is not the name of a data type, or its size differs from that of the elements, or one of the types is a 16-bit float.

    Implements ONNX BitCast.

    Data types: `x` int32, uint32, float32."""

def bitwise_and(x1: Operand, x2: Operand) -> Expr:
    """Bitwise and. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.bitwise_and``.

    Implements ONNX BitwiseAnd.

    Data types: `x1` integers, bool; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def bitwise_left_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts left. The result is 0 if the distance is negative or at least the bit width. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.left_shift``.

    Implements ONNX BitShift.

    Data types: `x1` integers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def bitwise_not(x: Operand) -> Expr:
    """Bitwise negation; logical negation of bools.

    Corresponds to ``numpy.bitwise_not``.

    Implements ONNX BitwiseNot.

    Data types: `x` integers, bool; result as `x`. Tensors of other types raise `CompileError`."""

def bitwise_or(x1: Operand, x2: Operand) -> Expr:
    """Bitwise or. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.bitwise_or``.

    Implements ONNX BitwiseOr.

    Data types: `x1` integers, bool; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def bitwise_right_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.right_shift``.

    Implements ONNX BitShift.

    Data types: `x1` integers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def bitwise_xor(x1: Operand, x2: Operand) -> Expr:
    """Bitwise exclusive or. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.bitwise_xor``.

    Implements ONNX BitwiseXor.

    Data types: `x1` integers, bool; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def broadcast_to(x: Operand, shape: Operand) -> Expr:
    """Broadcasts a tensor to a shape. Raises an error if `x` cannot be broadcast to the shape.

    Corresponds to ``numpy.broadcast_to``.

    Implements ONNX Expand.

    Data types: `x` any type; result as `x`."""

def bucketize(input_tensor: Operand, boundaries: Operand, out_int32: bool = False, right: bool = False) -> Expr:
    """The insertion index of each element in the sorted `boundaries`: the number of boundaries less than the element, or, with `right`, less than or equal to it. NaN sorts after all boundaries. The result is int64, or int32 with `out_int32`. Raises an error if `boundaries` is not a vector.

    Corresponds to ``numpy.searchsorted``.

    Data types: `input_tensor` any type; `boundaries` as `input_tensor`. Tensors of other types raise `CompileError`."""

def call_builtin_with_ctx(func: Operand, args: Operand) -> Expr:
    """Calls a builtin that takes the context of the VM."""

def call_inplace_packed(func: Operand, *args: Operand, inplace_indices: Any) -> Expr:
    """Calls a packed function that overwrites inputs: `inplace_indices` has, for each output, the index of the input that it overwrites, or -1 for a new value. Raises an error if `inplace_indices` does not have one entry per output, or an entry is not the index of an input, is that of another entry, or that of an input whose type differs from the output."""

def call_tir_inplace(gvar: Operand, args: Operand, tir_vars: Operand | None = None, *, inplace_indices: Any) -> Expr:
    """Calls a loop function whose outputs overwrite inputs: `inplace_indices` has, for each output, the index of the input that it overwrites, or -1 for a new tensor. Raises an error if `inplace_indices` does not have one entry per output, or an entry is not the index of an input, is that of another entry, or that of an input whose type differs from the output."""

def call_tir_with_grad(gvar: Operand, args: Operand, tir_vars: Operand | None = None, te_grad_kwargs: Any = None, *, te_grad_name: Any) -> Expr:
    """Calls a loop function like call_tir. The pass `Gradient` computes the gradient of the call with the function that is registered under the name `te_grad_name`, which receives `te_grad_kwargs` as keyword arguments."""

def ceil(x: Operand) -> Expr:
    """Rounds towards plus infinity. Integers are returned unchanged.

    Corresponds to ``numpy.ceil``.

    Implements ONNX Ceil.

    Data types: `x` any type; result as `x`."""

def clip(x: Operand, min: Operand, max: Operand) -> Expr:
    """Clamps the elements to the range from `min` to `max`, two scalars. The result is `max` if `min` is larger than `max`. NaN elements stay NaN. Raises an error if `min` or `max` is not a scalar.

    Corresponds to ``numpy.clip``.

    Implements ONNX Clip.

    Data types: `x` any type; `min` as `x`; `max` as `x`; result as `x`. Tensors of other types raise `CompileError`."""

def collapse_sum_like(data: Operand, collapse_target: Operand) -> Expr:
    """The same as collapse_sum_to, with the shape of `collapse_target`. Raises an error if the target has more dims than `data`, or a target size is neither 1 nor that of the dim of `data`.

    Data types: `data` numbers; `collapse_target` any type; result as `data`. Tensors of other types raise `CompileError`."""

def collapse_sum_to(data: Operand, shape: Operand) -> Expr:
    """The inverse of broadcasting: sums over the dims that broadcasting `shape` to the shape of `data` would add or stretch. Whether a symbolic size is 1 is decided at run time. Raises an error if the target has more dims than `data`, or a target size is neither 1 nor that of the dim of `data`.

    Data types: `data` numbers; result as `data`. Tensors of other types raise `CompileError`."""

def concat(tensors: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Concatenates tensors along an axis. With `axis=None`, they are flattened first and may differ in rank. The result has the type of the tensors. Raises an error if there are no tensors, they differ in type, rank or another dim than the axis, or the axis is out of range.

    Corresponds to ``numpy.concatenate``.

    Implements ONNX Concat.

    Data types: `tensors` tuple of any type. Tensors of other types raise `CompileError`."""

def cos(x: Operand) -> Expr:
    """Cosine of an angle in radians.

    Corresponds to ``numpy.cos``.

    Implements ONNX Cos.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def cosh(x: Operand) -> Expr:
    """Hyperbolic cosine.

    Corresponds to ``numpy.cosh``.

    Implements ONNX Cosh.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def cumprod(data: Operand, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
    """Cumulative products along an axis, with the attributes of cumsum. Raises an error if the axis is out of range, or the type of the result is bool.

    Corresponds to ``numpy.cumprod``.

    Implements ONNX CumProd.

    Data types: `data` numbers."""

def cumsum(data: Operand, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
    """Cumulative sums along an axis, or of the flattened tensor. With `exclusive`, a sum does not include the element at its own index. The result has type `dtype`, by default that of `data`. float16 and bfloat16 are accumulated in float32. Raises an error if the axis is out of range, or the type of the result is bool.

    Corresponds to ``numpy.cumsum``.

    Implements ONNX CumSum.

    Data types: `data` numbers."""

def dequantize(data: Operand, scale: Operand, zero_point: Operand, axis: int | Sequence[int] = -1, out_dtype: str = "float32") -> Expr:
    """`(data - zero_point) * scale` in `out_dtype`. `scale` and `zero_point` are scalars (per-tensor) or vectors along the axis (per-channel). Raises an error if the axis is out of range, the size of a vector is not that of the axis, or `out_dtype` is not a float type.

    Implements ONNX DequantizeLinear.

    Data types: `data` integers; `scale` floats; `zero_point` numbers. Tensors of other types raise `CompileError`."""

def divide(x1: Operand, x2: Operand) -> Expr:
    """`x1 / x2`. Integer quotients are rounded towards zero. Raises an error if the shapes cannot be broadcast, or an integer divisor is 0.

    Corresponds to ``numpy.divide``.

    Implements ONNX Div.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def dot(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims. Leading dims are broadcast. A vector is a matrix with one row (`x1`) or one column (`x2`), and the result lacks this dim. The result has type `out_dtype`, by default that of the operands. Sums of 16-bit floats are accumulated in float32. Raises an error if an operand is a scalar, the contracted dims differ, or the leading dims cannot be broadcast.

    Corresponds to ``numpy.matmul``.

    Implements ONNX MatMul.

    Data types: `x1` numbers; `x2` as `x1`. Tensors of other types raise `CompileError`."""

def dynamic_strided_slice(x: Operand, begin: Operand, end: Operand, strides: Operand) -> Expr:
    """Slices every dim `d` as Python's `begin[d]:end[d]:strides[d]`. `begin`, `end` and `strides` are int64 vectors with one element per dim. Raises an error if a vector does not have one element per dim, or a stride is 0.

    Implements ONNX Slice.

    Data types: `x` any type; `begin` integers; `end` integers; `strides` integers; result as `x`. Tensors of other types raise `CompileError`."""

def einsum(operands: Operand, subscripts: Any) -> Expr:
    """Sums of products over labelled dims, such as "ij,jk->ik". A label that is repeated in an operand selects its diagonal. "..." stands for all other dims, which are broadcast. Without "->", the result has the labels that occur once, in alphabetical order. Raises an error if the operands differ in type, the subscripts do not fit their ranks, or the sizes of a label cannot be broadcast.

    Corresponds to ``numpy.einsum``.

    Implements ONNX Einsum.

    Data types: `operands` tuple of numbers. Tensors of other types raise `CompileError`."""

def equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 == x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.equal``.

    Implements ONNX Equal.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def erf(x: Operand) -> Expr:
    """Error function.

    Implements ONNX Erf.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def ewise_fma(x1: Operand, x2: Operand, x3: Operand) -> Expr:
    """`x1 * x2 + x3`. Float results are rounded once. Raises an error if the shapes cannot be broadcast.

    Data types: `x1` numbers; `x2` as `x1`; `x3` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def exp(x: Operand) -> Expr:
    """`e` to the power `x`.

    Corresponds to ``numpy.exp``.

    Implements ONNX Exp.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def expand_dims(x: Operand, axis: Any) -> Expr:
    """Inserts dims of size 1, which become the dims `axis` of the result. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.expand_dims``.

    Implements ONNX Unsqueeze.

    Data types: `x` any type; result as `x`."""

def eye(n: Operand, m: Operand | None = None, k: Operand | None = None, dtype: str = "float32") -> Expr:
    """An `n x m` matrix with ones on diagonal `k` and zeros elsewhere. By default, `m` is `n`. Raises an error if a size is negative.

    Corresponds to ``numpy.eye``."""

def eye_like(x: Operand, k: Operand | None = None, dtype: Any = None) -> Expr:
    """A matrix of the shape of `x` with ones on diagonal `k` and zeros elsewhere. The default `dtype` is that of `x`. Raises an error if `x` does not have 2 dims.

    Implements ONNX EyeLike.

    Data types: `x` any type."""

def flatten(x: Operand) -> Expr:
    """The elements as a vector, in row-major order.

    Corresponds to ``numpy.ravel``.

    Data types: `x` any type; result as `x`."""

def flip(data: Operand, axis: Any) -> Expr:
    """Reverses the elements along one or more axes. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.flip``.

    Data types: `data` any type; result as `data`."""

def floor(x: Operand) -> Expr:
    """Rounds towards minus infinity. Integers are returned unchanged.

    Corresponds to ``numpy.floor``.

    Implements ONNX Floor.

    Data types: `x` any type; result as `x`."""

def floor_divide(x1: Operand, x2: Operand) -> Expr:
    """`x1 / x2`, rounded towards minus infinity. Raises an error if the shapes cannot be broadcast, or an integer divisor is 0.

    Corresponds to ``numpy.floor_divide``.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def floor_mod(x1: Operand, x2: Operand) -> Expr:
    """The remainder of `x1 / x2`, with the sign of the divisor. Raises an error if the shapes cannot be broadcast, or an integer divisor is 0.

    Corresponds to ``numpy.mod``.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def full(shape: Operand, fill_value: Operand, dtype: Any = None) -> Expr:
    """A tensor of the given shape, filled with a value. The default `dtype` is that of the value. Raises an error if a size is negative, or `fill_value` is not a scalar.

    Corresponds to ``numpy.full``.

    Implements ONNX ConstantOfShape.

    Data types: `fill_value` any type."""

def full_like(x: Operand, fill_value: Operand, dtype: Any = None) -> Expr:
    """A tensor of the shape of `x`, filled with a value. The default `dtype` is that of `x`. Raises an error if `fill_value` is not a scalar.

    Corresponds to ``numpy.full_like``.

    Data types: `x` any type; `fill_value` any type."""

def gather_elements(data: Operand, indices: Operand, axis: int | Sequence[int] = 0, wrap_negative: bool = True) -> Expr:
    """Gathers one element of `data` for each element of `indices`. The element at position `p` of the result is read from `data` at `p`, but with the coordinate along the axis replaced by `indices[p]`. Negative indices count from the end; without `wrap_negative`, they are out of range. Raises an error if an index or the axis is out of range, the ranks differ, or a dim of `indices` other than the axis is larger than that of `data`.

    Corresponds to ``numpy.take_along_axis``.

    Implements ONNX GatherElements.

    Data types: `data` any type; `indices` integers; result as `data`. Tensors of other types raise `CompileError`."""

def gather_nd(data: Operand, indices: Operand, batch_dims: int | Sequence[int] = 0) -> Expr:
    """Gathers slices of `data`. The last dim of `indices` holds index tuples into the dims of `data` after the first `batch_dims`, which both operands share. Negative indices count from the end. Raises an error if an index is out of range, a batch dim differs in size, or the last dim of `indices` is not a constant or exceeds the number of indexed dims.

    Implements ONNX GatherND.

    Data types: `data` any type; `indices` integers; result as `data`. Tensors of other types raise `CompileError`."""

def greater(x1: Operand, x2: Operand) -> Expr:
    """`x1 > x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.greater``.

    Implements ONNX Greater.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def greater_equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 >= x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.greater_equal``.

    Implements ONNX GreaterOrEqual.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def hamming_window(window_size: Operand, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, dtype: str = "float32") -> Expr:
    """The Hamming window `alpha - beta * cos(2 pi i / n)` for `i` in `0 .. window_size`, where `n` is `window_size` for a periodic window and `window_size - 1` otherwise. Raises an error if `window_size` is negative, or `dtype` is not a float type.

    Corresponds to ``numpy.hamming``.

    Implements ONNX HammingWindow."""

def index_put(data: Operand, indices: Operand, values: Operand, accumulate: bool = False) -> Expr:
    """Writes `values` to the elements `data[indices]`, as NumPy's integer array indexing selects them. With `accumulate`, adds them instead. Raises an error if an index is out of range, `values` cannot be broadcast to the selected elements, or bools are accumulated.

    Data types: `data` any type; `indices` tuple of integers; `values` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def index_tensor(data: Operand, indices: Operand) -> Expr:
    """NumPy's integer array indexing: `indices` has one integer tensor for each of the leading dims of `data`; the index tensors are broadcast together. Negative indices count from the end. Raises an error if an index is out of range, the shapes of the index tensors cannot be broadcast, or there are more of them than dims.

    Data types: `data` any type; `indices` tuple of integers; result as `data`. Tensors of other types raise `CompileError`."""

def invoke_closure(closure: Operand, args: Operand) -> Expr:
    """Calls a closure. Raises an error if the arguments do not match the parameters of the closure."""

def invoke_pure_closure(closure: Operand, args: Operand) -> Expr:
    """Calls a closure that has no side effects. Raises an error if the arguments do not match the parameters of the closure."""

def isfinite(x: Operand) -> Expr:
    """Whether the element is neither NaN nor infinite.

    Corresponds to ``numpy.isfinite``.

    Data types: `x` any type; result bool."""

def isinf(x: Operand) -> Expr:
    """Whether the element is infinite.

    Corresponds to ``numpy.isinf``.

    Implements ONNX IsInf.

    Data types: `x` any type; result bool."""

def isnan(x: Operand) -> Expr:
    """Whether the element is NaN.

    Corresponds to ``numpy.isnan``.

    Implements ONNX IsNaN.

    Data types: `x` any type; result bool."""

def item(x: Operand) -> Expr:
    """The only element of a tensor, as a scalar of its type. Raises an error if `x` does not have exactly one element.

    Corresponds to ``numpy.ndarray.item``.

    Data types: `x` any type."""

def layout_transform(x: Operand, index_map: Any, pad_value: Any = None, axis_separators: Any = None, input_axis_separators: Any = None) -> Expr:
    """Moves each element to the indices that `index_map`, a lambda of its indices, computes. Elements of the result without a source are `pad_value`, by default 0. The axis separators are accepted for compatibility with TVM and must be empty. Raises an error if `index_map` is not a lambda with one parameter per dim, or has fewer new positions than elements, or if `pad_value` does not fit the type of `x`.

    Data types: `x` any type; result as `x`."""

def left_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts left. The result is 0 if the distance is negative or at least the bit width. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.left_shift``.

    Implements ONNX BitShift.

    Data types: `x1` integers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def less(x1: Operand, x2: Operand) -> Expr:
    """`x1 < x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.less``.

    Implements ONNX Less.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def less_equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 <= x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.less_equal``.

    Implements ONNX LessOrEqual.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def linear(data: Operand, weight: Operand, bias: Operand | None = None, out_dtype: Any = None) -> Expr:
    """Product of `data` with the transpose of `weight`, of shape (out, in), plus an optional bias. The result has type `out_dtype`, by default that of the operands. Raises an error if `weight` does not have 2 dims, the contracted dims differ, or `bias` cannot be broadcast to the product.

    Implements ONNX Gemm.

    Data types: `data` numbers; `weight` as `data`; `bias` as `data`. Tensors of other types raise `CompileError`."""

def log(x: Operand) -> Expr:
    """Natural logarithm.

    Corresponds to ``numpy.log``.

    Implements ONNX Log.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def log_add_exp(x1: Operand, x2: Operand) -> Expr:
    """`log(exp(x1) + exp(x2))`, computed without overflow. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.logaddexp``.

    Data types: `x1` floats; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def logical_and(x1: Operand, x2: Operand) -> Expr:
    """Whether both elements are nonzero. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.logical_and``.

    Implements ONNX And.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def logical_not(x: Operand) -> Expr:
    """Whether the element is 0.

    Corresponds to ``numpy.logical_not``.

    Implements ONNX Not.

    Data types: `x` any type; result bool."""

def logical_or(x1: Operand, x2: Operand) -> Expr:
    """Whether at least one of the elements is nonzero. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.logical_or``.

    Implements ONNX Or.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def logical_xor(x1: Operand, x2: Operand) -> Expr:
    """Whether exactly one of the elements is nonzero. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.logical_xor``.

    Implements ONNX Xor.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def make_closure(func: Operand, args: Operand) -> Expr:
    """Creates a closure: a function whose last arguments are bound to captured values. Raises an error if `func` is not a function, or has fewer parameters than there are captured values."""

def masked_fill(x: Operand, mask: Operand, value: Operand) -> Expr:
    """Replaces the elements of `x` by a scalar where the mask is true. Raises an error if `value` is not a scalar, or the shapes cannot be broadcast.

    Data types: `x` any type; `value` as `x`; result as `x`. Tensors of other types raise `CompileError`."""

def matmul(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims. Leading dims are broadcast. A vector is a matrix with one row (`x1`) or one column (`x2`), and the result lacks this dim. The result has type `out_dtype`, by default that of the operands. Sums of 16-bit floats are accumulated in float32. Raises an error if an operand is a scalar, the contracted dims differ, or the leading dims cannot be broadcast.

    Corresponds to ``numpy.matmul``.

    Implements ONNX MatMul.

    Data types: `x1` numbers; `x2` as `x1`. Tensors of other types raise `CompileError`."""

def max(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The maximum over axes, by default all; NaN if any element is NaN. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.max``.

    Implements ONNX ReduceMax.

    Data types: `x` any type; result as `x`."""

def maximum(x1: Operand, x2: Operand) -> Expr:
    """The maximum of two elements; NaN if either is NaN. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.maximum``.

    Implements ONNX Max.

    Data types: `x1` any type; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def mean(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The mean over axes, by default all. 16-bit floats are accumulated in float32. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.mean``.

    Implements ONNX ReduceMean.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def median(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The median of all elements, or the medians along an axis together with their int64 indices. For an even number of elements, the median is the lower of the two middle elements. Raises an error if the axis is out of range or not one integer, or there are no elements along it.

    Data types: `x` any type; result as `x`."""

def meshgrid(tensors: Operand, indexing: str = "ij") -> Expr:
    """Coordinate tensors of a grid: expands vector `k` to the shape of the grid, along dim `k`. With indexing "xy" instead of "ij", the first two dims are exchanged. Raises an error if there are no tensors, or one of them has more than 1 dim.

    Corresponds to ``numpy.meshgrid``.

    Data types: `tensors` tuple of any type. Tensors of other types raise `CompileError`."""

def min(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The minimum over axes, by default all; NaN if any element is NaN. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.min``.

    Implements ONNX ReduceMin.

    Data types: `x` any type; result as `x`."""

def minimum(x1: Operand, x2: Operand) -> Expr:
    """The minimum of two elements; NaN if either is NaN. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.minimum``.

    Implements ONNX Min.

    Data types: `x1` any type; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def mod(x1: Operand, x2: Operand) -> Expr:
    """The remainder of `x1 / x2`, with the sign of the divisor. Raises an error if the shapes cannot be broadcast, or an integer divisor is 0.

    Corresponds to ``numpy.mod``.

    Implements ONNX Mod.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def multinomial_from_uniform(prob: Operand, uniform_sample: Operand, sample_indices: Operand, dtype: str = "int64") -> Expr:
    """Samples from categorical distributions: for each sample, the first class for which the cumulative probability in row `sample_indices` of `prob` exceeds the uniform random number, or else the last class. `uniform_sample` and `sample_indices` have the shape (n, 1). The classes have type `dtype`. Raises an error if an operand has another shape, a sample index is out of range, there are no classes, or `dtype` is not an integer type.

    Data types: `prob` floats; `uniform_sample` floats; `sample_indices` integers."""

def multiply(x1: Operand, x2: Operand) -> Expr:
    """`x1 * x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.multiply``.

    Implements ONNX Mul.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def negative(x: Operand) -> Expr:
    """Negation.

    Corresponds to ``numpy.negative``.

    Implements ONNX Neg.

    Data types: `x` numbers; result as `x`. Tensors of other types raise `CompileError`."""

def nonzero(x: Operand) -> Expr:
    """The indices of the nonzero elements, with one row per dim.

    Corresponds to ``numpy.nonzero``.

    Implements ONNX NonZero.

    Data types: `x` any type; result int64."""

def not_equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 != x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.not_equal``.

    Data types: `x1` any type; `x2` as `x1`; result bool. Tensors of other types raise `CompileError`."""

def null_value() -> Expr:
    """The null value: as an operand of a call, it marks an optional operand as absent. It has no operands and the type `R.Object`."""

def one_hot(indices: Operand, on_value: Operand, off_value: Operand, depth: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """Expands each index to a new axis of size `depth` with `on_value` at the index and `off_value` elsewhere. An index outside of `0 .. depth` results in `off_value` only. Raises an error if `on_value` or `off_value` is not a scalar, `depth` is negative, or the axis is out of range.

    Implements ONNX OneHot.

    Data types: `indices` integers; `on_value` any type; `off_value` as `on_value`; result as `on_value`. Tensors of other types raise `CompileError`."""

def ones(shape: Operand, dtype: str = "float32") -> Expr:
    """A tensor of ones with the given shape and data type. Raises an error if a size is negative.

    Corresponds to ``numpy.ones``."""

def ones_like(x: Operand, dtype: Any = None) -> Expr:
    """A tensor of ones of the shape of `x`. The default `dtype` is that of `x`.

    Corresponds to ``numpy.ones_like``.

    Data types: `x` any type."""

def outer(x1: Operand, x2: Operand) -> Expr:
    """Outer product of two vectors. Raises an error if an operand is not a vector.

    Corresponds to ``numpy.outer``.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def permute_dims(x: Operand, axes: Any = None) -> Expr:
    """Transposes the dims: dim `i` of the result is dim `axes[i]` of the input. By default, the order is reversed. Raises an error if `axes` is not a permutation of the dims.

    Corresponds to ``numpy.transpose``.

    Implements ONNX Transpose.

    Data types: `x` any type; result as `x`."""

def power(x1: Operand, x2: Operand) -> Expr:
    """`x1` to the power `x2`. Raises an error if the shapes cannot be broadcast, or the integer 0 is raised to a negative power.

    Corresponds to ``numpy.power``.

    Implements ONNX Pow.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def print(*values: Operand, format: str = "") -> Expr:
    """Prints values."""

def prod(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The product over axes, by default all. Bools are multiplied as int64, and other types are kept. 16-bit floats are accumulated in float32. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.prod``.

    Implements ONNX ReduceProd.

    Data types: `x` any type."""

def quantize(data: Operand, scale: Operand, zero_point: Operand, axis: int | Sequence[int] = -1, out_dtype: str = "int8") -> Expr:
    """`round(data / scale) + zero_point`, with ties rounded to even, saturated to the range of `out_dtype`. `scale` and `zero_point` are scalars (per-tensor) or vectors along the axis (per-channel). An integer `zero_point` of the same width as the result has the type of the result. Raises an error if the axis is out of range, the size of a vector is not that of the axis, or `out_dtype` is not an integer type of at most 32 bits.

    Implements ONNX QuantizeLinear.

    Data types: `data` floats; `scale` floats; `zero_point` floats, int8, int16, int32, int64, uint16, uint32, uint64. Tensors of other types raise `CompileError`."""

def repeat(x: Operand, repeats: Operand, axis: Any = None) -> Expr:
    """Repeats each element `repeats` times (one integer) along an axis, or in the flattened tensor if `axis` is None. Raises an error if `repeats` is negative or not one integer, or the axis is out of range.

    Corresponds to ``numpy.repeat``.

    Data types: `x` any type; result as `x`."""

def reshape(x: Operand, shape: Operand) -> Expr:
    """The same elements in another shape. One size may be -1, which is inferred; 0 copies the size of the input dim. Raises an error if the numbers of elements differ, or the shape contains -1 twice or another negative size.

    Corresponds to ``numpy.reshape``.

    Implements ONNX Reshape.

    Data types: `x` any type; result as `x`."""

def reverse_sequence(x: Operand, seq_lengths: Operand, seq_axis: int | Sequence[int] = 1, batch_axis: int | Sequence[int] = 0) -> Expr:
    """For each index `b` of `batch_axis`, reverses the first `seq_lengths[b]` elements along `seq_axis` and keeps the others. Raises an error if a length or an axis is out of range, both axes are the same, or the number of lengths is not that of the sequences.

    Implements ONNX ReverseSequence.

    Data types: `x` any type; `seq_lengths` integers; result as `x`. Tensors of other types raise `CompileError`."""

def right_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.right_shift``.

    Implements ONNX BitShift.

    Data types: `x1` integers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def round(x: Operand) -> Expr:
    """Rounds to the nearest integer, ties to even. Integers are returned unchanged.

    Corresponds to ``numpy.round``.

    Implements ONNX Round.

    Data types: `x` any type; result as `x`."""

def rsqrt(x: Operand) -> Expr:
    """Reciprocal of the square root.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def scatter_elements(data: Operand, indices: Operand, updates: Operand, axis: int | Sequence[int] = 0, reduction: str = "update", wrap_negative: bool = True) -> Expr:
    """Writes each element of `updates` to `data`. The element at position `p` is written at `p`, but with the coordinate along the axis replaced by `indices[p]`. The reduction is "update", "add", "mul", "min", "max" or "mean" (of the element and all its updates). Updates are applied in row-major order. Negative indices count from the end; without `wrap_negative`, they are out of range. Raises an error if an index or the axis is out of range, `updates` does not have the shape of `indices`, or the reduction is not defined on bool.

    Corresponds to ``numpy.put_along_axis``.

    Implements ONNX ScatterElements, Scatter.

    Data types: `data` any type; `indices` integers; `updates` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def scatter_nd(data: Operand, indices: Operand, updates: Operand, reduction: str = "update") -> Expr:
    """Writes slices of `updates` to `data` at the index tuples in the last dim of `indices`. The reductions are those of scatter_elements. Raises an error if an index is out of range, `updates` does not have the shape of the selected slices, the last dim of `indices` is not a constant, or the reduction is not defined on bool.

    Implements ONNX ScatterND.

    Data types: `data` any type; `indices` integers; `updates` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def shape_of(x: Operand) -> Expr:
    """The shape of a tensor.

    Corresponds to ``numpy.shape``.

    Implements ONNX Shape."""

def shape_to_tensor(x: Operand) -> Expr:
    """The dims of a shape as an int64 vector. Raises an error if `x` is neither a shape nor integers."""

def shift_left(x1: Operand, x2: Operand) -> Expr:
    """Shifts left. The result is 0 if the distance is negative or at least the bit width. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.left_shift``.

    Implements ONNX BitShift.

    Data types: `x1` integers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def shift_right(x1: Operand, x2: Operand) -> Expr:
    """Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.right_shift``.

    Implements ONNX BitShift.

    Data types: `x1` integers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def sigmoid(x: Operand) -> Expr:
    """Logistic function.

    Implements ONNX Sigmoid.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def sign(x: Operand) -> Expr:
    """The sign: -1, 0 or 1. NaN and -0.0 are returned unchanged.

    Corresponds to ``numpy.sign``.

    Implements ONNX Sign.

    Data types: `x` numbers; result as `x`. Tensors of other types raise `CompileError`."""

def sin(x: Operand) -> Expr:
    """Sine of an angle in radians.

    Corresponds to ``numpy.sin``.

    Implements ONNX Sin.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def sinh(x: Operand) -> Expr:
    """Hyperbolic sine.

    Corresponds to ``numpy.sinh``.

    Implements ONNX Sinh.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def size(x: Operand) -> Expr:
    """The number of elements, as a tensor of rank 0.

    Corresponds to ``numpy.size``.

    Implements ONNX Size.

    Data types: `x` any type; result int64."""

def slice_scatter(input_tensor: Operand, src: Operand, start: Operand, end: Operand, step: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Replaces a slice of `input_tensor` by `src`: the elements along the axis from `start` (inclusive) to `end` (exclusive) with step `step`. Bounds are resolved as in a Python slice. Raises an error if the axis is out of range, `step` is not a positive constant, or `src` does not have the shape of the slice.

    Data types: `input_tensor` any type; `src` as `input_tensor`; result as `input_tensor`. Tensors of other types raise `CompileError`."""

def sort(x: Operand, axis: int | Sequence[int] = -1, descending: bool = False) -> Expr:
    """Sorts along an axis. The sort is stable, and NaN is last. Raises an error if the axis is out of range.

    Corresponds to ``numpy.sort``.

    Data types: `x` any type; result as `x`."""

def split(x: Operand, indices_or_sections: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Splits a tensor along an axis into a number of parts, or at indices, which are clamped to the axis. If an axis of size `n` is split into `k` parts, each part has `ceil(n / k)` elements. If `k` does not divide `n`, the last parts are smaller or empty. A part between two indices is empty if the second is not larger than the first. Raises an error if an index is negative, the number of parts is not a constant from 1 to 65536, or the axis is out of range.

    Corresponds to ``numpy.split``.

    Implements ONNX Split.

    Data types: `x` any type."""

def sqrt(x: Operand) -> Expr:
    """Square root.

    Corresponds to ``numpy.sqrt``.

    Implements ONNX Sqrt.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def square(x: Operand) -> Expr:
    """Square.

    Corresponds to ``numpy.square``.

    Data types: `x` numbers; result as `x`. Tensors of other types raise `CompileError`."""

def squeeze(x: Operand, axis: Any = None) -> Expr:
    """Removes dims of size 1: those in `axis`, or by default all that are known to be 1. Raises an error if an axis is out of range, occurs twice or has a size other than 1.

    Corresponds to ``numpy.squeeze``.

    Implements ONNX Squeeze.

    Data types: `x` any type; result as `x`."""

def stack(tensors: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Joins tensors of the same shape along a new axis. The result has the type of the tensors. Raises an error if there are no tensors, they differ in type or shape, or the axis is out of range.

    Corresponds to ``numpy.stack``.

    Implements ONNX ConcatFromSequence.

    Data types: `tensors` tuple of any type. Tensors of other types raise `CompileError`."""

def std(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The population standard deviation over axes, by default all. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.std``.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def strided_slice(x: Operand, axes: Operand, begin: Operand, end: Operand, strides: Operand | None = None, assume_inbound: bool = False) -> Expr:
    """Slices along axes: every `strides[k]`-th element from `begin[k]` (inclusive) to `end[k]` (exclusive) of axis `axes[k]`. Raises an error if an axis is out of range or occurs twice, the lists differ in length, or a stride is 0 or not a constant.

    Implements ONNX Slice.

    Data types: `x` any type; result as `x`."""

def subtract(x1: Operand, x2: Operand) -> Expr:
    """`x1 - x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.subtract``.

    Implements ONNX Sub.

    Data types: `x1` numbers; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def sum(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The sum over axes, by default all. Bools are summed as int64, and other types are kept. 16-bit floats are accumulated in float32. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.sum``.

    Implements ONNX ReduceSum.

    Data types: `x` any type."""

def take(x: Operand, indices: Operand, axis: Any = None, mode: str = "fast", wrap_negative: bool = True) -> Expr:
    """Gathers slices along an axis at the given indices. Negative indices count from the end. Indices out of range are a run-time error (mode "fast"), are mapped into the range ("clip", "wrap"), or result in NaN ("nan"). Without `wrap_negative`, negative indices are out of range in the mode "fast". Raises an error if `axis` is out of range, `axis` is missing although `x` is not a vector, the mode is "nan" although `x` is not a float tensor, or `wrap_negative` is false in a mode other than "fast".

    Corresponds to ``numpy.take``.

    Implements ONNX Gather.

    Data types: `x` any type; `indices` integers; result as `x`. Tensors of other types raise `CompileError`."""

def tan(x: Operand) -> Expr:
    """Tangent of an angle in radians.

    Corresponds to ``numpy.tan``.

    Implements ONNX Tan.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def tanh(x: Operand) -> Expr:
    """Hyperbolic tangent.

    Corresponds to ``numpy.tanh``.

    Implements ONNX Tanh.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def tensor_scatter(data: Operand, updates: Operand, starts: Operand, axis: int | Sequence[int] = -2, circular: bool = False) -> Expr:
    """Updates a key-value cache: for each index `i` of the first dim, writes `updates[i]` to `data[i]` along the axis, from position `starts[i]` on. With `circular`, positions wrap around at the end of the axis. Raises an error if updates do not fit, a start is out of range, `axis` is 0 or out of range, or other dims than the axis differ in size.

    Implements ONNX TensorScatter.

    Data types: `data` any type; `updates` as `data`; `starts` integers; result as `data`. Tensors of other types raise `CompileError`."""

def tensor_to_shape(x: Operand) -> Expr:
    """The elements of an int64 vector as the dims of a shape. Raises an error if `x` is not an int64 vector."""

def tile(x: Operand, repeats: Operand) -> Expr:
    """Repeats the whole tensor `repeats[k]` times along each axis `k`. Missing leading axes of `x` have size 1, and missing leading repeats are 1. Raises an error if a number of repeats is negative.

    Corresponds to ``numpy.tile``.

    Implements ONNX Tile.

    Data types: `x` any type; result as `x`."""

def topk(data: Operand, k: Operand = 1, axis: int | Sequence[int] = -1, ret_type: str = "both", largest: bool = True, dtype: str = "int32", nan_is_largest: bool = False) -> Expr:
    """The `k` largest or smallest elements along an axis in sorted order, their indices, or both (`ret_type` "values", "indices", "both"). Indices have type `dtype`. Equal elements keep their order. NaN is last, or, with `nan_is_largest`, larger than all numbers, as in ONNX. Raises an error if `k` is negative or larger than the axis, the axis is out of range, or `dtype` is bool or cannot represent the indices.

    Implements ONNX TopK.

    Data types: `data` any type."""

def transpose(x: Operand, axes: Any = None) -> Expr:
    """Transposes the dims: dim `i` of the result is dim `axes[i]` of the input. By default, the order is reversed. Raises an error if `axes` is not a permutation of the dims.

    Corresponds to ``numpy.transpose``.

    Implements ONNX Transpose.

    Data types: `x` any type; result as `x`."""

def tril(x: Operand, k: Operand = 0) -> Expr:
    """The lower triangle of the matrices in the last two dims. Elements above diagonal `k` become 0. Raises an error if `x` has fewer than 2 dims.

    Corresponds to ``numpy.tril``.

    Implements ONNX Trilu.

    Data types: `x` any type; result as `x`."""

def trip_count(start: Operand, stop: Operand, step: Operand) -> Expr:
    """The number of integers in Python's `range(start, stop, step)`, as an int64 scalar. Raises an error if an operand is not an integer scalar, or `step` is 0."""

def triu(x: Operand, k: Operand = 0) -> Expr:
    """The upper triangle of the matrices in the last two dims. Elements below diagonal `k` become 0. Raises an error if `x` has fewer than 2 dims.

    Corresponds to ``numpy.triu``.

    Implements ONNX Trilu.

    Data types: `x` any type; result as `x`."""

def trunc(x: Operand) -> Expr:
    """Rounds towards zero. Integers are returned unchanged.

    Corresponds to ``numpy.trunc``.

    Data types: `x` any type; result as `x`."""

def unique(x: Operand, sorted: bool = True, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None) -> Expr:
    """The distinct elements and, if requested, int64 vectors of their first indices, of the inverse mapping and of their counts. Raises an error if the axis is out of range.

    Corresponds to ``numpy.unique``.

    Implements ONNX Unique.

    Data types: `x` any type; result as `x`."""

def variance(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The population variance over axes, by default all: the mean of the squared differences to the mean. Raises an error if an axis is out of range or occurs twice.

    Corresponds to ``numpy.var``.

    Data types: `x` floats; result as `x`. Tensors of other types raise `CompileError`."""

def where(condition: Operand, x1: Operand, x2: Operand) -> Expr:
    """The element of `x1` where the condition is true, else that of `x2`. Raises an error if the shapes cannot be broadcast.

    Corresponds to ``numpy.where``.

    Implements ONNX Where.

    Data types: `condition` bool; `x1` any type; `x2` as `x1`; result as `x1`. Tensors of other types raise `CompileError`."""

def while_loop(cond: Operand, body: Operand, *state: Operand) -> Expr:
    """Runs a loop: as long as `cond` of the state is true, replaces the state by `body` of the state. Returns the final state. Raises an error if `cond` does not return a bool scalar, or the state does not match the parameters of `cond` and `body` and the result of `body`."""

def wrap_param(data: Operand, dtype: str = "float32") -> Expr:
    """Converts a model parameter to a data type. Raises an error if `dtype` is not the name of a data type.

    Data types: `data` any type."""

def zeros(shape: Operand, dtype: str = "float32") -> Expr:
    """A tensor of zeros with the given shape and data type. Raises an error if a size is negative.

    Corresponds to ``numpy.zeros``."""

def zeros_like(x: Operand, dtype: Any = None) -> Expr:
    """A tensor of zeros of the shape of `x`. The default `dtype` is that of `x`.

    Corresponds to ``numpy.zeros_like``.

    Data types: `x` any type."""
