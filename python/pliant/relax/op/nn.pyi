"""The operators under `R.nn`, written from their declarations (see docs/operators.md). A test compares both."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pliant._core.relax import Expr

# An expression, a number, an array, a shape, or a sequence of these.
Operand: TypeAlias = Any

def adaptive_avg_pool1d(data: Operand, output_size: Any = None, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The mean of each of so many parts, as equal as can be; part k of m starts at k*n/m rounded down, and ends before (k+1)*n/m rounded up.

    Serves ONNX GlobalAveragePool."""

def adaptive_avg_pool2d(data: Operand, output_size: Any = None, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The mean of each of so many parts, as equal as can be; part k of m starts at k*n/m rounded down, and ends before (k+1)*n/m rounded up.

    Serves ONNX GlobalAveragePool."""

def adaptive_avg_pool3d(data: Operand, output_size: Any = None, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The mean of each of so many parts, as equal as can be; part k of m starts at k*n/m rounded down, and ends before (k+1)*n/m rounded up.

    Serves ONNX GlobalAveragePool."""

def attention(query: Operand, key: Operand, value: Operand, bias: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Attention of queries (batch, len, heads, size) to keys (batch, len_kv, heads_kv, size) and values (batch, len_kv, heads_kv, size_v), with a bias that broadcasts to (batch, heads, len, len_kv). Query heads share key heads in groups where there are fewer of these. Products are scaled by 1 / sqrt(size) unless a scale is given. A causal_mask lets a query see keys up to its own place, counted from the first ("TopLeft") or the last ("BottomRight") of both; a window_size as many of them as it says. A query that sees no key gets zeros.

    Serves ONNX Attention."""

def attention_bias(query: Operand, key: Operand, value: Operand, bias: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Attention with a bias: relax.nn.attention."""

def attention_var_len(queries: Operand, keys: Operand, values: Operand, seqstart_q: Operand, max_seqlen_q: Operand, seqstart_k: Operand | None = None, max_seqlen_k: Operand | None = None, scale: Any = None, causal_mask: Any = None, window_size: Any = None) -> Expr:
    """Attention within sequences that stand one after the other: queries (1, len, heads, size), keys and values of (1, len_kv, heads_kv, ...). Sequence b has the places from seqstart[b] up to, but without, seqstart[b + 1]; those of the keys are the queries' where none are given. Masks count within each sequence."""

def avg_pool1d(data: Operand, pool_size: int | Sequence[int] = [1], strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The mean of each window. Padding counts as zeros with count_include_pad, else not at all; what lies beyond it never counts.

    Serves ONNX AveragePool."""

def avg_pool2d(data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The mean of each window. Padding counts as zeros with count_include_pad, else not at all; what lies beyond it never counts.

    Serves ONNX AveragePool."""

def avg_pool3d(data: Operand, pool_size: int | Sequence[int] = [1, 1, 1], strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], ceil_mode: bool = False, count_include_pad: bool = True, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The mean of each window. Padding counts as zeros with count_include_pad, else not at all; what lies beyond it never counts.

    Serves ONNX AveragePool."""

def batch_flatten(data: Operand) -> Expr:
    """All dims but the first in one, without a copy.

    Serves ONNX Flatten."""

def batch_norm(data: Operand, gamma: Operand, beta: Operand, moving_mean: Operand, moving_var: Operand, axis: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1, training: bool = True) -> Expr:
    """Shifted and scaled by mean and variance for each place on an axis: those of the batch (training), which also move the moving ones by the momentum, or the moving ones. The result, the new mean and the new variance. Variances are those of the whole population.

    Serves ONNX BatchNormalization."""

def conv1d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], groups: int | Sequence[int] = 1, data_layout: str = "NCW", kernel_layout: str = "OIW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution (as the field has it: no kernel is turned over) of data NCW with kernels OIW, by default. Padding is one number, one for each dim, or those in front and those behind. Sums of 16-bit floats are made in float32.

    Serves ONNX Conv."""

def conv1d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], output_padding: int | Sequence[int] = [0], dilation: int | Sequence[int] = [1], groups: int | Sequence[int] = 1, data_layout: str = "NCW", kernel_layout: str = "IOW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCW with kernels IOW, by default, where I counts the input channels and O the output channels of one group.

    Serves ONNX ConvTranspose."""

def conv2d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution (as the field has it: no kernel is turned over) of data NCHW with kernels OIHW, by default. Padding is one number, one for each dim, or those in front and those behind. Sums of 16-bit floats are made in float32.

    Serves ONNX Conv."""

def conv2d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], output_padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCHW with kernels IOHW, by default, where I counts the input channels and O the output channels of one group.

    Serves ONNX ConvTranspose."""

def conv3d(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCDHW", kernel_layout: str = "OIDHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Convolution (as the field has it: no kernel is turned over) of data NCDHW with kernels OIDHW, by default. Padding is one number, one for each dim, or those in front and those behind. Sums of 16-bit floats are made in float32.

    Serves ONNX Conv."""

def conv3d_transpose(data: Operand, weight: Operand, strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], output_padding: int | Sequence[int] = [0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], groups: int | Sequence[int] = 1, data_layout: str = "NCDHW", kernel_layout: str = "IODHW", out_layout: Any = None, out_dtype: Any = None) -> Expr:
    """Transposed convolution of data NCDHW with kernels IODHW, by default, where I counts the input channels and O the output channels of one group.

    Serves ONNX ConvTranspose."""

