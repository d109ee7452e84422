//! Packs non-constant weights in the format of `pliant_tensor::rnn_weight_layout` before the kernel reads them.
//!
//! Each iteration of the packing loop packs one gate of 16 units: it reads the weights in order and writes contiguous parts of a
//! panel.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::BinOp;
use pliant_ops::LegalizeError;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_tensor::rnn_weight_layout::{Cell, INPUT_WIDTH, UNITS};

use super::recurrent_matcher::Layer;
use crate::offload::weight_packing_functions::packing_call;

/// The call of a loop function that packs weights, or an error.
type PackingResult = Result<TirCall, LegalizeError>;

/// The number of hidden units for which one iteration of the packing loop packs the weights of one gate.
const UNITS_PER_ITERATION: i64 = UNITS as i64;

/// Gates that are packed together: (index of the first gate, number of gates, number of columns in a panel). A panel is a block
/// of adjacent columns of the packed weights.
type GateGroup = (i64, i64, i64);

/// Returns the number of columns of the packed weights that the gates of a group need for all hidden units. The number is a
/// multiple of the width of a panel (a block of adjacent columns).
fn columns(l: &Layer, (_, gates, width): GateGroup) -> i64 {
    let units = (l.hidden + UNITS_PER_ITERATION - 1) / UNITS_PER_ITERATION * UNITS_PER_ITERATION;
    (units * gates + width - 1) / width * width
}

/// Returns (first hidden unit, number of hidden units) of block `q` of the weights of `gates` gates. A block contains the weights
/// of one gate for up to 16 hidden units.
fn unit_range(l: &Layer, q: &Expr, gates: i64) -> (Expr, Expr) {
    let first = te::floordiv(q, &te::int(gates)) * UNITS_PER_ITERATION;
    let rest = te::binary(BinOp::Max, &(te::int(l.hidden) - &first), &te::int(0));
    (first, te::binary(BinOp::Min, &rest, &te::int(UNITS_PER_ITERATION)))
}

/// Emits the loops that pack the weights of a group of gates, with the dims `[directions, gates * hidden, k]`, into panels
/// (blocks of adjacent columns). The panels of the group begin at column `start` of the `total_columns` columns of each
/// direction.
fn write_gates(
    b: &mut te::Body,
    l: &Layer,
    from: &Tensor,
    to: &Tensor,
    gate_group: GateGroup,
    start: i64,
    total_columns: i64,
) {
    let (gate, gates, width) = gate_group;
    let k = l.k(from);
    let (blocks, panel) =
        (columns(l, gate_group) / UNITS_PER_ITERATION, width / UNITS_PER_ITERATION);
    let has_full_blocks = blocks * UNITS_PER_ITERATION == l.hidden * gates;
    b.parallel("part", &te::int(l.directions * blocks), |b, part| {
        let d = b.let_("d", &te::floordiv(part, &te::int(blocks)));
        let q = b.let_("q", &te::floormod(part, &te::int(blocks)));
        let (first, count) = unit_range(l, &q, gates);
        // Loops with constant bounds are unrolled.
        let count =
            if has_full_blocks { te::int(UNITS_PER_ITERATION) } else { b.let_("count", &count) };
        let row = (te::floormod(&q, &te::int(gates)) + te::int(gate)) * l.hidden + first;
        let row = b.let_("row", &row);
        let position = te::floordiv(&q, &te::int(panel)) * (width * k)
            + te::floormod(&q, &te::int(panel)) * UNITS_PER_ITERATION
            + &d * (total_columns * k)
            + te::int(start * k);
        let position = b.let_("place", &position);
        b.for_("k", &te::int(k), |b, at| {
            let line = b.let_("line", &(&position + at * width));
            b.for_("u", &count, |b, u| {
                let weight = from.at(&[d.clone(), &row + u, at.clone()]);
                b.store(to, &[&line + u], &weight);
            });
            if !has_full_blocks {
                b.for_("z", &(te::int(UNITS_PER_ITERATION) - &count), |b, z| {
                    b.store(to, &[&line + &count + z], &te::const_of(0.0, DType::Float32));
                });
            }
        });
    });
}

