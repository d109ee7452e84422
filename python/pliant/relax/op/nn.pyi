"""The operators under `R.nn`, generated from their declarations (see docs/reference/operators.md). A test compares both.

A call with invalid operands or attributes raises `CompileError`, when it is created or when its operand types become known.
Conditions that depend on values or on symbolic sizes are checked when the program runs. In the lists of data types, "as" means
the type of another operand; a scalar adopts it.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def adaptive_avg_pool1d(data: Operand, output_size: Any = None, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive). Raises an error if the layout is invalid or differs in rank from `data`, or a size is negative.

    Implements ONNX GlobalAveragePool.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def adaptive_avg_pool2d(data: Operand, output_size: Any = None, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive). Raises an error if the layout is invalid or differs in rank from `data`, or a size is negative.

    Implements ONNX GlobalAveragePool.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def adaptive_avg_pool3d(data: Operand, output_size: Any = None, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive). Raises an error if the layout is invalid or differs in rank from `data`, or a size is negative.

    Implements ONNX GlobalAveragePool.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def attention(query: Operand, key: Operand, value: Operand, bias: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Scaled dot-product attention (Vaswani et al., 2017) of queries (batch, len, heads, size) to keys (batch, len_kv, heads_kv, size) and values (batch, len_kv, heads_kv, size_v), with an optional bias that broadcasts to (batch, heads, len, len_kv). If there are fewer key heads than query heads, groups of query heads share a key head. The default scale is 1 / sqrt(size). With `causal_mask`, a query sees the keys up to its own position; the mask is aligned to the first ("TopLeft") or the last ("BottomRight") query and key. With `window_size`, a query sees at most that number of these keys. A query that sees no key results in zeros. Raises an error if the sizes of query, key and value do not match, `bias` cannot be broadcast, or `window_size` is set without `causal_mask`.

    Implements ONNX Attention.

    Data types: `query` floats; `key` as `query`; `value` as `query`; `bias` as `query`; result as `query`. Tensors of other types raise `CompileError`."""

def attention_bias(query: Operand, key: Operand, value: Operand, bias: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """The same as relax.nn.attention; the name exists for compatibility. Raises an error if the sizes of query, key and value do not match, `bias` cannot be broadcast, or `window_size` is set without `causal_mask`.

    Data types: `query` floats; `key` as `query`; `value` as `query`; `bias` as `query`; result as `query`. Tensors of other types raise `CompileError`."""

def attention_var_len(queries: Operand, keys: Operand, values: Operand, seqstart_q: Operand, max_seqlen_q: Operand, seqstart_k: Operand | None = None, max_seqlen_k: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Attention within concatenated sequences of different lengths: queries (1, len, heads, size), keys and values (1, len_kv, heads_kv, ...). Sequence `b` consists of the positions from `seqstart[b]` (inclusive) to `seqstart[b + 1]` (exclusive). By default, the starts of the keys are those of the queries. Masks are relative to each sequence. Raises an error if the sizes of queries, keys and values do not match, their first dim is not 1, or a sequence is out of range.

    Data types: `queries` floats; `keys` as `queries`; `values` as `queries`; `seqstart_q` integers; `max_seqlen_q` any type; `seqstart_k` integers; `max_seqlen_k` any type; result as `queries`. Tensors of other types raise `CompileError`."""

def avg_pool1d(data: Operand, pool_size: int | Sequence[int] = [1], strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not counted. Elements beyond the padding are never counted. Raises an error if the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the result would be negative.

    Implements ONNX AveragePool.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def avg_pool2d(data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not counted. Elements beyond the padding are never counted. Raises an error if the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the result would be negative.

    Implements ONNX AveragePool.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def avg_pool3d(data: Operand, pool_size: int | Sequence[int] = [1, 1, 1], strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not counted. Elements beyond the padding are never counted. Raises an error if the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the result would be negative.

    Implements ONNX AveragePool.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def batch_flatten(data: Operand) -> Expr:
    """Flattens all dims except the first, without a copy. Raises an error if `data` is a scalar.

    Implements ONNX Flatten.

    Data types: `data` any type; result as `data`."""

def batch_norm(data: Operand, gamma: Operand, beta: Operand, moving_mean: Operand, moving_var: Operand, axis: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1, training: bool = True) -> Expr:
    """Batch normalization (Ioffe and Szegedy, 2015) with the mean and the population variance for each index of the axis. In training, these are the statistics of the batch, and the moving statistics are updated by the momentum; otherwise, they are the moving statistics. Returns the normalized data, the new mean and the new variance. Raises an error if the axis is out of range, a parameter is not a vector with the size of the axis, or `momentum` is not between 0 and 1.

    Implements ONNX BatchNormalization.

    Data types: `data` floats; `gamma` as `data`; `beta` as `data`; `moving_mean` as `data`; `moving_var` as `data`. Tensors of other types raise `CompileError`."""

def conv1d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], groups: int | Sequence[int] = 1, data_layout: str = "NCW", kernel_layout: str = "OIW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution of data NCW with filters OIW (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats are accumulated in float32. The result has type `out_dtype`, by default that of the operands. Raises an error if a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, or the size of the result would be negative.

    Implements ONNX Conv.

    Data types: `data` numbers; `weight` as `data`. Tensors of other types raise `CompileError`."""

def conv1d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], output_padding: int | Sequence[int] = [0], dilation: int | Sequence[int] = [1], groups: int | Sequence[int] = 1, data_layout: str = "NCW", kernel_layout: str = "IOW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCW with filters IOW (default layouts). In the filter layout, I is the number of input channels, and O is the number of output channels per group. The result has type `out_dtype`, by default that of the operands. Raises an error if a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, the size of the result would be negative, or `output_padding` is not less than the larger of stride and dilation.

    Implements ONNX ConvTranspose.

    Data types: `data` numbers; `weight` as `data`. Tensors of other types raise `CompileError`."""

def conv2d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution of data NCHW with filters OIHW (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats are accumulated in float32. The result has type `out_dtype`, by default that of the operands. Raises an error if a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, or the size of the result would be negative.

    Implements ONNX Conv.

    Data types: `data` numbers; `weight` as `data`. Tensors of other types raise `CompileError`."""

def conv2d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], output_padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCHW with filters IOHW (default layouts). In the filter layout, I is the number of input channels, and O is the number of output channels per group. The result has type `out_dtype`, by default that of the operands. Raises an error if a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, the size of the result would be negative, or `output_padding` is not less than the larger of stride and dilation.

    Implements ONNX ConvTranspose.

    Data types: `data` numbers; `weight` as `data`. Tensors of other types raise `CompileError`."""

def conv3d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCDHW", kernel_layout: str = "OIDHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution of data NCDHW with filters OIDHW (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats are accumulated in float32. The result has type `out_dtype`, by default that of the operands. Raises an error if a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, or the size of the result would be negative.

    Implements ONNX Conv.

    Data types: `data` numbers; `weight` as `data`. Tensors of other types raise `CompileError`."""

