"""The operators under `R.nn`, generated from their declarations (see docs/reference/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def adaptive_avg_pool1d(data: Operand, output_size: Any = None, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive).

    Implements ONNX GlobalAveragePool."""

def adaptive_avg_pool2d(data: Operand, output_size: Any = None, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive).

    Implements ONNX GlobalAveragePool."""

def adaptive_avg_pool3d(data: Operand, output_size: Any = None, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """Adaptive average pooling: the mean of each of `output_size` parts. Part `k` of `m` along a dim of size `n` consists of the elements from `floor(k * n / m)` (inclusive) to `ceil((k + 1) * n / m)` (exclusive).

    Implements ONNX GlobalAveragePool."""

def attention(query: Operand, key: Operand, value: Operand, bias: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Scaled dot-product attention of queries (batch, len, heads, size) to keys (batch, len_kv, heads_kv, size) and values (batch, len_kv, heads_kv, size_v), with an optional bias that broadcasts to (batch, heads, len, len_kv). If there are fewer key heads than query heads, groups of query heads share a key head. The default scale is 1 / sqrt(size). With `causal_mask`, a query sees the keys up to its own position; the mask is aligned to the first ("TopLeft") or the last ("BottomRight") query and key. With `window_size`, a query sees at most that number of these keys. A query that sees no key results in zeros.

    Implements ONNX Attention."""