def cross_entropy_with_logits(predictions: Operand, labels: Operand) -> Expr:
    """Minus the sum of the products of log-probabilities and labels, over the first size of tensors of 2 or more dims."""

def dropout(data: Operand, rate: float = 0.5) -> Expr:
    """Outside training: the data as it is, and a mask of ones.

    Serves ONNX Dropout."""

def gelu(data: Operand) -> Expr:
    """x times the normal distribution function of x.

    Serves ONNX Gelu."""

def gelu_tanh(data: Operand) -> Expr:
    """Approximation of gelu by tanh.

    Serves ONNX Gelu."""

def group_norm(data: Operand, gamma: Operand, beta: Operand, num_groups: Any, channel_axis: Any, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Shifted and scaled to mean 0 and variance 1 over axes and the channels of each group; then scaled and shifted for each channel.

    Serves ONNX GroupNormalization."""

def gru(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0, linear_before_reset: bool = False) -> Expr:
    """A gated recurrent unit: gates z, r, h; otherwise as relax.nn.lstm, without cell and peepholes. linear_before_reset applies the reset gate after the product with the state.

    Serves ONNX GRU."""

def instance_norm(data: Operand, gamma: Operand, beta: Operand, channel_axis: Any, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Shifted and scaled to mean 0 and variance 1 over axes; then scaled and shifted for each channel.

    Serves ONNX InstanceNormalization."""

def layer_norm(data: Operand, gamma: Operand, beta: Operand, axes: Any, epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Expr:
    """Shifted and scaled to mean 0 and variance 1 over axes.

    Serves ONNX LayerNormalization."""

def leakyrelu(data: Operand, alpha: float = 0.01) -> Expr:
    """x, or alpha times x below 0.

    Serves ONNX LeakyRelu."""

def linear(data: Operand, weight: Operand, bias: Operand | None = None, out_dtype: Any = None) -> Expr:
    """Product with the transpose of a weight (out, in), plus a bias.

    Serves ONNX Gemm."""

def log_softmax(data: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """Logarithm of the softmax along an axis.

    Serves ONNX LogSoftmax."""

def lstm(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, initial_c: Operand | None = None, p: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0, input_forget: bool = False) -> Expr:
    """A long short-term memory over x (steps, batch, inputs), or with layout 1 (batch, steps, inputs). Weights w (directions, 4 * hidden, inputs) and r (directions, 4 * hidden, hidden) hold the gates i, o, f, c; b (directions, 8 * hidden) the biases of both; p (directions, 3 * hidden) the peepholes i, o, f. Gives all outputs (steps, directions, batch, hidden), the last output and the last cell (directions, batch, hidden). Sequences end at sequence_lens; outputs after that are 0.

    Serves ONNX LSTM."""

def matmul(x1: Operand, x2: Operand, out_dtype: Any = None) -> Expr:
    """Matrix product over the last two dims; leading dims broadcast.

    As ``numpy.matmul``.

    Serves ONNX MatMul."""

def max_pool1d(data: Operand, pool_size: int | Sequence[int] = [1], strides: int | Sequence[int] = [1], padding: int | Sequence[int] = [0, 0], dilation: int | Sequence[int] = [1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCW", out_layout: Any = None) -> Expr:
    """The largest of each window; padding takes no part. With ceil_mode also windows that end beyond the padding, if they start before it.

    Serves ONNX MaxPool, GlobalMaxPool."""

def max_pool2d(data: Operand, pool_size: int | Sequence[int] = [1, 1], strides: int | Sequence[int] = [1, 1], padding: int | Sequence[int] = [0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCHW", out_layout: Any = None) -> Expr:
    """The largest of each window; padding takes no part. With ceil_mode also windows that end beyond the padding, if they start before it.

    Serves ONNX MaxPool, GlobalMaxPool."""

def max_pool3d(data: Operand, pool_size: int | Sequence[int] = [1, 1, 1], strides: int | Sequence[int] = [1, 1, 1], padding: int | Sequence[int] = [0, 0, 0, 0, 0, 0], dilation: int | Sequence[int] = [1, 1, 1], ceil_mode: bool = False, count_include_pad: bool = False, layout: str = "NCDHW", out_layout: Any = None) -> Expr:
    """The largest of each window; padding takes no part. With ceil_mode also windows that end beyond the padding, if they start before it.

    Serves ONNX MaxPool, GlobalMaxPool."""

def nll_loss(predictions: Operand, targets: Operand, weights: Operand | None = None, reduction: str = "mean", ignore_index: int | Sequence[int] = -100) -> Expr:
    """Minus the log-probability of the target class of each element, times the weight of that class: each (reduction "none"), their sum ("sum"), or their sum over that of the weights ("mean"). Targets equal to ignore_index count nothing; others must be classes.

    Serves ONNX NegativeLogLikelihoodLoss."""

def pad(data: Operand, pad_width: Operand, pad_mode: str = "constant", pad_value: float = 0.0) -> Expr:
    """More elements before and after each axis (before_1, after_1, before_2, ...), or fewer where a number is negative: pad_value (mode "constant"), the elements mirrored at the edge ("reflect"), the edge ("replicate" or "edge"), or the elements from the other end, repeatedly if there are more ("circular").

    As ``numpy.pad``.

    Serves ONNX Pad."""

def pixel_shuffle(data: Operand, upscale_factor: Any) -> Expr:
    """Channels become pixels: (..., c * r * r, h, w) to (..., c, h * r, w * r).

    Serves ONNX DepthToSpace."""

def prelu(data: Operand, alpha: Operand, axis: int | Sequence[int] = 1) -> Expr:
    """x, or x times a slope below 0: one slope for each place on an axis, or one for all.

    Serves ONNX PRelu."""

def relu(data: Operand) -> Expr:
    """The larger of x and 0.

    Serves ONNX Relu."""

def relu6(data: Operand) -> Expr:
    """Clipped to 0 up to 6."""

def rms_norm(data: Operand, weight: Operand, axes: int | Sequence[int] = [-1], epsilon: float = 1e-5) -> Expr:
    """Divided by the root of the mean square over axes, and scaled.

    Serves ONNX RMSNormalization."""

def rnn(x: Operand, w: Operand, r: Operand, b: Operand | None = None, sequence_lens: Operand | None = None, initial_h: Operand | None = None, direction: str = "forward", activations: Any = None, activation_alpha: Any = None, activation_beta: Any = None, clip: Any = None, layout: int | Sequence[int] = 0) -> Expr:
    """A plain recurrent layer: f(x w + h r + b); otherwise as relax.nn.gru.

    Serves ONNX RNN."""

def selu(data: Operand) -> Expr:
    """Scaled x, or scaled exponential of x below 0.

    Serves ONNX Selu."""

def silu(data: Operand) -> Expr:
    """x times its logistic function.

    Serves ONNX Swish."""

def softmax(data: Operand, axis: int | Sequence[int] = -1) -> Expr:
    """Exponentials along an axis, divided by their sum.

    Serves ONNX Softmax."""

def softplus(data: Operand, beta: float = 1.0, threshold: float = 20.0) -> Expr:
    """log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold.

    Serves ONNX Softplus."""
