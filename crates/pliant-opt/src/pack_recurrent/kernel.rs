//! The loop function of a layer: one call of `pliant_recur_f32`.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call};
use pliant_tensor::Failed;
use pliant_tensor::gates::Cell;

use super::found::{Layer, Weights};
use super::given;
use crate::kernels::address;

/// The operands as tensors.
struct Operands {
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor,
    peepholes: Option<Tensor>,
    lengths: Option<Tensor>,
    first: [Option<Tensor>; 2],
}

/// The weights of a layer: packed constants, or as they are given.
pub(super) struct Handed {
    pub w: RelaxExpr,
    pub r: RelaxExpr,
    pub bias: RelaxExpr,
    pub peepholes: Option<RelaxExpr>,
}

/// The loop function and how it is called. Lengths that make no sense fail a run, unless they are `trusted`.
pub(super) fn call(
    func: &mut Function,
    l: &Layer,
    weights: &Handed,
    trusted: bool,
) -> Result<TirCall, LegalizeError> {
    let mut operands = vec![l.x, weights.w, weights.r, weights.bias];
    let optional = [weights.peepholes, l.lengths, l.first_output, l.first_cell];
    operands.extend(optional.into_iter().flatten());
    let name = format!("{}_packed", l.op.0.rsplit('.').next().unwrap_or(l.op.0));
    te_call(func, &name, &operands, |t| {
        let mut rest = t[4..].iter().cloned();
        let mut next = |given: bool| if given { rest.next() } else { None };
        let [peepholes, lengths, h, c] = optional.map(|o| next(o.is_some()));
        let [x, w, r, bias] = [0, 1, 2, 3].map(|k| t[k].clone());
        let o = Operands { x, w, r, bias, peepholes, lengths, first: [h, c] };
        let (steps, batch) = sizes(l, &o.x);
        let (d, hidden) = (te::int(l.directions), te::int(l.hidden));
        let (results, state) = if l.batched {
            (vec![batch.clone(), steps, d.clone(), hidden.clone()], vec![batch, d, hidden])
        } else {
            (vec![steps, d.clone(), batch.clone(), hidden.clone()], vec![d, batch, hidden])
        };
        let mut outputs = vec![results, state.clone()];
        if l.cell == Cell::Lstm {
            outputs.push(state);
        }
        let outputs: Vec<_> = outputs.into_iter().map(|s| (s, DType::Float32)).collect();
        Ok(te::extern_(&name, &outputs, |b, out| body(b, l, (&o, trusted), out)))
    })
}

/// Steps and sequences.
fn sizes(l: &Layer, x: &Tensor) -> (Expr, Expr) {
    let (steps, batch) = if l.batched { (1, 0) } else { (0, 1) };
    (x.shape()[steps].clone(), x.shape()[batch].clone())
}

/// Strides from step to step and from sequence to sequence, of rows of elements that lie side by side in `between` parts.
fn strides(l: &Layer, x: &Tensor, row: i64, between: i64) -> (Expr, Expr) {
    let (steps, batch) = sizes(l, x);
    let rows = te::int(row * between);
    if l.batched { (rows.clone(), steps * rows) } else { (batch * rows, te::int(row)) }
}

/// Brings lengths between none and all of the steps. Nothing is said of those that were not: somebody answers for them.
fn trusted_lengths(b: &mut te::Body, steps: &Expr, from: &Tensor, to: &Tensor) {
    b.for_("n", &from.shape()[0], |b, n| {
        let n = std::slice::from_ref(n);
        let length = te::minimum(&te::maximum(&te::cast(&from.at(n), Ty::I64), &te::int(0)), steps);
        b.store(to, n, &length);
    });
}

/// Copies lengths that make sense, and fails where one does not.
fn checked_lengths(b: &mut te::Body, l: &Layer, steps: &Expr, from: &Tensor, to: &Tensor) {
    b.for_("n", &from.shape()[0], |b, n| {
        let n = std::slice::from_ref(n);
        let length = from.at(n);
        let most = te::int_of(i64::MAX, DType::UInt64);
        let length = match from.dtype() {
            DType::UInt64 => te::cast(&te::minimum(&length, &most), Ty::I64),
            _ => te::cast(&length, Ty::I64),
        };
        let length = b.let_("length", &length);
        let inside = te::and(&te::ge(&length, &te::int(0)), &te::le(&length, steps));
        let name = l.op.0;
        let message = format!("{name}: the sequence length {{0}} is out of range for {{1}} steps");
        let told = te::explain(&inside, &[length.clone(), steps.clone()]);
        b.assert(&told, Failed::Index.mark(&message));
        b.store(to, n, &length);
    });
}

fn body(b: &mut te::Body, l: &Layer, (o, trusted): (&Operands, bool), out: &[Tensor]) {
    let (steps, batch) = sizes(l, &o.x);
    let one = [te::int(1)];
    let count = std::slice::from_ref(if o.lengths.is_some() { &batch } else { &one[0] });
    let lengths = b.alloc("lengths", count, DType::Int64);
    match &o.lengths {
        Some(given) if trusted => trusted_lengths(b, &steps, given, &lengths),
        Some(given) => checked_lengths(b, l, &steps, given, &lengths),
        None => {}
    }
    // Where there is no cell, nothing is written here.
    let cell = out.get(2).cloned().unwrap_or_else(|| b.alloc("cell", &one, DType::Float32));
    let mut args = vec![te::string("pliant_recur_f32"), te::int(l.cell.number()), steps, batch];
    args.extend([l.input, l.hidden, l.directions, i64::from(l.reverse)].map(te::int));
    args.push(address(&o.x));
    let (x_step, x_batch) = strides(l, &o.x, l.input, 1);
    args.extend([x_step, x_batch]);
    let given = |w: &Weights| matches!(w, Weights::Given(..));
    let w = if given(&l.w) { given::input(b, l, &o.w) } else { o.w.clone() };
    let r = if given(&l.r) { given::state(b, l, &o.r) } else { o.r.clone() };
    let biases = l.bias.as_ref().is_some_and(given);
    let bias = if biases { given::bias(b, l, &o.bias) } else { o.bias.clone() };
    for (weights, columns) in [&w, &r, &bias].into_iter().zip(l.columns()) {
        args.extend([address(weights), te::int(columns)]);
    }
    // What is not there has the address of something that is.
    let optional = |t: &Option<Tensor>| {
        [te::int(i64::from(t.is_some())), address(t.as_ref().unwrap_or(&bias))]
    };
    args.extend(optional(&o.peepholes));
    args.push(te::int(3 * l.hidden));
    args.extend([te::int(i64::from(o.lengths.is_some())), address(&lengths)]);
    let (y_step, y_batch) = strides(l, &o.x, l.hidden, l.directions);
    let (_, batch) = sizes(l, &o.x);
    let (direction, state_batch) = match l.batched {
        true => (te::int(l.hidden), te::int(l.directions * l.hidden)),
        false => (batch * te::int(l.hidden), te::int(l.hidden)),
    };
    args.extend([address(&out[0]), y_step, direction.clone(), y_batch]);
    args.extend(o.first.iter().flat_map(optional));
    args.push(address(&out[1]));
    args.extend([te::int(i64::from(l.cell == Cell::Lstm)), address(&cell)]);
    args.extend([direction, state_batch]);
    b.evaluate(te::call_typed(Intrin::CallExtern, args, Ty::I64));
}
