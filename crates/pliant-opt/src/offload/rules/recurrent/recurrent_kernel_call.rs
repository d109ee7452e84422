//! Creates the call of the kernel `recurrent`, and the loop function that checks or clamps sequence lengths.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::Ty;
use pliant_ir::{AttrValue, DType};
use pliant_kernel_api::kernels::recurrent_layer::{KERNEL, LAYOUTS, cell_name};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call_with_sizes};
use pliant_tensor::CheckFailure;

use super::recurrent_matcher::Layer;
use crate::offload::kernel_attributes::KernelAttributes;

/// The kernel operands that the rule computes: packed weights, and sequence lengths that are in range.
pub(super) struct PreparedOperands {
    pub w: RelaxExpr,
    pub r: RelaxExpr,
    pub bias: RelaxExpr,
    pub peepholes: Option<RelaxExpr>,
    pub lengths: Option<RelaxExpr>,
}

/// Creates the call of the kernel `recurrent` for a layer.
pub(super) fn kernel_call(l: &Layer, p: &PreparedOperands) -> NewKernelCall {
    NewKernelCall::new(&KERNEL)
        .operand("x", l.x)
        .operand("w", p.w)
        .operand("r", p.r)
        .operand("bias", p.bias)
        .optional("peepholes", p.peepholes)
        .optional("lengths", p.lengths)
        .optional("initial_h", l.initial_output)
        .optional("initial_c", l.initial_cell)
        .text("cell", cell_name(l.cell))
        .text("layout", LAYOUTS[usize::from(l.batched)])
        .attribute("reverse", AttrValue::Bool(l.reverse))
}

/// Creates the loop function that converts sequence lengths to int64, and a call of it. If a length is out of range, the loop
/// function fails at run time. With `trusted`, it clamps the length instead.
///
/// # Errors
/// If the shape of the input is unknown.
pub(super) fn lengths(
    func: &mut Function,
    l: &Layer,
    lengths: RelaxExpr,
    trusted: bool,
) -> Result<TirCall, LegalizeError> {
    let steps_axis = usize::from(l.batched);
    let steps = func.ty(l.x).dims().map(|dims| dims[steps_axis]);
    let steps = steps.ok_or_else(|| {
        LegalizeError::unknown("the input of the recurrent layer has an unknown shape, so its number of steps is unknown")
    })?;
    te_call_with_sizes(func, "sequence_lengths", &[lengths], &[steps], |t, sizes| {
        let (from, steps) = (&t[0], &sizes[0]);
        let write = |b: &mut te::Body, out: &[Tensor]| match trusted {
            true => clamp_lengths(b, steps, from, &out[0]),
            false => check_lengths(b, l, steps, from, &out[0]),
        };
        Ok(te::extern_("lengths", &[(from.shape()[..1].to_vec(), DType::Int64)], write))
    })
}

/// Emits a loop that clamps sequence lengths to the range from 0 to the number of steps.
fn clamp_lengths(b: &mut te::Body, steps: &Expr, from: &Tensor, to: &Tensor) {
    b.for_("n", &from.shape()[0], |b, n| {
        let n = std::slice::from_ref(n);
        let length = te::minimum(&te::maximum(&te::cast(&from.at(n), Ty::I64), &te::int(0)), steps);
        b.store(to, n, &length);
    });
}

/// Emits a loop that copies sequence lengths. At run time, the loop function fails if a length is out of range.
fn check_lengths(b: &mut te::Body, l: &Layer, steps: &Expr, from: &Tensor, to: &Tensor) {
    b.for_("n", &from.shape()[0], |b, n| {
        let n = std::slice::from_ref(n);
        let length = from.at(n);
        let max_length = te::int_of(i64::MAX, DType::UInt64);
        let length = match from.dtype() {
            DType::UInt64 => te::cast(&te::minimum(&length, &max_length), Ty::I64),
            _ => te::cast(&length, Ty::I64),
        };
        let length = b.let_("length", &length);
        let is_in_range = te::and(&te::ge(&length, &te::int(0)), &te::le(&length, steps));
        let name = l.op.name();
        let message = format!("{name}: the sequence length {{0}} is out of range for {{1}} steps");
        let assertion = te::explain(&is_in_range, &[length.clone(), steps.clone()]);
        b.assert(&assertion, CheckFailure::Index.mark(&message));
        b.store(to, n, &length);
    });
}
