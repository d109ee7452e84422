//! Packs non-constant weights in the format of `pliant_tensor::rnn_weight_layout` before the kernel reads them.
//!
//! An iteration packs one gate of 16 units: it reads their weights in order and writes contiguous parts of a panel.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::BinOp;
use pliant_ops::LegalizeError;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_tensor::rnn_weight_layout::{Cell, INPUT_WIDTH, UNITS};

use super::matcher::Layer;
use crate::offload::packing::packing_call;

/// A call of a loop function that packs.
type Packing = Result<TirCall, LegalizeError>;

/// The number of units that an iteration packs.
const EACH: i64 = UNITS as i64;

/// Gates that are packed together: the first, their number, and the number of columns of a panel.
type Part = (i64, i64, i64);

/// The number of columns of a part for all units, rounded up to whole panels.
fn columns(l: &Layer, (_, gates, width): Part) -> i64 {
    let units = (l.hidden + EACH - 1) / EACH * EACH;
    (units * gates + width - 1) / width * width
}

/// The first unit of block `q` of a part with `gates` gates, and the number of units of the block that exist.
fn units(l: &Layer, q: &Expr, gates: i64) -> (Expr, Expr) {
    let first = te::floordiv(q, &te::int(gates)) * EACH;
    let rest = te::binary(BinOp::Max, &(te::int(l.hidden) - &first), &te::int(0));
    (first, te::binary(BinOp::Min, &rest, &te::int(EACH)))
}

/// Packs a part of the weights `[directions, gates * hidden, k]` into panels. They begin at column `start` of the `all` columns of
/// each direction.
fn pack(b: &mut te::Body, l: &Layer, from: &Tensor, to: &Tensor, part: Part, start: i64, all: i64) {
    let (gate, gates, width) = part;
    let k = l.k(from);
    let (blocks, panel) = (columns(l, part) / EACH, width / EACH);
    let whole = blocks * EACH == l.hidden * gates;
    b.parallel("part", &te::int(l.directions * blocks), |b, turn| {
        let d = b.let_("d", &te::floordiv(turn, &te::int(blocks)));
        let q = b.let_("q", &te::floormod(turn, &te::int(blocks)));
        let (first, count) = units(l, &q, gates);
        // Loops with constant bounds are unrolled.
        let count = if whole { te::int(EACH) } else { b.let_("count", &count) };
        let row = (te::floormod(&q, &te::int(gates)) + te::int(gate)) * l.hidden + first;
        let row = b.let_("row", &row);
        let place = te::floordiv(&q, &te::int(panel)) * (width * k)
            + te::floormod(&q, &te::int(panel)) * EACH
            + &d * (all * k)
            + te::int(start * k);
        let place = b.let_("place", &place);
        b.for_("k", &te::int(k), |b, at| {
            let line = b.let_("line", &(&place + at * width));
            b.for_("u", &count, |b, u| {
                let weight = from.at(&[d.clone(), &row + u, at.clone()]);
                b.store(to, &[&line + u], &weight);
            });
            if !whole {
                b.for_("z", &(te::int(EACH) - &count), |b, z| {
                    b.store(to, &[&line + &count + z], &te::const_of(0.0, DType::Float32));
                });
            }
        });
    });
}

impl Layer {
    /// The number of elements of a row of weights.
    fn k(&self, from: &Tensor) -> i64 {
        from.shape()[2].as_int().unwrap_or(0)
    }
}

/// A call that packs the input weights.
pub(super) fn input(func: &mut Function, l: &Layer, from: RelaxExpr) -> Packing {
    let part = (0, l.cell.gates() as i64, INPUT_WIDTH as i64);
    let all = columns(l, part);
    let size = l.directions * all * l.input;
    packing_call(func, "pack_input_weights", from, &[size], |b, from, to| {
        pack(b, l, from, to, part, 0, all);
    })
}

/// A call that packs the recurrent weights, for each product of a step.
pub(super) fn state(func: &mut Function, l: &Layer, from: RelaxExpr) -> Packing {
    let parts = || {
        let phases = l.cell.state_products().iter();
        phases.map(|p| (p.first as i64, p.gates as i64, p.width as i64))
    };
    let all: i64 = parts().map(|part| columns(l, part)).sum();
    packing_call(
        func,
        "pack_state_weights",
        from,
        &[l.directions * all * l.hidden],
        |b, from, to| {
            let mut start = 0;
            for part in parts() {
                pack(b, l, from, to, part, start, all);
                start += columns(l, part);
            }
        },
    )
}

/// A call that packs the biases: sums of those of the input and of the state, except for the last gate if the reset gate is applied
/// between them.
pub(super) fn bias(func: &mut Function, l: &Layer, from: RelaxExpr) -> Packing {
    let all = columns(l, (0, l.cell.biases() as i64, EACH));
    packing_call(func, "pack_biases", from, &[l.directions * all], |b, from, to| {
        for d in 0..l.directions {
            for gate in 0..l.cell.biases() as i64 {
                bias_of_gate(b, l, (from, to), (d, gate, all));
            }
        }
    })
}

/// Packs the biases of a gate of a direction, which has `all` packed biases.
fn bias_of_gate(
    b: &mut te::Body,
    l: &Layer,
    (from, to): (&Tensor, &Tensor),
    (d, gate, all): (i64, i64, i64),
) {
    let (gates, biases) = (l.cell.gates() as i64, l.cell.biases() as i64);
    b.for_("j", &te::int(all / biases), |b, j| {
        let block = te::floordiv(j, &te::int(EACH)) * biases + te::int(gate);
        let place = block * EACH + te::floormod(j, &te::int(EACH)) + te::int(d * all);
        let inside = te::lt(j, &te::int(l.hidden));
        let own = |gate: i64| from.at(&[te::int(d), te::int(gate * l.hidden) + j]);
        let value = match gate {
            2 if l.cell == Cell::LinearGru => own(2),
            3 if l.cell == Cell::LinearGru => own(5),
            gate => own(gate) + own(gates + gate),
        };
        let place = [place];
        b.if_else(
            &inside,
            |b| b.store(to, &place, &value),
            |b| b.store(to, &place, &te::const_of(0.0, DType::Float32)),
        );
    });
}
