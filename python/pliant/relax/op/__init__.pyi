"""The operators, generated from their declarations (see docs/reference/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr
from pliant.relax.op import builtin as builtin, image as image, inspect as inspect, memory as memory, nn as nn, signal as signal, vision as vision, vm as vm
from pliant.relax.op._calls import call_tir as call_tir, call_dps_packed as call_dps_packed, call_kernel as call_kernel, call_packed as call_packed, call_pure_packed as call_pure_packed, register_op as register_op

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def abs(x: Operand) -> Expr:
    """Absolute value.

    Corresponds to ``numpy.abs``.

    Implements ONNX Abs."""

def acos(x: Operand) -> Expr:
    """Inverse cosine.

    Corresponds to ``numpy.arccos``.

    Implements ONNX Acos."""

def acosh(x: Operand) -> Expr:
    """Inverse hyperbolic cosine.

    Corresponds to ``numpy.arccosh``.

    Implements ONNX Acosh."""

def add(x1: Operand, x2: Operand) -> Expr:
    """`x1 + x2`.

    Corresponds to ``numpy.add``.

    Implements ONNX Add."""

def arange(start: Operand, end: Operand | None = None, step: Operand | None = None, dtype: Any = None) -> Expr:
    """Evenly spaced values from `start` (inclusive) to `end` (exclusive).

    Corresponds to ``numpy.arange``.

    Implements ONNX Range."""

def argmax(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The index of the first maximum, or of the first NaN if there is one. A reduction over no elements is an error.

    Corresponds to ``numpy.argmax``.

    Implements ONNX ArgMax."""

