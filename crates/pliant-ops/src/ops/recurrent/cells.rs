//! The computation of one time step for each kind of recurrent cell.

use super::layer::{CellKind, LayerTensors, SequenceState, StepIndices};
use crate::te::{self, Body, Expr};

/// Emits one time step: computes the next output in `state.next`, and the next cell state in `state.c`.
pub(super) fn step(
    b: &mut Body,
    layer_tensors: &LayerTensors,
    state: &SequenceState,
    s: &StepIndices<'_>,
) {
    match layer_tensors.kind {
        CellKind::Lstm => lstm(b, layer_tensors, state, s),
        CellKind::Gru => gru(b, layer_tensors, state, s),
        CellKind::Rnn => b.for_("j", &layer_tensors.hidden, |b, j| {
            let value = layer_tensors.state_product(
                b,
                s.d,
                j,
                &state.h,
                &layer_tensors.input_product(s, j),
            );
            b.store(&state.next, std::slice::from_ref(j), &layer_tensors.activate(s.d, 0, &value));
        }),
    }
}

/// Emits the sums for the gates `gates.0 .. gates.1`: the matrix product of the inputs and their weights plus the matrix product of
/// the previous output and the recurrent weights. The sums are written to `state.pre`.
fn write_gate_sums(
    b: &mut Body,
    layer_tensors: &LayerTensors,
    state: &SequenceState,
    s: &StepIndices<'_>,
    gates: (i64, i64),
) {
    b.for_("g", &(&layer_tensors.hidden * (gates.1 - gates.0)), |b, g| {
        let row = b.let_("row", &(&layer_tensors.hidden * gates.0 + g));
        let value = layer_tensors.state_product(
            b,
            s.d,
            &row,
            &state.h,
            &layer_tensors.input_product(s, &row),
        );
        b.store(&state.pre, std::slice::from_ref(&row), &value);
    });
}

fn lstm(b: &mut Body, layer_tensors: &LayerTensors, state: &SequenceState, s: &StepIndices<'_>) {
    write_gate_sums(b, layer_tensors, state, s, (0, 4));
    b.for_("j", &layer_tensors.hidden, |b, j| {
        let at = std::slice::from_ref(j);
        let pre = |gate: i64| state.pre.at(&[layer_tensors.gate_row(gate, j)]);
        let peep = |k: i64, cell: &Expr, x: Expr| match &layer_tensors.p {
            Some(p) => {
                let weight = p.at(&[te::int(s.d as i64), layer_tensors.gate_row(k, j)]);
                x + te::cast(&weight, layer_tensors.acc_dtype) * cell
            }
            None => x,
        };
        let old = b.let_("old", &state.c.at(at));
        let input = b.let_("input", &layer_tensors.activate(s.d, 0, &peep(0, &old, pre(0))));
        let forget = match layer_tensors.variant {
            true => te::const_of(1.0, layer_tensors.acc_dtype) - &input,
            false => layer_tensors.activate(s.d, 0, &peep(2, &old, pre(2))),
        };
        let cell = forget * &old + &input * layer_tensors.activate(s.d, 1, &pre(3));
        let cell = b.let_("cell", &cell);
        let output = layer_tensors.activate(s.d, 0, &peep(1, &cell, pre(1)));
        b.store(&state.next, at, &(output * layer_tensors.activate(s.d, 2, &cell)));
        b.store(&state.c, at, &cell);
    });
}

fn gru(b: &mut Body, layer_tensors: &LayerTensors, state: &SequenceState, s: &StepIndices<'_>) {
    write_gate_sums(b, layer_tensors, state, s, (0, 2));
    // The reset state is stored in the buffer of the cell state, which a GRU does not have.
    if !layer_tensors.variant {
        b.for_("j", &layer_tensors.hidden, |b, j| {
            let at = std::slice::from_ref(j);
            let reset =
                layer_tensors.activate(s.d, 0, &state.pre.at(&[layer_tensors.gate_row(1, j)]));
            b.store(&state.c, at, &(reset * state.h.at(at)));
        });
    }
    b.for_("j", &layer_tensors.hidden, |b, j| {
        let at = std::slice::from_ref(j);
        let row = b.let_("row", &layer_tensors.gate_row(2, j));
        let bias = match &layer_tensors.b {
            Some(bias) => {
                let bias_row = &layer_tensors.hidden * 3 + &row;
                te::cast(&bias.at(&[te::int(s.d as i64), bias_row]), layer_tensors.acc_dtype)
            }
            None => te::const_of(0.0, layer_tensors.acc_dtype),
        };
        let hidden = if layer_tensors.variant {
            let product = layer_tensors.state_product(b, s.d, &row, &state.h, &bias);
            let reset =
                layer_tensors.activate(s.d, 0, &state.pre.at(&[layer_tensors.gate_row(1, j)]));
            layer_tensors.input_product(s, &row) + reset * product
        } else {
            layer_tensors.state_product(
                b,
                s.d,
                &row,
                &state.c,
                &(layer_tensors.input_product(s, &row) + bias),
            )
        };
        let hidden = b.let_("hidden", &layer_tensors.activate(s.d, 1, &hidden));
        let update = b.let_(
            "update",
            &layer_tensors.activate(s.d, 0, &state.pre.at(&[layer_tensors.gate_row(0, j)])),
        );
        let one = te::const_of(1.0, layer_tensors.acc_dtype);
        let next = (one - &update) * hidden + update * state.h.at(at);
        b.store(&state.next, at, &next);
    });
}