def attention_bias(query: Operand, key: Operand, value: Operand, bias: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """The same as relax.nn.attention; the name exists for compatibility."""

def attention_var_len(queries: Operand, keys: Operand, values: Operand, seqstart_q: Operand, max_seqlen_q: Operand, seqstart_k: Operand | None = None, max_seqlen_k: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Attention within concatenated sequences of different lengths: queries (1, len, heads, size), keys and values (1, len_kv, heads_kv, ...). Sequence `b` consists of the positions from `seqstart[b]` (inclusive) to `seqstart[b + 1]` (exclusive). By default, the starts of the keys are those of the queries. Masks are relative to each sequence."""

def avg_pool1d(data: Operand, pool_size: int | Sequence[int] = [1], strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not counted. Elements beyond the padding are never counted.

    Implements ONNX AveragePool."""

def avg_pool2d(data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not counted. Elements beyond the padding are never counted.

    Implements ONNX AveragePool."""

def avg_pool3d(data: Operand, pool_size: int | Sequence[int] = [1, 1, 1], strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The mean of each window. With `count_include_pad`, padding counts as zeros; otherwise, it is not counted. Elements beyond the padding are never counted.

    Implements ONNX AveragePool."""

def batch_flatten(data: Operand) -> Expr:
    """Flattens all dims except the first, without a copy.

    Implements ONNX Flatten."""

def batch_norm(data: Operand, gamma: Operand, beta: Operand, moving_mean: Operand, moving_var: Operand, axis: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1, training: bool = True) -> Expr:
    """Batch normalization with the mean and the population variance for each index of the axis. In training, these are the statistics of the batch, and the moving statistics are updated by the momentum; otherwise, they are the moving statistics. Returns the normalized data, the new mean and the new variance.

    Implements ONNX BatchNormalization."""

def conv1d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], groups: int | Sequence[int] = 1, data_layout: str = "NCW", kernel_layout: str = "OIW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution of data NCW with filters OIW (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats are accumulated in float32.

    Implements ONNX Conv."""

def conv1d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], output_padding: int | Sequence[int] = [0], dilation: int | Sequence[int] = [1], groups: int | Sequence[int] = 1, data_layout: str = "NCW", kernel_layout: str = "IOW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCW with filters IOW (default layouts). In the filter layout, I is the number of input channels, and O is the number of output channels per group.

    Implements ONNX ConvTranspose."""

def conv2d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution of data NCHW with filters OIHW (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats are accumulated in float32.

    Implements ONNX Conv."""

def conv2d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], output_padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCHW with filters IOHW (default layouts). In the filter layout, I is the number of input channels, and O is the number of output channels per group.

    Implements ONNX ConvTranspose."""

def conv3d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCDHW", kernel_layout: str = "OIDHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution of data NCDHW with filters OIDHW (default layouts), without flipping the filter (cross-correlation). `padding` is one number, one number per spatial dim, or all leading paddings followed by all trailing ones. Sums of 16-bit floats are accumulated in float32.

    Implements ONNX Conv."""

def conv3d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], output_padding: int | Sequence[int] = [0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCDHW", kernel_layout: str = "IODHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCDHW with filters IODHW (default layouts). In the filter layout, I is the number of input channels, and O is the number of output channels per group.

    Implements ONNX ConvTranspose."""

def cross_entropy_with_logits(predictions: Operand, labels: Operand) -> Expr:
    """Minus the sum of the products of log-probabilities and labels. If there are 2 or more dims, the sum is divided by the size of the first dim (the batch)."""

def dropout(data: Operand, rate: float = 0.5) -> Expr:
    """Dropout in inference: the unchanged data, and a mask of ones.

    Implements ONNX Dropout."""

def gelu(data: Operand) -> Expr:
    """GELU: `x` times the cumulative distribution function of the standard normal distribution at `x`.

    Implements ONNX Gelu."""

def gelu_tanh(data: Operand) -> Expr:
    """GELU, approximated with tanh.

    Implements ONNX Gelu."""

def group_norm(data: Operand, gamma: Operand, beta: Operand, num_groups: Any, channel_axis: Any, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Group normalization: normalizes the channels of each group, over `axes`, to mean 0 and variance 1, then applies `gamma` and `beta` per channel.

    Implements ONNX GroupNormalization."""

def gru(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0, linear_before_reset: bool = False) -> Expr:
    """A gated recurrent unit (GRU) layer with the gates z, r, h. Operands and results are as for relax.nn.lstm, without cell state and peepholes. With `linear_before_reset`, the reset gate multiplies the product of the state and the recurrent weights, not the state itself.

    Implements ONNX GRU."""

def instance_norm(data: Operand, gamma: Operand, beta: Operand, channel_axis: Any, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Instance normalization: normalizes each channel, over `axes`, to mean 0 and variance 1, then applies `gamma` and `beta` per channel.

    Implements ONNX InstanceNormalization."""

def layer_norm(data: Operand, gamma: Operand, beta: Operand, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Layer normalization: normalizes over `axes` to mean 0 and variance 1, then applies `gamma` and `beta`.

    Implements ONNX LayerNormalization."""

def leakyrelu(data: Operand, alpha: float = 0.01) -> Expr:
    """`alpha * x` for negative `x`, otherwise `x`.

    Implements ONNX LeakyRelu."""

def linear(data: Operand, weight: Operand, bias: Operand | None = None, out_dtype: Any = None) -> Expr:
    """Product of `data` with the transpose of `weight`, of shape (out, in), plus an optional bias.

    Implements ONNX Gemm."""

def log_softmax(data: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """The logarithm of the softmax along an axis.

    Implements ONNX LogSoftmax."""

def lstm(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, initial_c: Operand | None = None, p: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0, input_forget: bool = False) -> Expr:
    """A long short-term memory (LSTM) layer as in ONNX. `x` is (steps, batch, inputs), or with layout 1 (batch, steps, inputs). The weights `w` (directions, 4 * hidden, inputs) and `r` (directions, 4 * hidden, hidden) hold the gates i, o, f, c, in this order. `b` (directions, 8 * hidden) holds the biases of both, and `p` (directions, 3 * hidden) the peepholes i, o, f. Returns all outputs (steps, directions, batch, hidden), the last output and the last cell state (directions, batch, hidden). Sequences end at `sequence_lens`; later outputs are 0.

    Implements ONNX LSTM."""

def matmul(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims. Leading dims are broadcast.

    Corresponds to ``numpy.matmul``.

    Implements ONNX MatMul."""

def max_pool1d(data: Operand, pool_size: int | Sequence[int] = [1], strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start before the trailing padding and end beyond it are included.

    Implements ONNX MaxPool, GlobalMaxPool."""

def max_pool2d(data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start before the trailing padding and end beyond it are included.

    Implements ONNX MaxPool, GlobalMaxPool."""

def max_pool3d(data: Operand, pool_size: int | Sequence[int] = [1, 1, 1], strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The maximum of each window, which ignores the padding. With `ceil_mode`, windows that start before the trailing padding and end beyond it are included.

    Implements ONNX MaxPool, GlobalMaxPool."""

def nll_loss(predictions: Operand, targets: Operand, weights: Operand | None = None, reduction: str = "mean", ignore_index: int | Sequence[int] = -100) -> Expr:
    """Negative log-likelihood loss: minus the log-probability of the target class times the weight of the class. The reduction returns all losses ("none"), their sum ("sum"), or their sum divided by the sum of the weights ("mean"). Targets equal to `ignore_index` are ignored. All others must be valid classes.

    Implements ONNX NegativeLogLikelihoodLoss."""

def pad(data: Operand, pad_width: Operand, pad_mode: str = "constant", pad_value: float = 0.0) -> Expr:
    """Adds elements before and after each axis: (before_1, after_1, before_2, ...). Negative numbers remove elements. The mode selects the new elements: `pad_value` ("constant"), the data mirrored at the edge ("reflect"), the edge element ("replicate" or "edge"), or the data repeated periodically ("circular" or "wrap").

    Corresponds to ``numpy.pad``.

    Implements ONNX Pad."""

def pixel_shuffle(data: Operand, upscale_factor: Any) -> Expr:
    """Rearranges channels to pixels: (..., c * r * r, h, w) to (..., c, h * r, w * r).

    Implements ONNX DepthToSpace."""

def prelu(data: Operand, alpha: Operand, axis: int | Sequence[int] = 1) -> Expr:
    """`x`, multiplied by a slope where it is negative. `alpha` has one slope per index of the axis, or one for all elements.

    Implements ONNX PRelu."""

def relu(data: Operand) -> Expr:
    """`max(x, 0)`.

    Implements ONNX Relu."""

def relu6(data: Operand) -> Expr:
    """`min(max(x, 0), 6)`."""

def rms_norm(data: Operand, weight: Operand, axes: int | Sequence[int] = [-1], epsilon: float = 1e-5) -> Expr:
    """RMS normalization: divides by the root mean square over `axes`, then multiplies by `weight`.

    Implements ONNX RMSNormalization."""

def rnn(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0) -> Expr:
    """A plain recurrent layer, `f(x w + h r + b)`. Operands and results are as for relax.nn.gru.

    Implements ONNX RNN."""

def selu(data: Operand) -> Expr:
    """SELU: `scale * x` for positive `x`, else `scale * alpha * (exp(x) - 1)`, with the constants of the SELU paper.

    Implements ONNX Selu."""

def silu(data: Operand) -> Expr:
    """`x * sigmoid(x)`.

    Implements ONNX Swish."""

def softmax(data: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """The softmax along an axis.

    Implements ONNX Softmax."""

def softplus(data: Operand, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """`log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` exceeds the threshold.

    Implements ONNX Softplus."""
