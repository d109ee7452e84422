"""Keeps the number of steps of recurrent layers symbolic while torch traces a module.

torch infers the shapes of an LSTM by unrolling it, which fixes the number of steps. Inside :func:`symbolic_steps`, the shapes
follow from the operands, as with ``torch.export._patches``, which replaces the same registrations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

SETTINGS = ("has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
"""The arguments of recurrent layers after the input, the states and the weights."""


def _shapes(x: torch.Tensor, hx: Any, params: Any, *settings: Any, **keywords: Any) -> Any:
    """The results of a recurrent layer, without values."""
    given = {**dict(zip(SETTINGS, settings, strict=False)), **keywords}
    states = list(hx) if isinstance(hx, list | tuple) else [hx]
    features = states[0].shape[-1] * (2 if given["bidirectional"] else 1)
    return (x.new_empty((*x.shape[:-1], features)), *(s.new_empty(s.shape) for s in states))


@contextmanager
def symbolic_steps() -> Iterator[None]:
    """Infers the shapes of recurrent layers without unrolling them, inside the ``with`` block."""
    from torch._decomp import global_decomposition_table

    table = global_decomposition_table["post_autograd"]
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    aten = torch.ops.aten
    targets = (aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input)
    saved = [(t, table.get(t), t.py_kernels.get(key)) for t in targets]
    for target in targets:
        table[target] = _shapes
        target.py_kernels[key] = _shapes
        target._dispatch_cache.clear()
    try:
        yield
    finally:
        for target, rule, kernel in saved:
            _restore(table, target, rule)
            _restore(target.py_kernels, key, kernel)
            target._dispatch_cache.clear()


def _restore(table: Any, name: Any, value: Any) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