def conv3d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], output_padding: int | Sequence[int] = [0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCDHW", kernel_layout: str = "IODHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCDHW with filters IODHW (default layouts). In the filter layout, I is the number of input channels, and O is the number of output channels per group. The result has type `out_dtype`, by default that of the operands. Raises an error if a layout is invalid or differs in rank from its operand, the channels do not match the weight and `groups`, the size of the result would be negative, or `output_padding` is not less than the larger of stride and dilation.

    Implements ONNX ConvTranspose.

    Data types: `data` numbers; `weight` as `data`. Tensors of other types raise `CompileError`."""

def cross_entropy_with_logits(predictions: Operand, labels: Operand) -> Expr:
    """Minus the sum of the products of log-probabilities and labels. If there are 2 or more dims, the sum is divided by the size of the first dim (the batch). The result is a scalar. Raises an error if the operands differ in shape.

    Data types: `predictions` floats; `labels` as `predictions`; result as `predictions`. Tensors of other types raise `CompileError`."""

def dropout(data: Operand, rate: float = 0.5) -> Expr:
    """Dropout in inference: the unchanged data, and a mask of ones of the same type. Raises an error if `rate` is not between 0 and 1.

    Implements ONNX Dropout.

    Data types: `data` floats. Tensors of other types raise `CompileError`."""

def gelu(data: Operand) -> Expr:
    """GELU (Hendrycks and Gimpel, 2016): `x` times the cumulative distribution function of the standard normal distribution at `x`.

    Implements ONNX Gelu.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def gelu_tanh(data: Operand) -> Expr:
    """GELU, approximated with tanh.

    Implements ONNX Gelu.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def group_norm(data: Operand, gamma: Operand, beta: Operand, num_groups: Any, channel_axis: Any, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Group normalization (Wu and He, 2018): normalizes the channels of each group, over `axes`, to mean 0 and variance 1, then applies `gamma` and `beta` per channel. Raises an error if an axis is out of range, `axes` contains the channel axis, a parameter does not have one element per channel, or the number of channels is not a multiple of `num_groups`.

    Implements ONNX GroupNormalization.

    Data types: `data` floats; `gamma` as `data`; `beta` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def gru(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0, linear_before_reset: bool = False) -> Expr:
    """A gated recurrent unit (GRU; Cho et al., 2014) layer with the gates z, r, h. Operands and results are as for relax.nn.lstm, without cell state and peepholes. With `linear_before_reset`, the reset gate multiplies the product of the state and the recurrent weights, not the state itself. Raises an error if the shape of an operand does not match the sizes of the layer, a sequence length is out of range, an activation is unknown, or `clip` is not positive.

    Implements ONNX GRU.

    Data types: `x` floats; `w` as `x`; `r` as `x`; `b` as `x`; `sequence_lens` integers; `initial_h` as `x`. Tensors of other types raise `CompileError`."""

def instance_norm(data: Operand, gamma: Operand, beta: Operand, channel_axis: Any, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Instance normalization (Ulyanov et al., 2016): normalizes each channel, over `axes`, to mean 0 and variance 1, then applies `gamma` and `beta` per channel. Raises an error if an axis is out of range, `axes` contains the channel axis, or a parameter does not have one element per channel.

    Implements ONNX InstanceNormalization.

    Data types: `data` floats; `gamma` as `data`; `beta` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def layer_norm(data: Operand, gamma: Operand, beta: Operand, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Layer normalization (Ba et al., 2016): normalizes over `axes` to mean 0 and variance 1, then applies `gamma` and `beta`. Raises an error if an axis is out of range or occurs twice, or a parameter does not have the dims of `axes`.

    Implements ONNX LayerNormalization.

    Data types: `data` floats; `gamma` as `data`; `beta` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def leakyrelu(data: Operand, alpha: float = 0.01) -> Expr:
    """Leaky ReLU: `alpha * x` for negative `x`, otherwise `x`. Raises an error if `alpha` is NaN.

    Implements ONNX LeakyRelu.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def linear(data: Operand, weight: Operand, bias: Operand | None = None, out_dtype: Any = None) -> Expr:
    """Product of `data` with the transpose of `weight`, of shape (out, in), plus an optional bias. The result has type `out_dtype`, by default that of the operands. Raises an error if `weight` does not have 2 dims, the contracted dims differ, or `bias` cannot be broadcast to the product.

    Implements ONNX Gemm.

    Data types: `data` numbers; `weight` as `data`; `bias` as `data`. Tensors of other types raise `CompileError`."""

def log_softmax(data: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """The logarithm of the softmax along an axis. Raises an error if the axis is out of range.

    Implements ONNX LogSoftmax.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def lstm(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, initial_c: Operand | None = None, p: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0, input_forget: bool = False) -> Expr:
    """A long short-term memory (LSTM; Hochreiter and Schmidhuber, 1997) layer as in ONNX. `x` is (steps, batch, inputs), or with layout 1 (batch, steps, inputs). The weights `w` (directions, 4 * hidden, inputs) and `r` (directions, 4 * hidden, hidden) hold the gates i, o, f, c, in this order. `b` (directions, 8 * hidden) holds the biases of both, and `p` (directions, 3 * hidden) the peepholes i, o, f. Returns all outputs (steps, directions, batch, hidden), the last output and the last cell state (directions, batch, hidden). Sequences end at `sequence_lens`; later outputs are 0. Raises an error if the shape of an operand does not match the sizes of the layer, a sequence length is out of range, an activation is unknown, or `clip` is not positive.

    Implements ONNX LSTM.

    Data types: `x` floats; `w` as `x`; `r` as `x`; `b` as `x`; `sequence_lens` integers; `initial_h` as `x`; `initial_c` as `x`; `p` as `x`. Tensors of other types raise `CompileError`."""

def matmul(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims. Leading dims are broadcast. A vector is a matrix with one row (`x1`) or one column (`x2`), and the result lacks this dim. The result has type `out_dtype`, by default that of the operands. Sums of 16-bit floats are accumulated in float32. Raises an error if an operand is a scalar, the contracted dims differ, or the leading dims cannot be broadcast.

    Corresponds to ``numpy.matmul``.

    Implements ONNX MatMul.

    Data types: `x1` numbers; `x2` as `x1`. Tensors of other types raise `CompileError`."""

def max_pool1d(data: Operand, pool_size: int | Sequence[int] = [1], strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start before the trailing padding and end beyond it are included. Raises an error if the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the result would be negative.

    Implements ONNX MaxPool, GlobalMaxPool.

    Data types: `data` any type; result as `data`."""

def max_pool2d(data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start before the trailing padding and end beyond it are included. Raises an error if the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the result would be negative.

    Implements ONNX MaxPool, GlobalMaxPool.

    Data types: `data` any type; result as `data`."""

def max_pool3d(data: Operand, pool_size: int | Sequence[int] = [1, 1, 1], strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start before the trailing padding and end beyond it are included. Raises an error if the layout is invalid or differs in rank from `data`, padding is not smaller than the window, or the size of the result would be negative.

    Implements ONNX MaxPool, GlobalMaxPool.

    Data types: `data` any type; result as `data`."""

def nll_loss(predictions: Operand, targets: Operand, weights: Operand | None = None, reduction: str = "mean", ignore_index: int | Sequence[int] = -100) -> Expr:
    """Negative log-likelihood loss: minus the log-probability of the target class times the weight of the class. The reduction returns all losses ("none"), their sum ("sum"), or their sum divided by the sum of the weights ("mean"). Targets equal to `ignore_index` are ignored. Raises an error if a target that is not ignored is no class, `targets` does not have the shape of `predictions` without the class dim, or `weights` does not have one element per class.

    Implements ONNX NegativeLogLikelihoodLoss.

    Data types: `predictions` floats; `targets` integers; `weights` as `predictions`; result as `predictions`. Tensors of other types raise `CompileError`."""

def pad(data: Operand, pad_width: Operand, pad_mode: str = "constant", pad_value: float = 0.0) -> Expr:
    """Adds elements before and after each axis: (before_1, after_1, before_2, ...). Negative numbers remove elements. The mode selects the new elements: `pad_value` ("constant"), the data mirrored at the edge ("reflect"), the edge element ("replicate" or "edge"), or the data repeated periodically ("circular" or "wrap"). Raises an error if `pad_width` does not have two values per axis, the mode needs more elements than an axis has, or `pad_value` does not fit the type of `data`.

    Corresponds to ``numpy.pad``.

    Implements ONNX Pad.

    Data types: `data` any type; result as `data`."""

def pixel_shuffle(data: Operand, upscale_factor: Any) -> Expr:
    """Rearranges channels to pixels (Shi et al., 2016): (..., c * r * r, h, w) to (..., c, h * r, w * r). Raises an error if `data` has fewer than 3 dims, or the number of channels is not a multiple of the square of `upscale_factor`.

    Implements ONNX DepthToSpace.

    Data types: `data` any type; result as `data`."""

def prelu(data: Operand, alpha: Operand, axis: int | Sequence[int] = 1) -> Expr:
    """Parametric ReLU (He et al., 2015): `x`, multiplied by a slope where it is negative. `alpha` has one slope per index of the axis, or one for all elements. Raises an error if `alpha` has more than 1 dim or not one element per index of the axis, or the axis is out of range.

    Implements ONNX PRelu.

    Data types: `data` floats; `alpha` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def relu(data: Operand) -> Expr:
    """`max(x, 0)`.

    Implements ONNX Relu.

    Data types: `data` numbers; result as `data`. Tensors of other types raise `CompileError`."""

def relu6(data: Operand) -> Expr:
    """ReLU with an upper limit: `min(max(x, 0), 6)`.

    Data types: `data` numbers; result as `data`. Tensors of other types raise `CompileError`."""

def rms_norm(data: Operand, weight: Operand, axes: int | Sequence[int] = [-1], epsilon: float = 1e-5) -> Expr:
    """RMS normalization (Zhang and Sennrich, 2019): divides by the root mean square over `axes`, then multiplies by `weight`. Raises an error if an axis is out of range or occurs twice, or a parameter does not have the dims of `axes`.

    Implements ONNX RMSNormalization.

    Data types: `data` floats; `weight` as `data`; result as `data`. Tensors of other types raise `CompileError`."""

def rnn(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0) -> Expr:
    """A plain recurrent layer, `f(x w + h r + b)`. Operands and results are as for relax.nn.gru. Raises an error if the shape of an operand does not match the sizes of the layer, a sequence length is out of range, an activation is unknown, or `clip` is not positive.

    Implements ONNX RNN.

    Data types: `x` floats; `w` as `x`; `r` as `x`; `b` as `x`; `sequence_lens` integers; `initial_h` as `x`. Tensors of other types raise `CompileError`."""

def selu(data: Operand) -> Expr:
    """SELU (Klambauer et al., 2017): `scale * x` for positive `x`, else `scale * alpha * (exp(x) - 1)`, with the constants of the paper.

    Implements ONNX Selu.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def silu(data: Operand) -> Expr:
    """`x * sigmoid(x)`.

    Implements ONNX Swish.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def softmax(data: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """The softmax along an axis: `exp(x) / sum(exp(x))`. 16-bit floats are accumulated in float32. Raises an error if the axis is out of range.

    Implements ONNX Softmax.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""

def softplus(data: Operand, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """`log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` exceeds the threshold. Raises an error if `beta` is 0.

    Implements ONNX Softplus.

    Data types: `data` floats; result as `data`. Tensors of other types raise `CompileError`."""
