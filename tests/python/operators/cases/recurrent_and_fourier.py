"""Cases of recurrent layers, computed step by step with ONNX's formulas, and of Fourier transforms."""

from __future__ import annotations

import numpy as np

from .operator_case import *  # the vocabulary of cases


def sigmoid(v: Any) -> Any:
    return 1 / (1 + np.exp(-v))


def steps_of(length: int, backwards: bool) -> range:
    return range(length - 1, -1, -1) if backwards else range(length)


def lstm(
    x: Array,
    w: Array,
    r: Array,
    bias: Array | None = None,
    lens: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    p: Array | None = None,
    *,
    backwards: tuple[bool, ...] = (False,),
    forget: bool = False,
) -> Any:
    (t, n, _), hidden = x.shape, r.shape[2]
    if lens is not None and lens.size and lens.max() > t:
        return Refusal("relax.nn.lstm: the sequence length ")
    y, hs, cs = np.zeros((t, len(w), n, hidden)), np.zeros((len(w), n, hidden)), np.zeros((len(w), n, hidden))
    for d, back in enumerate(backwards):
        wb = bias[d, : 4 * hidden] + bias[d, 4 * hidden :] if bias is not None else np.zeros(4 * hidden)
        peep = p[d].reshape(3, hidden) if p is not None else np.zeros((3, hidden))
        for b in range(n):
            h = h0[d, b] if h0 is not None else np.zeros(hidden)
            c = c0[d, b] if c0 is not None else np.zeros(hidden)
            for s in steps_of(int(lens[b]) if lens is not None else t, back):
                i, o, f, g = (w[d] @ x[s, b] + r[d] @ h + wb).reshape(4, hidden)
                i = sigmoid(i + peep[0] * c)
                f = 1 - i if forget else sigmoid(f + peep[2] * c)
                c = f * c + i * np.tanh(g)
                h = sigmoid(o + peep[1] * c) * np.tanh(c)
                y[s, d, b] = h
            hs[d, b], cs[d, b] = h, c
    return [v.astype("float32") for v in (y, hs, cs)]


def gru(
    x: Array, w: Array, r: Array, bias: Array | None = None, *, backwards: tuple[bool, ...] = (False,), late: bool = False
) -> list[Array]:
    (t, n, _), hidden = x.shape, r.shape[2]
    y, hs = np.zeros((t, len(w), n, hidden)), np.zeros((len(w), n, hidden))
    for d, back in enumerate(backwards):
        wb, rb = bias[d].reshape(2, 3, hidden) if bias is not None else np.zeros((2, 3, hidden))
        wz, wr, wh = w[d].reshape(3, hidden, -1)
        rz, rr, rh = r[d].reshape(3, hidden, hidden)
        for b in range(n):
            h = np.zeros(hidden)
            for s in steps_of(t, back):
                z = sigmoid(wz @ x[s, b] + rz @ h + wb[0] + rb[0])
                q = sigmoid(wr @ x[s, b] + rr @ h + wb[1] + rb[1])
                inner = q * (rh @ h + rb[2]) if late else rh @ (q * h) + rb[2]
                h = (1 - z) * np.tanh(wh @ x[s, b] + inner + wb[2]) + z * h
                y[s, d, b] = h
            hs[d, b] = h
    return [v.astype("float32") for v in (y, hs)]


def rnn(x: Array, w: Array, r: Array, bias: Array, f: Callable[[Any], Any]) -> list[Array]:
    """Computes a simple recurrent layer over inputs (batch, time, features) with NumPy."""
    (n, t, _), hidden = x.shape, r.shape[2]
    y, h = np.zeros((n, t, 1, hidden)), np.zeros((n, hidden))
    for s in range(t):
        h = f(x[:, s] @ w[0].T + h @ r[0].T + bias[0, :hidden] + bias[0, hidden:])
        y[:, s, 0] = h
    return [y.astype("float32"), h[:, None].astype("float32")]


