//! One time step of each kind of cell.

use super::layer::{Kind, Net, State, Step};
use crate::te::{self, Body, Expr};

/// Computes the next output in `state.next`, and the next cell state in `state.c`.
pub(super) fn step(b: &mut Body, net: &Net, state: &State, s: &Step<'_>) {
    match net.kind {
        Kind::Lstm => lstm(b, net, state, s),
        Kind::Gru => gru(b, net, state, s),
        Kind::Rnn => b.for_("j", &net.hidden, |b, j| {
            let value = net.product(b, s.d, j, &state.h, &net.input(s, j));
            b.store(&state.next, std::slice::from_ref(j), &net.act(s.d, 0, &value));
        }),
    }
}

/// Writes the sums of input and state products for the gates `from .. to` to the scratch buffer.
fn products(b: &mut Body, net: &Net, state: &State, s: &Step<'_>, gates: (i64, i64)) {
    b.for_("g", &(&net.hidden * (gates.1 - gates.0)), |b, g| {
        let row = b.let_("row", &(&net.hidden * gates.0 + g));
        let value = net.product(b, s.d, &row, &state.h, &net.input(s, &row));
        b.store(&state.pre, std::slice::from_ref(&row), &value);
    });
}

fn lstm(b: &mut Body, net: &Net, state: &State, s: &Step<'_>) {
    products(b, net, state, s, (0, 4));
    b.for_("j", &net.hidden, |b, j| {
        let at = std::slice::from_ref(j);
        let pre = |gate: i64| state.pre.at(&[net.gate(gate, j)]);
        let peep = |k: i64, cell: &Expr, x: Expr| match &net.p {
            Some(p) => {
                let weight = p.at(&[te::int(s.d as i64), net.gate(k, j)]);
                x + te::cast(&weight, net.wide) * cell
            }
            None => x,
        };
        let old = b.let_("old", &state.c.at(at));
        let input = b.let_("input", &net.act(s.d, 0, &peep(0, &old, pre(0))));
        let forget = match net.flag {
            true => te::const_of(1.0, net.wide) - &input,
            false => net.act(s.d, 0, &peep(2, &old, pre(2))),
        };
        let cell = forget * &old + &input * net.act(s.d, 1, &pre(3));
        let cell = b.let_("cell", &cell);
        let output = net.act(s.d, 0, &peep(1, &cell, pre(1)));
        b.store(&state.next, at, &(output * net.act(s.d, 2, &cell)));
        b.store(&state.c, at, &cell);
    });
}

fn gru(b: &mut Body, net: &Net, state: &State, s: &Step<'_>) {
    products(b, net, state, s, (0, 2));
    // The reset state is stored in the buffer of the cell state, which a GRU does not have.
    if !net.flag {
        b.for_("j", &net.hidden, |b, j| {
            let at = std::slice::from_ref(j);
            let reset = net.act(s.d, 0, &state.pre.at(&[net.gate(1, j)]));
            b.store(&state.c, at, &(reset * state.h.at(at)));
        });
    }
    b.for_("j", &net.hidden, |b, j| {
        let at = std::slice::from_ref(j);
        let row = b.let_("row", &net.gate(2, j));
        let bias = match &net.b {
            Some(bias) => {
                let place = &net.hidden * 3 + &row;
                te::cast(&bias.at(&[te::int(s.d as i64), place]), net.wide)
            }
            None => te::const_of(0.0, net.wide),
        };
        let hidden = if net.flag {
            let product = net.product(b, s.d, &row, &state.h, &bias);
            let reset = net.act(s.d, 0, &state.pre.at(&[net.gate(1, j)]));
            net.input(s, &row) + reset * product
        } else {
            net.product(b, s.d, &row, &state.c, &(net.input(s, &row) + bias))
        };
        let hidden = b.let_("hidden", &net.act(s.d, 1, &hidden));
        let update = b.let_("update", &net.act(s.d, 0, &state.pre.at(&[net.gate(0, j)])));
        let one = te::const_of(1.0, net.wide);
        let next = (one - &update) * hidden + update * state.h.at(at);
        b.store(&state.next, at, &next);
    });
}
