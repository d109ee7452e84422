"""TVM's ``topi.nn.lstm``: an LSTM in one direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pliant import te, tir
from pliant._core import Tensor
from pliant.topi._size_checks import require_equal_sizes
from pliant.topi._operator_wrapper import accumulator, find

__all__ = ["lstm"]


def lstm(  # noqa: PLR0913 (TVM's parameters)
    Xs: Tensor,  # noqa: N803 (TVM's names)
    Wi: Tensor,  # noqa: N803
    Wh: Tensor,  # noqa: N803
    Bi: Tensor | None = None,  # noqa: N803
    Bh: Tensor | None = None,  # noqa: N803
    h_init: Tensor | None = None,
    c_init: Tensor | None = None,
    proj: Tensor | None = None,
    p_i: Tensor | None = None,
    p_f: Tensor | None = None,
    p_o: Tensor | None = None,
    f_act: Callable[[Any], Any] = tir.sigmoid,
    g_act: Callable[[Any], Any] = tir.tanh,
    h_act: Callable[[Any], Any] = tir.tanh,
    reverse: bool = False,
    weight_layout: str = "IFGO",
    **operator: Any,
) -> Any:
    """Computes all hidden states and all cell states of an LSTM over ``Xs`` with the shape (steps,
    batch, inputs). Returns both as a tuple.

    ``Wi``, ``Wh``, ``Bi`` and ``Bh`` have a row for each gate and unit, in the order of
    ``weight_layout``. ``proj`` projects the output of each step. ``p_i``, ``p_f`` and ``p_o`` of
    the shape (batch, units) are peephole weights from the cell to the gates. With ``reverse``, the
    steps are processed from the last input to the first.

    If the weights have three dims, the arguments are those of ``relax.op.nn.lstm``. Then arguments
    that this operator does not accept raise ``TypeError``. An invalid ``weight_layout`` raises
    ``ValueError``.
    """
    if Wi.ndim == 3 or operator:
        left_out = {name: given is None for name, given in (("p_i", p_i), ("p_f", p_f), ("p_o", p_o))}
        left_out |= {"reverse": not reverse, "weight_layout": weight_layout == "IFGO", "f_act": f_act is tir.sigmoid}
        left_out |= {name: act is tir.tanh for name, act in (("g_act", g_act), ("h_act", h_act))}
        unread = [name for name, default in left_out.items() if not default]
        if unread:
            raise TypeError(f"lstm: with weights of three dims, the operator relax.op.nn.lstm is used, which does not accept {', '.join(unread)}")
        rest = (Bi, Bh, h_init, c_init, proj)
        operands = dict(zip(("b", "sequence_lens", "initial_h", "initial_c", "p"), rest, strict=True))
        return find("nn.lstm")(Xs, Wi, Wh, **{k: v for k, v in operands.items() if v is not None} | operator)
    if sorted(weight_layout) != sorted("IFGO"):
        raise ValueError(f"lstm: weight_layout must be a permutation of IFGO, got '{weight_layout}'")
    steps, batch, _ = Xs.shape
    units = tir.floordiv(Wi.shape[0], 4)
    wide = units if proj is None else proj.shape[0]
    per_state = (("h_init", h_init, wide), ("c_init", c_init, units), ("p_i", p_i, units), ("p_f", p_f, units), ("p_o", p_o, units))
    pairs = [("dim 1 of Wi", Wi.shape[1], Xs.shape[2]), ("dim 0 of Wi", Wi.shape[0], units * 4)]
    pairs += [("dim 0 of Wh", Wh.shape[0], units * 4), ("dim 1 of Wh", Wh.shape[1], wide)]
    pairs += [(f"dim 0 of {name}", b.shape[0], units * 4) for name, b in (("Bi", Bi), ("Bh", Bh)) if b is not None]
    pairs += [] if proj is None else [("dim 1 of proj", proj.shape[1], units)]
    for name, state, size in per_state:
        if state is not None:
            pairs += [(f"dim 0 of {name}", state.shape[0], batch), (f"dim 1 of {name}", state.shape[1], size)]
    from_input = _times(find("flip")(Xs, axis=0) if reverse else Xs, Wi, "Xi2h")
    from_input = require_equal_sizes(from_input, "lstm", *pairs)
    # A state has one row more than there are steps: the first row is the initial state.
    h = te.placeholder((steps + 1, batch, wide), Xs.dtype, "h_state")
    c = te.placeholder((steps + 1, batch, units), Xs.dtype, "c_state")
    from_state = _times(h, Wh, "Hs2h", before=1)

    def gate(letter: str, t: Any, b: Any, j: Any) -> Any:
        row = units * weight_layout.index(letter) + j
        total = from_input(t - 1, b, row) + from_state(t, b, row)
        for bias in (Bi, Bh):
            total = total if bias is None else total + bias(row)
        return total

    def seen(total: Any, weight: Tensor | None, cell: Any, b: Any, j: Any) -> Any:
        return total if weight is None else total + weight(b, j) * cell

    def cell(t: Any, b: Any, j: Any) -> Any:
        old = c(t - 1, b, j)
        kept = f_act(seen(gate("F", t, b, j), p_f, old, b, j)) * old
        return kept + f_act(seen(gate("I", t, b, j), p_i, old, b, j)) * g_act(gate("G", t, b, j))

    cells = te.compute(c.shape, cell, name="next_c")

    def given(t: Any, b: Any, j: Any) -> Any:
        return f_act(seen(gate("O", t, b, j), p_o, cells(t, b, j), b, j)) * h_act(cells(t, b, j))

    hidden = te.compute(c.shape, given, name="next_h")
    hidden = hidden if proj is None else _times(hidden, proj, "projected")
    first = [_first(init, state) for init, state in ((h_init, h), (c_init, c))]
    states = te.scan(first, [hidden, cells], [h, c], name="lstm_scan")
    return tuple(
        te.compute((steps, *s.shape[1:]), lambda t, b, j, s=s: s(t + 1, b, j), name=name)
        for s, name in zip(states, ("hidden_states", "cell_states"), strict=True)
    )


def _times(x: Tensor, weight: Tensor, name: str, before: int = 0) -> Tensor:
    """Multiplies ``x`` of shape (steps, batch, inputs) by the transposed matrix ``weight``. The product at step ``t`` reads step
    ``t - before`` of ``x``."""
    k = te.reduce_axis((0, weight.shape[1]), "k")
    shape = [x.shape[0], x.shape[1], weight.shape[0]]
    wide = accumulator(x.dtype)

    def product(t: Any, b: Any, j: Any) -> Any:
        return te.sum(x(t - before, b, k).astype(wide) * weight(j, k).astype(wide), axis=k)

    result = te.compute(shape, product, name=name)
    return result if wide == x.dtype else te.compute(shape, lambda *i: result(*i).astype(x.dtype), name=f"{name}_{x.dtype}")


def _first(init: Tensor | None, state: Tensor) -> Tensor:
    """Creates the stage with the initial value of a recurrent state, a tensor of shape (1, batch, units). Without
    ``init``, its elements are 0.
    """
    zero = tir.const(0, state.dtype)
    return te.compute((1, *state.shape[1:]), lambda _, b, j: zero if init is None else init(b, j), name="init")
