"""Recurrent layers: LSTM, GRU and plain recurrent networks with all their layers and directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pliant.error import UnsupportedError
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.unary import Converter


@dataclass(frozen=True)
class Cell:
    """A kind of layer: its Relax operator, the order in which that has torch's gates, and its attributes."""

    operator: str
    gates: tuple[int, ...]
    attributes: dict[str, Any]
    has_cell_state: bool = False


# torch's gates of an LSTM are i, f, c, o, and those of a GRU r, z, h; Relax has the order of ONNX.
LSTM = Cell("lstm", (0, 3, 1, 2), {}, has_cell_state=True)
GRU = Cell("gru", (1, 0, 2), {"linear_before_reset": True})
RNN_TANH = Cell("rnn", (0,), {"activations": ["Tanh"]})
RNN_RELU = Cell("rnn", (0,), {"activations": ["Relu"]})


def _reordered(cx: FunctionImporter, x: Any, cell: Cell) -> Any:
    """Reorders the gates of a weight or bias from torch's order to that of the recurrent operators."""
    if len(cell.gates) == 1:
        return x
    parts = cx.fields(cx.ops.split(x, len(cell.gates), axis=0))
    return cx.ops.concat([parts[g] for g in cell.gates], axis=0)


def _layer(cx: FunctionImporter, cell: Cell, x: Any, states: list[Any], weights: list[list[Any]], biases: bool) -> list[Any]:
    """One layer in one or two directions, on steps, batch, features. Returns the outputs and the last states."""
    inputs = cx.ops.stack([_reordered(cx, w[0], cell) for w in weights], axis=0)
    recurrent = cx.ops.stack([_reordered(cx, w[1], cell) for w in weights], axis=0)
    operands = [x, inputs, recurrent]
    if biases:
        both = [cx.ops.concat([_reordered(cx, w[2], cell), _reordered(cx, w[3], cell)], axis=0) for w in weights]
        operands.append(cx.ops.stack(both, axis=0))
    names = ("initial_h", "initial_c") if cell.has_cell_state else ("initial_h",)
    attributes = dict(cell.attributes)
    if len(weights) == 2:
        attributes["direction"] = "bidirectional"
        if "activations" in attributes:
            attributes["activations"] = attributes["activations"] * 2
    result = getattr(cx.ops.nn, cell.operator)(*operands, **dict(zip(names, states, strict=True)), **attributes)
    return cx.fields(result)


def recurrent(cell: Cell) -> Converter:
    """The converter of the overload for padded batches."""

    def convert(
        cx: FunctionImporter, x: Any, hx: Any, params: Sequence[Any], biases: bool, layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        if train and dropout != 0.0 and layers > 1:
            raise UnsupportedError("dropout between recurrent layers is not supported: call model.eval() first")
        initial = list(hx) if cell.has_cell_state else [hx]
        directions = 2 if bidirectional else 1
        per_direction = len(params) // (layers * directions)
        if per_direction != (4 if biases else 2):
            raise UnsupportedError("LSTM layers with projections are not supported")
        single = cx.rank(x) == 2
        if single:
            x = cx.ops.expand_dims(x, 1)
            initial = [cx.ops.expand_dims(h, 1) for h in initial]
        elif batch_first:
            x = cx.ops.permute_dims(x, [1, 0, 2])
        finals: list[list[Any]] = []
        for layer in range(layers):
            first = layer * directions
            weights = [list(params[(first + d) * per_direction : (first + d + 1) * per_direction]) for d in range(directions)]
            states = [cx.ops.strided_slice(h, axes=[0], begin=[first], end=[first + directions]) for h in initial]
            outputs, *last = _layer(cx, cell, x, states, weights, biases)
            finals.append(last)
            steps, _, batch, hidden = cx.shape(outputs)
            x = cx.ops.reshape(cx.ops.permute_dims(outputs, [0, 2, 1, 3]), [steps, batch, directions * hidden])
        ends = [cx.ops.concat([f[k] for f in finals], axis=0) if layers > 1 else finals[0][k] for k in range(len(initial))]
        if single:
            return [cx.ops.squeeze(v, axis=[1]) for v in (x, *ends)]
        return [cx.ops.permute_dims(x, [1, 0, 2]) if batch_first else x, *ends]

    return convert


TABLE: dict[str, Converter] = {
    "lstm.input": recurrent(LSTM),
    "gru.input": recurrent(GRU),
    "rnn_tanh.input": recurrent(RNN_TANH),
    "rnn_relu.input": recurrent(RNN_RELU),
}
"""The converters of this family."""
