"""The operators, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr
from pliant.relax.op import builtin as builtin, image as image, inspect as inspect, memory as memory, nn as nn, signal as signal, vision as vision, vm as vm
from pliant.relax.op._written import call_tir as call_tir, call_dps_packed as call_dps_packed, call_kernel as call_kernel, call_packed as call_packed, call_pure_packed as call_pure_packed, register_op as register_op

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def abs(x: Operand) -> Expr:
    """Absolute value.

    As ``numpy.abs``.

    Serves ONNX Abs."""

def acos(x: Operand) -> Expr:
    """Inverse cosine.

    As ``numpy.arccos``.

    Serves ONNX Acos."""

def acosh(x: Operand) -> Expr:
    """Inverse hyperbolic cosine.

    As ``numpy.arccosh``.

    Serves ONNX Acosh."""

def add(x1: Operand, x2: Operand) -> Expr:
    """Sum.

    As ``numpy.add``.

    Serves ONNX Add."""

def arange(start: Operand, end: Operand | None = None, step: Operand | None = None, dtype: Any = None) -> Expr:
    """Evenly spaced values from start up to, but without, end.

    As ``numpy.arange``.

    Serves ONNX Range."""

def argmax(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Index of the first largest element; of the first NaN if there is one. There must be an element.

    As ``numpy.argmax``.

    Serves ONNX ArgMax."""