def wide(reference: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def call(*args: Array) -> Any:
        return reference(*(a.astype("float64") if a is not None and a.dtype == "float32" else a for a in args), **options)

    return call


def parts(z: Array) -> Array:
    return np.stack([z.real, z.imag], -1).astype("float32")


def dft(a: Array, n: int | None, axis: int, inverse: bool, onesided: bool) -> Array:
    z = a[..., 0].astype("float64") + (1j * a[..., 1] if a.shape[-1] == 2 else 0)
    length = n or z.shape[axis]
    if length == 0 or z.size == 0 and z.shape[axis] != 0:
        shape = list(z.shape)
        shape[axis] = length // 2 + 1 if onesided else length
        return np.zeros([*shape, 2], "float32")
    out = np.zeros([length if k == axis else d for k, d in enumerate(z.shape)], complex) if z.shape[axis] == 0 else (
        np.fft.ifft if inverse else np.fft.fft
    )(z, length, axis)
    if onesided:
        out = np.take(out, range(length // 2 + 1), axis)
    return parts(out)


def stft(a: Array, window: Array) -> Array:
    size, step = len(window), 3
    frames = max((a.shape[1] - size) // step + 1, 0)
    out = np.zeros((len(a), frames, size // 2 + 1), complex)
    for k in range(frames):
        out[:, k] = np.fft.rfft(a[:, k * step : k * step + size, 0].astype("float64") * window, axis=-1)
    return parts(out)


X = x("t", "n", 3, draw=unit)
LSTM = (X, f32("w", 1, 20, 3, draw=unit), f32("r", 1, 20, 5, draw=unit))
BOTH = (X, f32("w", 2, 20, 3, draw=unit), f32("r", 2, 20, 5, draw=unit))
GRU = (X, f32("w", 1, 15, 3, draw=unit), f32("r", 1, 15, 5, draw=unit), f32("b", 1, 30, draw=unit))
NONE = "R.null_value()"
FEW = (0, 1, 2, 3, 7)
TWO = (False, True)


def layer(name: str, params: tuple[Param, ...], call: str, reference: Callable[..., Any], runs: int = 8) -> Case:
    return Case(name, params, f"R.nn.{call}", reference, FEW, runs, cancels=True)


SYMBOLIC = (x("t", "n", "k", draw=unit), f32("w", 1, "g", "k", draw=unit), f32("r", 1, "g", "g", draw=unit))
CASES: list[Case] = [
    layer("lstm", LSTM, "lstm(x, w, r)", wide(lstm)),
    layer(
        "lstm_all",
        (*BOTH, f32("b", 2, 40, draw=unit), Param("l", "int32", ("n",), between(0, 4)),
         f32("h", 2, "n", 5, draw=unit), f32("c", 2, "n", 5, draw=unit), f32("p", 2, 15, draw=unit)),
        'lstm(x, w, r, b, l, h, c, p, direction="bidirectional")',
        wide(lstm, backwards=TWO),
        runs=16,
    ),
    layer(
        "lstm_reverse_lengths",
        (*LSTM, Param("l", "int32", ("n",), between(0, 4))),
        f'lstm(x, w, r, {NONE}, l, direction="reverse", input_forget=True)',
        lambda x, w, r, l: wide(lstm, backwards=(True,), forget=True)(x, w, r, None, l),
        runs=16,
    ),
    layer("gru", GRU, "gru(x, w, r, b)", wide(gru)),
    layer("gru_late", GRU, "gru(x, w, r, b, linear_before_reset=True)", wide(gru, late=True)),
    layer(
        "gru_both",
        (X, f32("w", 2, 15, 3, draw=unit), f32("r", 2, 15, 5, draw=unit)),
        'gru(x, w, r, direction="bidirectional")',
        wide(gru, backwards=TWO),
    ),
    layer(
        "rnn_batch_first",
        (x("n", "t", 3, draw=unit), f32("w", 1, 5, 3, draw=unit), f32("r", 1, 5, 5, draw=unit),
         f32("b", 1, 10, draw=unit)),
        "rnn(x, w, r, b, layout=1)",
        lambda x, w, r, b: wide(lambda *a: rnn(*a, np.tanh))(x, w, r, b),
    ),
    layer(
        "rnn_activation",
        (x("n", "t", 3, draw=unit), f32("w", 1, 5, 3, draw=unit), f32("r", 1, 5, 5, draw=unit),
         f32("b", 1, 10, draw=unit)),
        'rnn(x, w, r, b, layout=1, activations=["HardSigmoid"], activation_alpha=[0.3], activation_beta=[0.4])',
        lambda x, w, r, b: wide(lambda *a: rnn(*a, lambda v: np.clip(0.3 * v + 0.4, 0, 1)))(x, w, r, b),
    ),
    layer(
        "rnn_symbolic",
        SYMBOLIC,
        "rnn(x, w, r)",
        wide(lambda x, w, r: [
            v.transpose(1, 2, 0, 3) if v.ndim == 4 else v.transpose(1, 0, 2)
            for v in rnn(x.transpose(1, 0, 2), w, r, np.zeros((1, 2 * r.shape[2])), np.tanh)
        ]),
    ),
    Case("dft", (x("b", "n", 1),), "R.signal.dft(x)", lambda a: dft(a, None, 1, False, False), cancels=True),
    Case("dft_complex", (x("n", 4, 2),), "R.signal.dft(x, axis=0)", lambda a: dft(a, None, 0, False, False), cancels=True),
    Case(
        "dft_onesided",
        (x("b", "n", 1),),
        "R.signal.dft(x, R.prim_value(9), axis=1, onesided=True)",
        lambda a: dft(a, 9, 1, False, True),
        cancels=True,
    ),
    Case(
        "dft_inverse", (x("b", "n", 2),), "R.signal.dft(x, inverse=True)", lambda a: dft(a, None, 1, True, False),
        cancels=True,
    ),
    Case(
        "stft",
        (x("b", "n", 1), f32("w", 8, draw=positive)),
        "R.signal.stft(x, R.prim_value(3), w)",
        stft,
        sizes=(0, 1, 2, 7, 8, 31),
        cancels=True,
    ),
]