def argmin(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The index of the first minimum, or of the first NaN if there is one. A reduction over no elements is an error.

    Corresponds to ``numpy.argmin``.

    Implements ONNX ArgMin."""

def argsort(data: Operand, axis: int | Sequence[int] = -1, descending: bool = False, dtype: str = "int32") -> Expr:
    """The indices that sort the elements along an axis. The sort is stable, and NaN is last.

    Corresponds to ``numpy.argsort``."""

def asin(x: Operand) -> Expr:
    """Inverse sine.

    Corresponds to ``numpy.arcsin``.

    Implements ONNX Asin."""

def asinh(x: Operand) -> Expr:
    """Inverse hyperbolic sine.

    Corresponds to ``numpy.arcsinh``.

    Implements ONNX Asinh."""

def assert_op(condition: Operand, *format_args: Operand, format: str = "") -> Expr:
    """Fails at run time if the condition is false."""

def astype(x: Operand, dtype: Any) -> Expr:
    """Conversion to another data type.

    Corresponds to ``numpy.astype``.

    Implements ONNX Cast."""

def atan(x: Operand) -> Expr:
    """Inverse tangent.

    Corresponds to ``numpy.arctan``.

    Implements ONNX Atan."""

def atan2(x1: Operand, x2: Operand) -> Expr:
    """The angle of the point (x2, x1), in radians.

    Corresponds to ``numpy.arctan2``."""

def atanh(x: Operand) -> Expr:
    """Inverse hyperbolic tangent.

    Corresponds to ``numpy.arctanh``.

    Implements ONNX Atanh."""

def bitwise_and(x1: Operand, x2: Operand) -> Expr:
    """Bitwise and.

    Corresponds to ``numpy.bitwise_and``.

    Implements ONNX BitwiseAnd."""

def bitwise_left_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts left. The result is 0 if the distance is negative or at least the bit width.

    Corresponds to ``numpy.left_shift``.

    Implements ONNX BitShift."""

def bitwise_not(x: Operand) -> Expr:
    """Bitwise negation; logical negation of bools.

    Corresponds to ``numpy.bitwise_not``.

    Implements ONNX BitwiseNot."""

def bitwise_or(x1: Operand, x2: Operand) -> Expr:
    """Bitwise or.

    Corresponds to ``numpy.bitwise_or``.

    Implements ONNX BitwiseOr."""

def bitwise_right_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits.

    Corresponds to ``numpy.right_shift``.

    Implements ONNX BitShift."""

def bitwise_xor(x1: Operand, x2: Operand) -> Expr:
    """Bitwise exclusive or.

    Corresponds to ``numpy.bitwise_xor``.

    Implements ONNX BitwiseXor."""

def broadcast_to(x: Operand, shape: Operand) -> Expr:
    """Broadcasts a tensor to a shape.

    Corresponds to ``numpy.broadcast_to``.

    Implements ONNX Expand."""

def bucketize(input_tensor: Operand, boundaries: Operand, out_int32: bool = False, right: bool = False) -> Expr:
    """The insertion index of each element in the sorted `boundaries`: the number of boundaries less than the element, or, with `right`, less than or equal to it. NaN sorts after all boundaries.

    Corresponds to ``numpy.searchsorted``."""

def call_builtin_with_ctx(func: Operand, args: Operand) -> Expr:
    """Calls a builtin that takes the context of the VM."""

def call_inplace_packed(func: Operand, *args: Operand, inplace_indices: Any) -> Expr:
    """Calls a packed function that overwrites inputs: `inplace_indices` has, for each output, the index of the input that it overwrites, or -1 for a new value."""

def call_tir_inplace(gvar: Operand, args: Operand, tir_vars: Operand | None = None, *, inplace_indices: Any) -> Expr:
    """Calls a loop function whose outputs overwrite inputs: `inplace_indices` has, for each output, the index of the input that it overwrites, or -1 for a new tensor."""

def ceil(x: Operand) -> Expr:
    """Rounds towards plus infinity.

    Corresponds to ``numpy.ceil``.

    Implements ONNX Ceil."""

def clip(x: Operand, min: Operand, max: Operand) -> Expr:
    """Clamps the elements to the range from `min` to `max`, two scalars. The result is `max` if `min` is larger than `max`. NaN elements stay NaN.

    Corresponds to ``numpy.clip``.

    Implements ONNX Clip."""

def collapse_sum_like(data: Operand, collapse_target: Operand) -> Expr:
    """The same as collapse_sum_to, with the shape of `collapse_target`."""

def collapse_sum_to(data: Operand, shape: Operand) -> Expr:
    """The inverse of broadcasting: sums over the dims that broadcasting `shape` to the shape of `data` would add or stretch. Whether a symbolic size is 1 is decided at run time."""

def concat(tensors: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Concatenates tensors along an axis. With `axis=None`, they are flattened first and may differ in rank.

    Corresponds to ``numpy.concatenate``.

    Implements ONNX Concat."""

def cos(x: Operand) -> Expr:
    """Cosine.

    Corresponds to ``numpy.cos``.

    Implements ONNX Cos."""

def cosh(x: Operand) -> Expr:
    """Hyperbolic cosine.

    Corresponds to ``numpy.cosh``.

    Implements ONNX Cosh."""

def cumprod(data: Operand, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
    """Cumulative products along an axis, with the attributes of cumsum.

    Corresponds to ``numpy.cumprod``.

    Implements ONNX CumProd."""

def cumsum(data: Operand, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
    """Cumulative sums along an axis, or of the flattened tensor. With `exclusive`, a sum does not include the element at its own index. The result has type `dtype`, by default that of `data`. float16 and bfloat16 are accumulated in float32.

    Corresponds to ``numpy.cumsum``.

    Implements ONNX CumSum."""

def dequantize(data: Operand, scale: Operand, zero_point: Operand, axis: int | Sequence[int] = -1, out_dtype: str = "float32") -> Expr:
    """`(data - zero_point) * scale` in `out_dtype`. `scale` and `zero_point` are scalars (per-tensor) or vectors along the axis (per-channel).

    Implements ONNX DequantizeLinear."""

def divide(x1: Operand, x2: Operand) -> Expr:
    """`x1 / x2`. Integer quotients are rounded towards zero.

    Corresponds to ``numpy.divide``.

    Implements ONNX Div."""

def dot(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims. Leading dims are broadcast.

    Corresponds to ``numpy.matmul``.

    Implements ONNX MatMul."""

def dynamic_strided_slice(x: Operand, begin: Operand, end: Operand, strides: Operand) -> Expr:
    """Slices every dim `d` as Python's `begin[d]:end[d]:strides[d]`. `begin`, `end` and `strides` are int64 vectors with one element per dim. A stride of 0 is a run-time error.

    Implements ONNX Slice."""

def einsum(operands: Operand, subscripts: Any) -> Expr:
    """Sums of products over labelled dims, such as "ij,jk->ik". A label that is repeated in an operand selects its diagonal. "..." stands for all other dims, which are broadcast. Without "->", the result has the labels that occur once, in alphabetical order.

    Corresponds to ``numpy.einsum``.

    Implements ONNX Einsum."""

def equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 == x2`.

    Corresponds to ``numpy.equal``.

    Implements ONNX Equal."""

def erf(x: Operand) -> Expr:
    """Error function.

    Implements ONNX Erf."""

def ewise_fma(x1: Operand, x2: Operand, x3: Operand) -> Expr:
    """`x1 * x2 + x3`. Float results are rounded once."""

def exp(x: Operand) -> Expr:
    """`e` to the power `x`.

    Corresponds to ``numpy.exp``.

    Implements ONNX Exp."""

def expand_dims(x: Operand, axis: Any) -> Expr:
    """Inserts dims of size 1, which become the dims `axis` of the result.

    Corresponds to ``numpy.expand_dims``.

    Implements ONNX Unsqueeze."""

def eye(n: Operand, m: Operand | None = None, k: Operand | None = None, dtype: str = "float32") -> Expr:
    """An `n x m` matrix with ones on diagonal `k` and zeros elsewhere. By default, `m` is `n`.

    Corresponds to ``numpy.eye``."""

def eye_like(x: Operand, k: Operand | None = None, dtype: Any = None) -> Expr:
    """A matrix of the shape of `x` with ones on diagonal `k` and zeros elsewhere.

    Implements ONNX EyeLike."""

def flatten(x: Operand) -> Expr:
    """The elements as a vector, in row-major order.

    Corresponds to ``numpy.ravel``."""

def flip(data: Operand, axis: Any) -> Expr:
    """Reverses the elements along one or more axes.

    Corresponds to ``numpy.flip``."""

def floor(x: Operand) -> Expr:
    """Rounds towards minus infinity.

    Corresponds to ``numpy.floor``.

    Implements ONNX Floor."""

def floor_divide(x1: Operand, x2: Operand) -> Expr:
    """`x1 / x2`, rounded towards minus infinity.

    Corresponds to ``numpy.floor_divide``."""

def floor_mod(x1: Operand, x2: Operand) -> Expr:
    """The remainder of `x1 / x2`, with the sign of the divisor.

    Corresponds to ``numpy.mod``."""

def full(shape: Operand, fill_value: Operand, dtype: Any = None) -> Expr:
    """A tensor of the given shape, filled with a value.

    Corresponds to ``numpy.full``.

    Implements ONNX ConstantOfShape."""

def full_like(x: Operand, fill_value: Operand, dtype: Any = None) -> Expr:
    """A tensor of the shape of `x`, filled with a value.

    Corresponds to ``numpy.full_like``."""

def gather_elements(data: Operand, indices: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Gathers one element of `data` for each element of `indices`. The element at position `p` of the result is read from `data` at `p`, but with the coordinate along the axis replaced by `indices[p]`. Negative indices count from the end.

    Corresponds to ``numpy.take_along_axis``.

    Implements ONNX GatherElements."""

def gather_nd(data: Operand, indices: Operand, batch_dims: int | Sequence[int] = 0) -> Expr:
    """Gathers slices of `data`. The last dim of `indices` holds index tuples into the dims of `data` after the first `batch_dims`, which both operands share. Negative indices count from the end.

    Implements ONNX GatherND."""

def greater(x1: Operand, x2: Operand) -> Expr:
    """`x1 > x2`.

    Corresponds to ``numpy.greater``.

    Implements ONNX Greater."""

def greater_equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 >= x2`.

    Corresponds to ``numpy.greater_equal``.

    Implements ONNX GreaterOrEqual."""

def hamming_window(window_size: Operand, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, dtype: str = "float32") -> Expr:
    """The Hamming window `alpha - beta * cos(2 pi i / n)` for `i` in `0 .. window_size`, where `n` is `window_size` for a periodic window and `window_size - 1` otherwise.

    Corresponds to ``numpy.hamming``.

    Implements ONNX HammingWindow."""

def index_put(data: Operand, indices: Operand, values: Operand, accumulate: bool = False) -> Expr:
    """Writes `values` to the elements `data[indices]`, as NumPy's integer array indexing selects them. With `accumulate`, adds them instead."""

def index_tensor(data: Operand, indices: Operand) -> Expr:
    """NumPy's integer array indexing: `indices` has one integer tensor for each of the leading dims of `data`; the index tensors are broadcast together. Negative indices count from the end."""

def invoke_closure(closure: Operand, args: Operand) -> Expr:
    """Calls a closure."""

def invoke_pure_closure(closure: Operand, args: Operand) -> Expr:
    """Calls a closure that has no side effects."""

def isfinite(x: Operand) -> Expr:
    """Whether the element is neither NaN nor infinite.

    Corresponds to ``numpy.isfinite``."""

def isinf(x: Operand) -> Expr:
    """Whether the element is infinite.

    Corresponds to ``numpy.isinf``.

    Implements ONNX IsInf."""

def isnan(x: Operand) -> Expr:
    """Whether the element is NaN.

    Corresponds to ``numpy.isnan``.

    Implements ONNX IsNaN."""

def item(x: Operand) -> Expr:
    """The only element of a tensor, as a scalar.

    Corresponds to ``numpy.ndarray.item``."""

def layout_transform(x: Operand, index_map: Any, pad_value: Any = None, axis_separators: Any = None, input_axis_separators: Any = None) -> Expr:
    """Moves each element to the indices that `index_map`, a lambda of its indices, computes. Elements of the result without a source are `pad_value`, by default 0. The axis separators are accepted for compatibility with TVM and must be empty."""

def left_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts left. The result is 0 if the distance is negative or at least the bit width.

    Corresponds to ``numpy.left_shift``.

    Implements ONNX BitShift."""

def less(x1: Operand, x2: Operand) -> Expr:
    """`x1 < x2`.

    Corresponds to ``numpy.less``.

    Implements ONNX Less."""

def less_equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 <= x2`.

    Corresponds to ``numpy.less_equal``.

    Implements ONNX LessOrEqual."""

def linear(data: Operand, weight: Operand, bias: Operand | None = None, out_dtype: Any = None) -> Expr:
    """Product of `data` with the transpose of `weight`, of shape (out, in), plus an optional bias.

    Implements ONNX Gemm."""

def log(x: Operand) -> Expr:
    """Natural logarithm.

    Corresponds to ``numpy.log``.

    Implements ONNX Log."""

def log_add_exp(x1: Operand, x2: Operand) -> Expr:
    """`log(exp(x1) + exp(x2))`, computed without overflow.

    Corresponds to ``numpy.logaddexp``."""

def logical_and(x1: Operand, x2: Operand) -> Expr:
    """Whether both elements are nonzero.

    Corresponds to ``numpy.logical_and``.

    Implements ONNX And."""

def logical_not(x: Operand) -> Expr:
    """Whether the element is 0.

    Corresponds to ``numpy.logical_not``.

    Implements ONNX Not."""

def logical_or(x1: Operand, x2: Operand) -> Expr:
    """Whether at least one of the elements is nonzero.

    Corresponds to ``numpy.logical_or``.

    Implements ONNX Or."""

def logical_xor(x1: Operand, x2: Operand) -> Expr:
    """Whether exactly one of the elements is nonzero.

    Corresponds to ``numpy.logical_xor``.

    Implements ONNX Xor."""

def make_closure(func: Operand, args: Operand) -> Expr:
    """Creates a closure: a function whose last arguments are bound to captured values."""

def masked_fill(x: Operand, mask: Operand, value: Operand) -> Expr:
    """Replaces the elements of `x` by a scalar where the mask is true."""

def matmul(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims. Leading dims are broadcast.

    Corresponds to ``numpy.matmul``.

    Implements ONNX MatMul."""

def max(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The maximum over axes; NaN if any element is NaN.

    Corresponds to ``numpy.max``.

    Implements ONNX ReduceMax."""

def maximum(x1: Operand, x2: Operand) -> Expr:
    """The maximum of two elements; NaN if either is NaN.

    Corresponds to ``numpy.maximum``.

    Implements ONNX Max."""

def mean(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The mean over axes.

    Corresponds to ``numpy.mean``.

    Implements ONNX ReduceMean."""

def median(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The median of all elements, or the medians along an axis together with their indices. For an even number of elements, the median is the lower of the two middle elements."""

def meshgrid(tensors: Operand, indexing: str = "ij") -> Expr:
    """Coordinate tensors of a grid: expands vector `k` to the shape of the grid, along dim `k`. With indexing "xy" instead of "ij", the first two dims are exchanged.

    Corresponds to ``numpy.meshgrid``."""

def min(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The minimum over axes; NaN if any element is NaN.

    Corresponds to ``numpy.min``.

    Implements ONNX ReduceMin."""

def minimum(x1: Operand, x2: Operand) -> Expr:
    """The minimum of two elements; NaN if either is NaN.

    Corresponds to ``numpy.minimum``.

    Implements ONNX Min."""

def mod(x1: Operand, x2: Operand) -> Expr:
    """The remainder of `x1 / x2`, with the sign of the divisor.

    Corresponds to ``numpy.mod``.

    Implements ONNX Mod."""

def multinomial_from_uniform(prob: Operand, uniform_sample: Operand, sample_indices: Operand, dtype: str = "int64") -> Expr:
    """Samples from categorical distributions: for each sample, the first class for which the cumulative probability in row `sample_indices` of `prob` exceeds the uniform random number, or else the last class."""

def multiply(x1: Operand, x2: Operand) -> Expr:
    """`x1 * x2`.

    Corresponds to ``numpy.multiply``.

    Implements ONNX Mul."""

def negative(x: Operand) -> Expr:
    """Negation.

    Corresponds to ``numpy.negative``.

    Implements ONNX Neg."""

def nonzero(x: Operand) -> Expr:
    """The indices of the nonzero elements, with one row per dim.

    Corresponds to ``numpy.nonzero``.

    Implements ONNX NonZero."""

def not_equal(x1: Operand, x2: Operand) -> Expr:
    """`x1 != x2`.

    Corresponds to ``numpy.not_equal``."""

def null_value() -> Expr:
    """The null value, which marks an absent operand."""

def one_hot(indices: Operand, on_value: Operand, off_value: Operand, depth: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """Expands each index to a new axis of size `depth` with `on_value` at the index and `off_value` elsewhere. An index outside of `0 .. depth` results in `off_value` only.

    Implements ONNX OneHot."""

def ones(shape: Operand, dtype: str = "float32") -> Expr:
    """A tensor of ones.

    Corresponds to ``numpy.ones``."""

def ones_like(x: Operand, dtype: Any = None) -> Expr:
    """A tensor of ones of the shape of `x`.

    Corresponds to ``numpy.ones_like``."""

def outer(x1: Operand, x2: Operand) -> Expr:
    """Outer product of two vectors.

    Corresponds to ``numpy.outer``."""

def permute_dims(x: Operand, axes: Any = None) -> Expr:
    """Transposes the dims: dim `i` of the result is dim `axes[i]` of the input. By default, the order is reversed.

    Corresponds to ``numpy.transpose``.

    Implements ONNX Transpose."""

def power(x1: Operand, x2: Operand) -> Expr:
    """`x1` to the power `x2`.

    Corresponds to ``numpy.power``.

    Implements ONNX Pow."""

def print(*values: Operand, format: str = "") -> Expr:
    """Prints values."""

def prod(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The product over axes. Bools are multiplied as int64.

    Corresponds to ``numpy.prod``.

    Implements ONNX ReduceProd."""

def quantize(data: Operand, scale: Operand, zero_point: Operand, axis: int | Sequence[int] = -1, out_dtype: str = "int8") -> Expr:
    """`round(data / scale) + zero_point`, with ties rounded to even, saturated to the range of `out_dtype`. `scale` and `zero_point` are scalars (per-tensor) or vectors along the axis (per-channel). An integer `zero_point` of the same width as the result has the type of the result.

    Implements ONNX QuantizeLinear."""

def repeat(x: Operand, repeats: Operand, axis: Any = None) -> Expr:
    """Repeats each element `repeats` times along an axis, or in the flattened tensor.

    Corresponds to ``numpy.repeat``."""

def reshape(x: Operand, shape: Operand) -> Expr:
    """The same elements in another shape. One size may be -1, which is inferred; 0 copies the size of the input dim.

    Corresponds to ``numpy.reshape``.

    Implements ONNX Reshape."""

def reverse_sequence(x: Operand, seq_lengths: Operand, seq_axis: int | Sequence[int] = 1, batch_axis: int | Sequence[int] = 0) -> Expr:
    """For each index `b` of `batch_axis`, reverses the first `seq_lengths[b]` elements along `seq_axis` and keeps the others. A length out of range is a run-time error.

    Implements ONNX ReverseSequence."""

def right_shift(x1: Operand, x2: Operand) -> Expr:
    """Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits.

    Corresponds to ``numpy.right_shift``.

    Implements ONNX BitShift."""

def round(x: Operand) -> Expr:
    """Rounds to the nearest integer, ties to even.

    Corresponds to ``numpy.round``.

    Implements ONNX Round."""

def rsqrt(x: Operand) -> Expr:
    """Reciprocal of the square root."""

def scatter_elements(data: Operand, indices: Operand, updates: Operand, axis: int | Sequence[int] = 0, reduction: str = "update") -> Expr:
    """Writes each element of `updates` to `data`. The element at position `p` is written at `p`, but with the coordinate along the axis replaced by `indices[p]`. The reduction is "update", "add", "mul", "min", "max" or "mean" (of the element and all its updates). Updates are applied in row-major order. Negative indices count from the end.

    Corresponds to ``numpy.put_along_axis``.

    Implements ONNX ScatterElements, Scatter."""

def scatter_nd(data: Operand, indices: Operand, updates: Operand, reduction: str = "update") -> Expr:
    """Writes slices of `updates` to `data` at the index tuples in the last dim of `indices`. The reductions are those of scatter_elements.

    Implements ONNX ScatterND."""

def shape_of(x: Operand) -> Expr:
    """The shape of a tensor.

    Corresponds to ``numpy.shape``.

    Implements ONNX Shape."""

def shape_to_tensor(x: Operand) -> Expr:
    """The dims of a shape as an int64 vector."""

def shift_left(x1: Operand, x2: Operand) -> Expr:
    """Shifts left. The result is 0 if the distance is negative or at least the bit width.

    Corresponds to ``numpy.left_shift``.

    Implements ONNX BitShift."""

def shift_right(x1: Operand, x2: Operand) -> Expr:
    """Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits.

    Corresponds to ``numpy.right_shift``.

    Implements ONNX BitShift."""

def sigmoid(x: Operand) -> Expr:
    """Logistic function.

    Implements ONNX Sigmoid."""

def sign(x: Operand) -> Expr:
    """The sign: -1, 0 or 1. NaN and -0.0 are returned unchanged.

    Corresponds to ``numpy.sign``.

    Implements ONNX Sign."""

def sin(x: Operand) -> Expr:
    """Sine.

    Corresponds to ``numpy.sin``.

    Implements ONNX Sin."""

def sinh(x: Operand) -> Expr:
    """Hyperbolic sine.

    Corresponds to ``numpy.sinh``.

    Implements ONNX Sinh."""

def size(x: Operand) -> Expr:
    """The number of elements, as a tensor of rank 0.

    Corresponds to ``numpy.size``.

    Implements ONNX Size."""

def slice_scatter(input_tensor: Operand, src: Operand, start: Operand, end: Operand, step: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Replaces a slice of `input_tensor` by `src`: the elements along the axis from `start` (inclusive) to `end` (exclusive) with step `step`."""

def sort(x: Operand, axis: int | Sequence[int] = -1, descending: bool = False) -> Expr:
    """Sorts along an axis. The sort is stable, and NaN is last.

    Corresponds to ``numpy.sort``."""

def split(x: Operand, indices_or_sections: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Splits a tensor along an axis into a number of parts, or at indices, which are clamped to the axis. If an axis of size `n` is split into `k` parts, each part has `ceil(n / k)` elements. If `k` does not divide `n`, the last parts are smaller or empty. A part between two indices is empty if the second is not larger than the first.

    Corresponds to ``numpy.split``.

    Implements ONNX Split."""

def sqrt(x: Operand) -> Expr:
    """Square root.

    Corresponds to ``numpy.sqrt``.

    Implements ONNX Sqrt."""

def square(x: Operand) -> Expr:
    """Square.

    Corresponds to ``numpy.square``."""

def squeeze(x: Operand, axis: Any = None) -> Expr:
    """Removes dims of size 1: those in `axis`, or by default all that are known to be 1.

    Corresponds to ``numpy.squeeze``.

    Implements ONNX Squeeze."""

def stack(tensors: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Joins tensors of the same shape along a new axis.

    Corresponds to ``numpy.stack``.

    Implements ONNX ConcatFromSequence."""

def std(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The population standard deviation over axes.

    Corresponds to ``numpy.std``."""

def strided_slice(x: Operand, axes: Operand, begin: Operand, end: Operand, strides: Operand | None = None, assume_inbound: bool = False) -> Expr:
    """Slices along axes: every `strides[k]`-th element from `begin[k]` (inclusive) to `end[k]` (exclusive) of axis `axes[k]`.

    Implements ONNX Slice."""

def subtract(x1: Operand, x2: Operand) -> Expr:
    """`x1 - x2`.

    Corresponds to ``numpy.subtract``.

    Implements ONNX Sub."""

def sum(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The sum over axes. Bools are summed as int64.

    Corresponds to ``numpy.sum``.

    Implements ONNX ReduceSum."""

def take(x: Operand, indices: Operand, axis: Any = None, mode: str = "fast") -> Expr:
    """Gathers slices along an axis at the given indices. Negative indices count from the end. Indices out of range are a run-time error (mode "fast"), are mapped into the range ("clip", "wrap"), or result in NaN ("nan").

    Corresponds to ``numpy.take``.

    Implements ONNX Gather."""

def tan(x: Operand) -> Expr:
    """Tangent.

    Corresponds to ``numpy.tan``.

    Implements ONNX Tan."""

def tanh(x: Operand) -> Expr:
    """Hyperbolic tangent.

    Corresponds to ``numpy.tanh``.

    Implements ONNX Tanh."""

def tensor_scatter(data: Operand, updates: Operand, starts: Operand, axis: int | Sequence[int] = -2, circular: bool = False) -> Expr:
    """Updates a key-value cache: for each index `i` of the first dim, writes `updates[i]` to `data[i]` along the axis, from position `starts[i]` on. With `circular`, positions wrap around at the end of the axis. Updates that do not fit and starts out of range are run-time errors.

    Implements ONNX TensorScatter."""

def tensor_to_shape(x: Operand) -> Expr:
    """The elements of an int64 vector as the dims of a shape."""

def tile(x: Operand, repeats: Operand) -> Expr:
    """Repeats the whole tensor `repeats[k]` times along each axis `k`.

    Corresponds to ``numpy.tile``.

    Implements ONNX Tile."""

def topk(data: Operand, k: Operand = 1, axis: int | Sequence[int] = -1, ret_type: str = "both", largest: bool = True, dtype: str = "int32", nan_is_largest: bool = False) -> Expr:
    """The `k` largest or smallest elements along an axis in sorted order, their indices, or both (`ret_type` "values", "indices", "both"). Equal elements keep their order. NaN is last, or, with `nan_is_largest`, larger than all numbers, as in ONNX.

    Implements ONNX TopK."""

def transpose(x: Operand, axes: Any = None) -> Expr:
    """Transposes the dims: dim `i` of the result is dim `axes[i]` of the input. By default, the order is reversed.

    Corresponds to ``numpy.transpose``.

    Implements ONNX Transpose."""

def tril(x: Operand, k: Operand = 0) -> Expr:
    """The lower triangle of matrices. Elements above diagonal `k` become 0.

    Corresponds to ``numpy.tril``.

    Implements ONNX Trilu."""

def trip_count(start: Operand, stop: Operand, step: Operand) -> Expr:
    """The number of integers in Python's `range(start, stop, step)`, as a scalar. A step of 0 is a run-time error."""

def triu(x: Operand, k: Operand = 0) -> Expr:
    """The upper triangle of matrices. Elements below diagonal `k` become 0.

    Corresponds to ``numpy.triu``.

    Implements ONNX Trilu."""

def trunc(x: Operand) -> Expr:
    """Rounds towards zero.

    Corresponds to ``numpy.trunc``."""

def unique(x: Operand, sorted: bool = True, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None) -> Expr:
    """The distinct elements and, if requested, their first indices, the inverse mapping and their counts.

    Corresponds to ``numpy.unique``.

    Implements ONNX Unique."""

def variance(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The population variance over axes: the mean of the squared differences to the mean.

    Corresponds to ``numpy.var``."""

def where(condition: Operand, x1: Operand, x2: Operand) -> Expr:
    """The element of `x1` where the condition is true, else that of `x2`.

    Corresponds to ``numpy.where``.

    Implements ONNX Where."""

def while_loop(cond: Operand, body: Operand, *state: Operand) -> Expr:
    """Runs a loop: as long as `cond` of the state is true, replaces the state by `body` of the state. Returns the final state."""

def wrap_param(data: Operand, dtype: str = "float32") -> Expr:
    """Converts a model parameter to a data type."""

def zeros(shape: Operand, dtype: str = "float32") -> Expr:
    """A tensor of zeros.

    Corresponds to ``numpy.zeros``."""

def zeros_like(x: Operand, dtype: Any = None) -> Expr:
    """A tensor of zeros of the shape of `x`.

    Corresponds to ``numpy.zeros_like``."""