def argmin(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Index of the first smallest element; of the first NaN if there is one. There must be an element.

    As ``numpy.argmin``.

    Serves ONNX ArgMin."""

def argsort(data: Operand, axis: int | Sequence[int] = -1, descending: bool = False, dtype: str = "int32") -> Expr:
    """The indices that put the elements in order along an axis; stable, NaN last.

    As ``numpy.argsort``."""

def asin(x: Operand) -> Expr:
    """Inverse sine.

    As ``numpy.arcsin``.

    Serves ONNX Asin."""

def asinh(x: Operand) -> Expr:
    """Inverse hyperbolic sine.

    As ``numpy.arcsinh``.

    Serves ONNX Asinh."""

def assert_op(condition: Operand, *format_args: Operand, format: str = "") -> Expr:
    """Fails unless the condition holds."""

def astype(x: Operand, dtype: Any) -> Expr:
    """Conversion to another data type.

    As ``numpy.astype``.

    Serves ONNX Cast."""

def atan(x: Operand) -> Expr:
    """Inverse tangent.

    As ``numpy.arctan``.

    Serves ONNX Atan."""

def atan2(x1: Operand, x2: Operand) -> Expr:
    """The angle of the point (x2, x1).

    As ``numpy.arctan2``."""

def atanh(x: Operand) -> Expr:
    """Inverse hyperbolic tangent.

    As ``numpy.arctanh``.

    Serves ONNX Atanh."""

def bitwise_and(x1: Operand, x2: Operand) -> Expr:
    """Bits that are set in both.

    As ``numpy.bitwise_and``.

    Serves ONNX BitwiseAnd."""

def bitwise_left_shift(x1: Operand, x2: Operand) -> Expr:
    """Bits moved up; 0 where the distance is negative or as large as the width.

    As ``numpy.left_shift``.

    Serves ONNX BitShift."""

def bitwise_not(x: Operand) -> Expr:
    """Every bit turned over; of bools, negation.

    As ``numpy.bitwise_not``.

    Serves ONNX BitwiseNot."""

def bitwise_or(x1: Operand, x2: Operand) -> Expr:
    """Bits that are set in either.

    As ``numpy.bitwise_or``.

    Serves ONNX BitwiseOr."""

def bitwise_right_shift(x1: Operand, x2: Operand) -> Expr:
    """Bits moved down, the sign kept; only the sign where the distance is negative or as large as the width.

    As ``numpy.right_shift``.

    Serves ONNX BitShift."""

def bitwise_xor(x1: Operand, x2: Operand) -> Expr:
    """Bits that are set in one of them.

    As ``numpy.bitwise_xor``.

    Serves ONNX BitwiseXor."""

def broadcast_to(x: Operand, shape: Operand) -> Expr:
    """Broadcast to a shape.

    As ``numpy.broadcast_to``.

    Serves ONNX Expand."""

def bucketize(input_tensor: Operand, boundaries: Operand, out_int32: bool = False, right: bool = False) -> Expr:
    """The place of each element among sorted boundaries: how many are below it, or with right at most it. NaN comes after all.

    As ``numpy.searchsorted``."""

def call_builtin_with_ctx(func: Operand, args: Operand) -> Expr:
    """Calls a builtin that takes the machine's context."""

def call_inplace_packed(func: Operand, *args: Operand, inplace_indices: Any) -> Expr:
    """Calls a packed function that overwrites the inputs named."""

def call_tir_inplace(gvar: Operand, args: Operand, tir_vars: Operand | None = None, *, inplace_indices: Any) -> Expr:
    """call_tir whose outputs overwrite the inputs named."""

def ceil(x: Operand) -> Expr:
    """Towards plus infinity.

    As ``numpy.ceil``.

    Serves ONNX Ceil."""

def clip(x: Operand, min: Operand, max: Operand) -> Expr:
    """At least min and at most max, two scalars; max where they contradict, NaN of NaN.

    As ``numpy.clip``.

    Serves ONNX Clip."""

def collapse_sum_like(data: Operand, collapse_target: Operand) -> Expr:
    """As collapse_sum_to, to the shape of another tensor."""

def collapse_sum_to(data: Operand, shape: Operand) -> Expr:
    """Sums over the dims that broadcasting the shape to that of data would add or stretch. Whether a size that is a symbol is 1 is seen when it runs."""

def concat(tensors: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Tensors joined along an axis; `axis=None` flattens them first, whatever their ranks.

    As ``numpy.concatenate``.

    Serves ONNX Concat."""

def cos(x: Operand) -> Expr:
    """Cosine.

    As ``numpy.cos``.

    Serves ONNX Cos."""

def cosh(x: Operand) -> Expr:
    """Hyperbolic cosine.

    As ``numpy.cosh``.

    Serves ONNX Cosh."""

def cumprod(data: Operand, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
    """Products of the elements up to each, as cumsum.

    As ``numpy.cumprod``.

    Serves ONNX CumProd."""

def cumsum(data: Operand, axis: Any = None, dtype: Any = None, exclusive: bool = False) -> Expr:
    """Sums of the elements up to each along an axis, or of the flat tensor; without the element itself where exclusive. Of type dtype, or that of data; float16 and bfloat16 are summed in float32.

    As ``numpy.cumsum``.

    Serves ONNX CumSum."""

def dequantize(data: Operand, scale: Operand, zero_point: Operand, axis: int | Sequence[int] = -1, out_dtype: str = "float32") -> Expr:
    """(data - zero_point) * scale in out_dtype. scale and zero_point are scalars, or vectors along the axis.

    Serves ONNX DequantizeLinear."""

def divide(x1: Operand, x2: Operand) -> Expr:
    """Quotient; of integers, rounded towards zero.

    As ``numpy.divide``.

    Serves ONNX Div."""

def dot(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims; leading dims broadcast.

    As ``numpy.matmul``.

    Serves ONNX MatMul."""

def dynamic_strided_slice(x: Operand, begin: Operand, end: Operand, strides: Operand) -> Expr:
    """Every strides[d]-th element of each dim d from begin[d] up to, but without, end[d], as Python slices. begin, end and strides are vectors of int64, one element for each dim; a stride of 0 is refused when it runs.

    Serves ONNX Slice."""

def einsum(operands: Operand, subscripts: Any) -> Expr:
    """Sums of products over labelled dims: "ij,jk->ik". A label that is repeated in an operand takes its diagonal; "..." stands for all other dims, which broadcast; without "->" the result has the labels that occur once, in alphabetical order.

    As ``numpy.einsum``.

    Serves ONNX Einsum."""

def equal(x1: Operand, x2: Operand) -> Expr:
    """Whether equal.

    As ``numpy.equal``.

    Serves ONNX Equal."""

def erf(x: Operand) -> Expr:
    """Error function.

    Serves ONNX Erf."""

def ewise_fma(x1: Operand, x2: Operand, x3: Operand) -> Expr:
    """x1 * x2 + x3; of floats, rounded once."""

def exp(x: Operand) -> Expr:
    """e to that power.

    As ``numpy.exp``.

    Serves ONNX Exp."""

def expand_dims(x: Operand, axis: Any) -> Expr:
    """New dims of size 1 at these places of the result.

    As ``numpy.expand_dims``.

    Serves ONNX Unsqueeze."""

def eye(n: Operand, m: Operand | None = None, k: Operand | None = None, dtype: str = "float32") -> Expr:
    """Ones on the k-th diagonal of an n x m matrix, zeros elsewhere; m is n if not given.

    As ``numpy.eye``."""

def eye_like(x: Operand, k: Operand | None = None, dtype: Any = None) -> Expr:
    """Ones on the k-th diagonal of a matrix of another's shape.

    Serves ONNX EyeLike."""

def flatten(x: Operand) -> Expr:
    """The same elements in one dim.

    As ``numpy.ravel``."""

def flip(data: Operand, axis: Any) -> Expr:
    """The elements in reverse order along an axis, or several.

    As ``numpy.flip``."""

def floor(x: Operand) -> Expr:
    """Towards minus infinity.

    As ``numpy.floor``.

    Serves ONNX Floor."""

def floor_divide(x1: Operand, x2: Operand) -> Expr:
    """Quotient, rounded towards minus infinity.

    As ``numpy.floor_divide``."""

def floor_mod(x1: Operand, x2: Operand) -> Expr:
    """Remainder with the sign of the divisor.

    As ``numpy.mod``."""

def full(shape: Operand, fill_value: Operand, dtype: Any = None) -> Expr:
    """A tensor of one value.

    As ``numpy.full``.

    Serves ONNX ConstantOfShape."""

def full_like(x: Operand, fill_value: Operand, dtype: Any = None) -> Expr:
    """A tensor of one value, of another's shape.

    As ``numpy.full_like``."""

def gather_elements(data: Operand, indices: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """For each element of indices, the element of data at the same place but along the axis, where the index says. Negative indices count from the end.

    As ``numpy.take_along_axis``.

    Serves ONNX GatherElements."""

def gather_nd(data: Operand, indices: Operand, batch_dims: int | Sequence[int] = 0) -> Expr:
    """Slices of data at the index tuples along the last dim of indices, after batch_dims leading dims that both share. Negative indices count from the end.

    Serves ONNX GatherND."""

def greater(x1: Operand, x2: Operand) -> Expr:
    """Whether greater.

    As ``numpy.greater``.

    Serves ONNX Greater."""

def greater_equal(x1: Operand, x2: Operand) -> Expr:
    """Whether greater or equal.

    As ``numpy.greater_equal``.

    Serves ONNX GreaterOrEqual."""

def hamming_window(window_size: Operand, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, dtype: str = "float32") -> Expr:
    """alpha - beta * cos(2 pi i / n) for i in 0 .. window_size, with n = window_size for a periodic window, else one less.

    As ``numpy.hamming``.

    Serves ONNX HammingWindow."""

def index_put(data: Operand, indices: Operand, values: Operand, accumulate: bool = False) -> Expr:
    """data with values put where NumPy's indexing with arrays says, or added there."""

def index_tensor(data: Operand, indices: Operand) -> Expr:
    """NumPy's indexing with arrays: one tensor of integers for each leading dim of data, broadcast together. Negative indices count from the end."""

def invoke_closure(closure: Operand, args: Operand) -> Expr:
    """Calls a closure."""

def invoke_pure_closure(closure: Operand, args: Operand) -> Expr:
    """Calls a closure without effects."""

def isfinite(x: Operand) -> Expr:
    """Whether neither NaN nor infinite.

    As ``numpy.isfinite``."""

def isinf(x: Operand) -> Expr:
    """Whether infinite.

    As ``numpy.isinf``.

    Serves ONNX IsInf."""

def isnan(x: Operand) -> Expr:
    """Whether NaN.

    As ``numpy.isnan``.

    Serves ONNX IsNaN."""

def item(x: Operand) -> Expr:
    """The one element of a tensor, as a scalar.

    As ``numpy.ndarray.item``."""

def layout_transform(x: Operand, index_map: Any, pad_value: Any = None, axis_separators: Any = None, input_axis_separators: Any = None) -> Expr:
    """Each element moved to where index_map, a lambda of its indices, says; places that get none hold pad_value, or 0. The separators of axes are taken for TVM's sake: they have no meaning in one flat memory."""

def left_shift(x1: Operand, x2: Operand) -> Expr:
    """Bits moved up; 0 where the distance is negative or as large as the width.

    As ``numpy.left_shift``.

    Serves ONNX BitShift."""

def less(x1: Operand, x2: Operand) -> Expr:
    """Whether less.

    As ``numpy.less``.

    Serves ONNX Less."""

def less_equal(x1: Operand, x2: Operand) -> Expr:
    """Whether less or equal.

    As ``numpy.less_equal``.

    Serves ONNX LessOrEqual."""

def linear(data: Operand, weight: Operand, bias: Operand | None = None, out_dtype: Any = None) -> Expr:
    """Product with the transpose of a weight (out, in), plus a bias.

    Serves ONNX Gemm."""

def log(x: Operand) -> Expr:
    """Natural logarithm.

    As ``numpy.log``.

    Serves ONNX Log."""

def log_add_exp(x1: Operand, x2: Operand) -> Expr:
    """log(exp(x1) + exp(x2)) without overflow.

    As ``numpy.logaddexp``."""

def logical_and(x1: Operand, x2: Operand) -> Expr:
    """Whether both are not 0.

    As ``numpy.logical_and``.

    Serves ONNX And."""

def logical_not(x: Operand) -> Expr:
    """Whether 0.

    As ``numpy.logical_not``.

    Serves ONNX Not."""

def logical_or(x1: Operand, x2: Operand) -> Expr:
    """Whether either is not 0.

    As ``numpy.logical_or``.

    Serves ONNX Or."""

def logical_xor(x1: Operand, x2: Operand) -> Expr:
    """Whether one of them is not 0.

    As ``numpy.logical_xor``.

    Serves ONNX Xor."""

def make_closure(func: Operand, args: Operand) -> Expr:
    """A function with the values of its free variables."""

def masked_fill(x: Operand, mask: Operand, value: Operand) -> Expr:
    """A scalar where the mask holds, else x."""

def matmul(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims; leading dims broadcast.

    As ``numpy.matmul``.

    Serves ONNX MatMul."""

def max(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Largest over axes; NaN if one is NaN.

    As ``numpy.max``.

    Serves ONNX ReduceMax."""

def maximum(x1: Operand, x2: Operand) -> Expr:
    """The larger; NaN if either is NaN.

    As ``numpy.maximum``.

    Serves ONNX Max."""

def mean(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Mean over axes.

    As ``numpy.mean``.

    Serves ONNX ReduceMean."""

def median(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """The middle element in order, the lower of two, over all elements; along one axis also its index."""

def meshgrid(tensors: Operand, indexing: str = "ij") -> Expr:
    """Each vector as a tensor over the grid of all: of one rank per vector with indexing "ij"; the first two dims exchanged with "xy".

    As ``numpy.meshgrid``."""

def min(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Smallest over axes; NaN if one is NaN.

    As ``numpy.min``.

    Serves ONNX ReduceMin."""

def minimum(x1: Operand, x2: Operand) -> Expr:
    """The smaller; NaN if either is NaN.

    As ``numpy.minimum``.

    Serves ONNX Min."""

def mod(x1: Operand, x2: Operand) -> Expr:
    """Remainder with the sign of the divisor.

    As ``numpy.mod``.

    Serves ONNX Mod."""

def multinomial_from_uniform(prob: Operand, uniform_sample: Operand, sample_indices: Operand, dtype: str = "int64") -> Expr:
    """For each sample the first class whose probabilities up to it, in the row that sample_indices names, sum to more than the uniform number; the last class where none does."""

def multiply(x1: Operand, x2: Operand) -> Expr:
    """Product.

    As ``numpy.multiply``.

    Serves ONNX Mul."""

def negative(x: Operand) -> Expr:
    """Negation.

    As ``numpy.negative``.

    Serves ONNX Neg."""

def nonzero(x: Operand) -> Expr:
    """The indices of elements that are not 0: one row per dim.

    As ``numpy.nonzero``.

    Serves ONNX NonZero."""

def not_equal(x1: Operand, x2: Operand) -> Expr:
    """Whether different.

    As ``numpy.not_equal``."""

def null_value() -> Expr:
    """No value: stands for an optional operand."""

def one_hot(indices: Operand, on_value: Operand, off_value: Operand, depth: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """A new axis of size depth: on_value at the index, off_value elsewhere; all off where the index is not in 0 .. depth.

    Serves ONNX OneHot."""

def ones(shape: Operand, dtype: str = "float32") -> Expr:
    """A tensor of ones.

    As ``numpy.ones``."""

def ones_like(x: Operand, dtype: Any = None) -> Expr:
    """A tensor of ones, of another's shape.

    As ``numpy.ones_like``."""

def outer(x1: Operand, x2: Operand) -> Expr:
    """Outer product of two vectors.

    As ``numpy.outer``."""

def permute_dims(x: Operand, axes: Any = None) -> Expr:
    """The dims in another order; reversed if none is given.

    As ``numpy.transpose``.

    Serves ONNX Transpose."""

def power(x1: Operand, x2: Operand) -> Expr:
    """Power.

    As ``numpy.power``.

    Serves ONNX Pow."""

def print(*values: Operand, format: str = "") -> Expr:
    """Prints values."""

def prod(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Product over axes; of bools as int64.

    As ``numpy.prod``.

    Serves ONNX ReduceProd."""

def quantize(data: Operand, scale: Operand, zero_point: Operand, axis: int | Sequence[int] = -1, out_dtype: str = "int8") -> Expr:
    """round(data / scale) + zero_point, ties to even, brought into the range of out_dtype. scale and zero_point are scalars, or vectors along the axis; an integer zero_point has the type of the result, or another width.

    Serves ONNX QuantizeLinear."""

def repeat(x: Operand, repeats: Operand, axis: Any = None) -> Expr:
    """Each element so many times along an axis, or of the flat tensor.

    As ``numpy.repeat``."""

def reshape(x: Operand, shape: Operand) -> Expr:
    """The same elements in another shape; -1 is found, 0 is copied.

    As ``numpy.reshape``.

    Serves ONNX Reshape."""

def reverse_sequence(x: Operand, seq_lengths: Operand, seq_axis: int | Sequence[int] = 1, batch_axis: int | Sequence[int] = 0) -> Expr:
    """The first seq_lengths[b] elements along seq_axis in reverse order, for each index b of batch_axis; the others as they are. A length below 0 or beyond the axis is refused when it runs.

    Serves ONNX ReverseSequence."""

def right_shift(x1: Operand, x2: Operand) -> Expr:
    """Bits moved down, the sign kept; only the sign where the distance is negative or as large as the width.

    As ``numpy.right_shift``.

    Serves ONNX BitShift."""

def round(x: Operand) -> Expr:
    """To nearest, ties to even.

    As ``numpy.round``.

    Serves ONNX Round."""

def rsqrt(x: Operand) -> Expr:
    """1 over the square root."""

def scatter_elements(data: Operand, indices: Operand, updates: Operand, axis: int | Sequence[int] = 0, reduction: str = "update") -> Expr:
    """data with each element of updates put at its own place but along the axis, where the index says; by reduction "update", "add", "mul", "min", "max" or "mean" (of the element and all its updates). Updates apply in order; negative indices count from the end.

    As ``numpy.put_along_axis``.

    Serves ONNX ScatterElements, Scatter."""

def scatter_nd(data: Operand, indices: Operand, updates: Operand, reduction: str = "update") -> Expr:
    """data with slices of updates put at the index tuples along the last dim of indices; reductions as scatter_elements.

    Serves ONNX ScatterND."""

def shape_of(x: Operand) -> Expr:
    """The shape of a tensor.

    As ``numpy.shape``.

    Serves ONNX Shape."""

def shape_to_tensor(x: Operand) -> Expr:
    """The dims of a shape as a tensor of int64."""

def shift_left(x1: Operand, x2: Operand) -> Expr:
    """Bits moved up; 0 where the distance is negative or as large as the width.

    As ``numpy.left_shift``.

    Serves ONNX BitShift."""

def shift_right(x1: Operand, x2: Operand) -> Expr:
    """Bits moved down, the sign kept; only the sign where the distance is negative or as large as the width.

    As ``numpy.right_shift``.

    Serves ONNX BitShift."""

def sigmoid(x: Operand) -> Expr:
    """Logistic function.

    Serves ONNX Sigmoid."""

def sign(x: Operand) -> Expr:
    """-1, 0 or 1; NaN of NaN, -0.0 of -0.0.

    As ``numpy.sign``.

    Serves ONNX Sign."""

def sin(x: Operand) -> Expr:
    """Sine.

    As ``numpy.sin``.

    Serves ONNX Sin."""

def sinh(x: Operand) -> Expr:
    """Hyperbolic sine.

    As ``numpy.sinh``.

    Serves ONNX Sinh."""

def size(x: Operand) -> Expr:
    """The number of elements, as a tensor of rank 0.

    As ``numpy.size``.

    Serves ONNX Size."""

def slice_scatter(input_tensor: Operand, src: Operand, start: Operand, end: Operand, step: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """The first tensor with src in place of its slice from start up to, but without, end by step along the axis."""

def sort(x: Operand, axis: int | Sequence[int] = -1, descending: bool = False) -> Expr:
    """The elements in order along an axis; stable, NaN last.

    As ``numpy.sort``."""

def split(x: Operand, indices_or_sections: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Parts along an axis: a number of them, or cut at these indices, which are brought into the axis. If an axis of size `n` is split into `k` parts, each part has `ceil(n / k)` elements and the last one the rest, which is smaller if `k` does not divide `n`, and may be empty. A part between indices ends where the next one begins; between indices that fall it is empty.

    As ``numpy.split``.

    Serves ONNX Split."""

def sqrt(x: Operand) -> Expr:
    """Square root.

    As ``numpy.sqrt``.

    Serves ONNX Sqrt."""

def square(x: Operand) -> Expr:
    """Square.

    As ``numpy.square``."""

def squeeze(x: Operand, axis: Any = None) -> Expr:
    """Without dims of size 1: those named, or all known to be 1.

    As ``numpy.squeeze``.

    Serves ONNX Squeeze."""

def stack(tensors: Operand, axis: int | Sequence[int] = 0) -> Expr:
    """Tensors of one shape joined along a new axis.

    As ``numpy.stack``.

    Serves ONNX ConcatFromSequence."""

def std(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Square root of the variance over axes.

    As ``numpy.std``."""

def strided_slice(x: Operand, axes: Operand, begin: Operand, end: Operand, strides: Operand | None = None, assume_inbound: bool = False) -> Expr:
    """Every stride-th element from begin up to, but without, end.

    Serves ONNX Slice."""

def subtract(x1: Operand, x2: Operand) -> Expr:
    """Difference.

    As ``numpy.subtract``.

    Serves ONNX Sub."""

def sum(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Sum over axes; of bools as int64.

    As ``numpy.sum``.

    Serves ONNX ReduceSum."""

def take(x: Operand, indices: Operand, axis: Any = None, mode: str = "fast") -> Expr:
    """Slices along an axis at given indices. Negative ones count from the end; those outside are refused when it runs, or by mode brought into range ("clip", "wrap"), or give NaN ("nan").

    As ``numpy.take``.

    Serves ONNX Gather."""

def tan(x: Operand) -> Expr:
    """Tangent.

    As ``numpy.tan``.

    Serves ONNX Tan."""

def tanh(x: Operand) -> Expr:
    """Hyperbolic tangent.

    As ``numpy.tanh``.

    Serves ONNX Tanh."""

def tensor_scatter(data: Operand, updates: Operand, starts: Operand, axis: int | Sequence[int] = -2, circular: bool = False) -> Expr:
    """data with updates put at positions starts[i] and following along the axis, for each i of the first dim. With circular, the positions continue at 0 after the last. Updates must fit, and starts must be positions.

    Serves ONNX TensorScatter."""

def tensor_to_shape(x: Operand) -> Expr:
    """The shape whose dims are the elements."""

def tile(x: Operand, repeats: Operand) -> Expr:
    """The whole tensor so many times along each axis.

    As ``numpy.tile``.

    Serves ONNX Tile."""

def topk(data: Operand, k: Operand = 1, axis: int | Sequence[int] = -1, ret_type: str = "both", largest: bool = True, dtype: str = "int32") -> Expr:
    """The k largest or smallest elements along an axis in order, their indices, or both (ret_type "values", "indices", "both"). Of equal ones the first come first; NaN last.

    Serves ONNX TopK."""

def transpose(x: Operand, axes: Any = None) -> Expr:
    """The dims in another order; reversed if none is given.

    As ``numpy.transpose``.

    Serves ONNX Transpose."""

def tril(x: Operand, k: Operand = 0) -> Expr:
    """The lower triangle; zeros above the k-th diagonal.

    As ``numpy.tril``.

    Serves ONNX Trilu."""

def trip_count(start: Operand, stop: Operand, step: Operand) -> Expr:
    """How many integers range(start, stop, step) has, as a scalar. A step of 0 is an error at run time."""

def triu(x: Operand, k: Operand = 0) -> Expr:
    """The upper triangle; zeros below the k-th diagonal.

    As ``numpy.triu``.

    Serves ONNX Trilu."""

def trunc(x: Operand) -> Expr:
    """Towards zero.

    As ``numpy.trunc``."""

def unique(x: Operand, sorted: bool = True, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None) -> Expr:
    """The different elements, and where they are and how often.

    As ``numpy.unique``.

    Serves ONNX Unique."""

def variance(x: Operand, axis: Any = None, keepdims: bool = False) -> Expr:
    """Mean squared distance from the mean, over axes.

    As ``numpy.var``."""

def where(condition: Operand, x1: Operand, x2: Operand) -> Expr:
    """Elements of x1 where the condition holds, else of x2.

    As ``numpy.where``.

    Serves ONNX Where."""

def while_loop(cond: Operand, body: Operand, *state: Operand) -> Expr:
    """Calls the body on the state as long as the condition of it holds."""

def wrap_param(data: Operand, dtype: str = "float32") -> Expr:
    """A parameter of the model in this data type."""

def zeros(shape: Operand, dtype: str = "float32") -> Expr:
    """A tensor of zeros.

    As ``numpy.zeros``."""

def zeros_like(x: Operand, dtype: Any = None) -> Expr:
    """A tensor of zeros, of another's shape.

    As ``numpy.zeros_like``."""
