//! Weights that only a run gives: the loops that pack them, in the form of `pliant_tensor::gates`, before the kernel reads them.
//!
//! A turn packs a gate of 16 units: their weights are read from end to end, and what stands side by side in a panel is written
//! together.

use pliant_ir::DType;
use pliant_ir::tir::BinOp;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_tensor::gates::{Cell, INPUT_WIDTH, UNITS};

use super::matcher::Layer;

/// Units of a turn.
const EACH: i64 = UNITS as i64;

/// Gates that are packed together: the first, how many, and the columns of a panel.
type Part = (i64, i64, i64);

/// Columns of some gates of all units, in whole panels.
fn columns(l: &Layer, (_, gates, width): Part) -> i64 {
    let units = (l.hidden + EACH - 1) / EACH * EACH;
    (units * gates + width - 1) / width * width
}

/// Units of block `q` of some gates that there are, and the first.
fn units(l: &Layer, q: &Expr, gates: i64) -> (Expr, Expr) {
    let first = te::floordiv(q, &te::int(gates)) * EACH;
    let rest = te::binary(BinOp::Max, &(te::int(l.hidden) - &first), &te::int(0));
    (first, te::binary(BinOp::Min, &rest, &te::int(EACH)))
}

/// Packs some gates of weights `[directions, gates * hidden, k]` into panels that begin at `start` of each direction's `all`
/// columns.
fn pack(b: &mut te::Body, l: &Layer, from: &Tensor, to: &Tensor, part: Part, start: i64, all: i64) {
    let (gate, gates, width) = part;
    let k = l.k(from);
    let (blocks, panel) = (columns(l, part) / EACH, width / EACH);
    let whole = blocks * EACH == l.hidden * gates;
    b.parallel("part", &te::int(l.directions * blocks), |b, turn| {
        let d = b.let_("d", &te::floordiv(turn, &te::int(blocks)));
        let q = b.let_("q", &te::floormod(turn, &te::int(blocks)));
        let (first, count) = units(l, &q, gates);
        // Loops whose ends are known are unrolled.
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
    /// Elements of a row of weights.
    fn k(&self, from: &Tensor) -> i64 {
        from.shape()[2].as_int().unwrap_or(0)
    }
}

fn scratch(b: &mut te::Body, name: &str, size: i64) -> Tensor {
    b.alloc(name, &[te::int(size)], DType::Float32)
}

/// The panels of the input weights.
pub(super) fn input(b: &mut te::Body, l: &Layer, from: &Tensor) -> Tensor {
    let part = (0, l.cell.gates() as i64, INPUT_WIDTH as i64);
    let all = columns(l, part);
    let to = scratch(b, "input_panels", l.directions * all * l.input);
    pack(b, l, from, &to, part, 0, all);
    to
}

/// The panels of the weights of the state, of each product of a step.
pub(super) fn state(b: &mut te::Body, l: &Layer, from: &Tensor) -> Tensor {
    let parts = || {
        let phases = l.cell.phases().iter();
        phases.map(|p| (p.first as i64, p.gates as i64, p.width as i64))
    };
    let all = parts().map(|part| columns(l, part)).sum();
    let to = scratch(b, "state_panels", l.directions * all * l.hidden);
    let mut start = 0;
    for part in parts() {
        pack(b, l, from, &to, part, start, all);
        start += columns(l, part);
    }
    to
}

/// The biases: those of the input and of the state are one, but for the last gate where the reset gate is between.
pub(super) fn bias(b: &mut te::Body, l: &Layer, from: &Tensor) -> Tensor {
    let (gates, biases) = (l.cell.gates() as i64, l.cell.biases() as i64);
    let all = columns(l, (0, biases, EACH));
    let to = scratch(b, "biases", l.directions * all);
    let linear = l.cell == Cell::LinearGru;
    for d in 0..l.directions {
        for gate in 0..biases {
            b.for_("j", &te::int(all / biases), |b, j| {
                let block = te::floordiv(j, &te::int(EACH)) * biases + te::int(gate);
                let place = block * EACH + te::floormod(j, &te::int(EACH)) + te::int(d * all);
                let inside = te::lt(j, &te::int(l.hidden));
                let own = |gate: i64| from.at(&[te::int(d), te::int(gate * l.hidden) + j]);
                let value = match gate {
                    2 if linear => own(2),
                    3 if linear => own(5),
                    gate => own(gate) + own(gates + gate),
                };
                let place = [place];
                b.if_else(
                    &inside,
                    |b| b.store(&to, &place, &value),
                    |b| b.store(&to, &place, &te::const_of(0.0, DType::Float32)),
                );
            });
        }
    }
    to
}