impl Layer {
    /// The number of elements in a row of the weights `from`.
    fn k(&self, from: &Tensor) -> i64 {
        from.shape()[2].as_int().unwrap_or(0)
    }
}

/// Creates the loop function that packs the input weights, and a call of it.
pub(super) fn input_call(func: &mut Function, l: &Layer, from: RelaxExpr) -> PackingResult {
    let gate_group = (0, l.cell.gates() as i64, INPUT_WIDTH as i64);
    let total_columns = columns(l, gate_group);
    let size = l.directions * total_columns * l.input;
    packing_call(func, "pack_input_weights", from, &[size], |b, from, to| {
        write_gates(b, l, from, to, gate_group, 0, total_columns);
    })
}

/// Creates the loop function that packs the recurrent weights, and a call of it. The weights of each matmul of a step are packed
/// separately.
pub(super) fn state_call(func: &mut Function, l: &Layer, from: RelaxExpr) -> PackingResult {
    let parts = || {
        let phases = l.cell.state_products().iter();
        phases.map(|p| (p.first as i64, p.gates as i64, p.width as i64))
    };
    let total_columns: i64 = parts().map(|gate_group| columns(l, gate_group)).sum();
    packing_call(
        func,
        "pack_state_weights",
        from,
        &[l.directions * total_columns * l.hidden],
        |b, from, to| {
            let mut start = 0;
            for gate_group in parts() {
                write_gates(b, l, from, to, gate_group, start, total_columns);
                start += columns(l, gate_group);
            }
        },
    )
}

/// Creates the loop function that packs the biases, and a call of it. Each gate has a bias of the input and a bias of the state,
/// whose sum is packed. The exception is the last gate of a GRU with `linear_before_reset`: the reset gate scales its bias of the
/// state, but not its bias of the input, so these two biases are packed separately.
pub(super) fn bias_call(func: &mut Function, l: &Layer, from: RelaxExpr) -> PackingResult {
    let total_columns = columns(l, (0, l.cell.biases() as i64, UNITS_PER_ITERATION));
    packing_call(func, "pack_biases", from, &[l.directions * total_columns], |b, from, to| {
        for d in 0..l.directions {
            for gate in 0..l.cell.biases() as i64 {
                bias_of_gate(b, l, (from, to), (d, gate, total_columns));
            }
        }
    })
}

/// Emits the loop that packs the biases of one gate for one direction of a recurrent layer. Each direction has `total_columns`
/// packed biases.
fn bias_of_gate(
    b: &mut te::Body,
    l: &Layer,
    (from, to): (&Tensor, &Tensor),
    (d, gate, total_columns): (i64, i64, i64),
) {
    let (gates, biases) = (l.cell.gates() as i64, l.cell.biases() as i64);
    b.for_("j", &te::int(total_columns / biases), |b, j| {
        let block = te::floordiv(j, &te::int(UNITS_PER_ITERATION)) * biases + te::int(gate);
        let position = block * UNITS_PER_ITERATION
            + te::floormod(j, &te::int(UNITS_PER_ITERATION))
            + te::int(d * total_columns);
        let is_unit = te::lt(j, &te::int(l.hidden));
        let bias = |gate: i64| from.at(&[te::int(d), te::int(gate * l.hidden) + j]);
        let value = match gate {
            2 if l.cell == Cell::LinearGru => bias(2),
            3 if l.cell == Cell::LinearGru => bias(5),
            gate => bias(gate) + bias(gates + gate),
        };
        let position = [position];
        b.if_else(
            &is_unit,
            |b| b.store(to, &position, &value),
            |b| b.store(to, &position, &te::const_of(0.0, DType::Float32)),
        );
    });
}
