//! The loop function of a product by a constant of fewer bits: one call of the kernel for its format.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_kernel_api::MAX_RANK;
use pliant_kernel_api::kernels::weight_only_matmul::{BFLOAT16, INT4, INT8};
use pliant_ops::legalize::TirCall;
use pliant_ops::te;
use pliant_ops::{LegalizeError, te_call};
use pliant_tensor::Tensor as Constant;

/// A right operand as a kernel reads it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Rows and columns.
    pub size: (i64, i64),
    /// Panels of int8, of two rows of four bits in uint8, or of two rows of bfloat16.
    pub panels: Constant,
    /// Rows that share a scale, the scales and the zero points, in panels of float32; none of bfloat16.
    pub groups: Option<(i64, Constant, Option<Constant>)>,
}

/// Whether the kernels take a left operand: of known rank, and of few enough dims.
pub(crate) fn takes(func: &Function, x: RelaxExpr) -> bool {
    func.rank_of(func.expr_ty(x)).is_some_and(|rank| rank as usize <= MAX_RANK)
}

/// The loop function and how it is called: the left operand has the columns that the right one has rows.
pub(crate) fn call(
    func: &mut Function,
    x: RelaxExpr,
    stored: &Stored,
) -> Result<TirCall, LegalizeError> {
    let mut operands = vec![x, func.constant(stored.panels.clone())];
    if let Some((_, scales, zeros)) = &stored.groups {
        operands.push(func.constant(scales.clone()));
        operands.extend(zeros.clone().map(|z| func.constant(z)));
    }
    let kernel = match stored.panels.dtype() {
        DType::Int8 => &INT8,
        DType::UInt8 => &INT4,
        _ => &BFLOAT16,
    };
    let n = stored.size.1;
    te_call(func, "matmul_stored", &operands, |t| {
        let x = &t[0];
        let mut shape = x.shape()[..x.ndim() - 1].to_vec();
        shape.push(te::int(n));
        Ok(te::extern_("matmul_stored", &[(shape, DType::Float32)], |b, out| {
            let call = te::KernelCall::new(kernel)
                .operand("x", x)
                .operand("weight", &t[1])
                .operand("out", &out[0]);
            let call = match &stored.groups {
                Some((group, ..)) => call
                    .operand("scales", &t[2])
                    .optional("zeros", t.get(3))
                    .attr("group", &[te::int(*group)]),
                None => call,
            };
            b.evaluate(call.finish());
        }))
    })
}
