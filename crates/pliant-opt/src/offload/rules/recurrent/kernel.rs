//! The loop function of a layer: one call of the kernel `recurrent`.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::Ty;
use pliant_kernel_api::kernels::recurrent::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call};
use pliant_tensor::Failed;
use pliant_tensor::gates::Cell;

use super::matcher::{Layer, Weights};
use super::non_constant;

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
    let (steps, _) = sizes(l, &o.x);
    let lengths = o.lengths.as_ref().map(|given| {
        let lengths = b.alloc("lengths", &given.shape()[..1], DType::Int64);
        if trusted {
            trusted_lengths(b, &steps, given, &lengths);
        } else {
            checked_lengths(b, l, &steps, given, &lengths);
        }
        lengths
    });
    let given = |w: &Weights| matches!(w, Weights::Given(..));
    let w = if given(&l.w) { non_constant::input(b, l, &o.w) } else { o.w.clone() };
    let r = if given(&l.r) { non_constant::state(b, l, &o.r) } else { o.r.clone() };
    let biases = l.bias.as_ref().is_some_and(given);
    let bias = if biases { non_constant::bias(b, l, &o.bias) } else { o.bias.clone() };
    let call = te::KernelCall::new(&KERNEL)
        .operand("x", &o.x)
        .operand("w", &w)
        .operand("r", &r)
        .operand("bias", &bias)
        .optional("peepholes", o.peepholes.as_ref())
        .optional("lengths", lengths.as_ref())
        .optional("initial_h", o.first[0].as_ref())
        .optional("initial_c", o.first[1].as_ref())
        .operand("y", &out[0])
        .operand("last_h", &out[1])
        .optional("last_c", out.get(2))
        .attr("cell", &[te::int(l.cell.number())])
        .choice("layout", if l.batched { "batch_first" } else { "steps_first" })
        .attr("reverse", &[te::int(i64::from(l.reverse))]);
    b.evaluate(call.finish());
}
