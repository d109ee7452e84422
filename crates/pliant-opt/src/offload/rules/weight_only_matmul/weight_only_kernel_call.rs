//! Creates the kernel call of a matmul whose right operand is stored with reduced precision (4 or 8 bits, or bfloat16).

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::{AttrValue, DType};
use pliant_kernel_api::MAX_RANK;
use pliant_kernel_api::kernels::weight_only_matmul::{BFLOAT16, INT4, INT8};
use pliant_tensor::Tensor as Constant;

use crate::offload::offload_rule::KeepReason;

/// A right operand of reduced precision in the format that the kernels read.
#[derive(Clone, Debug)]
pub(crate) struct PackedWeights {
    /// The operand as panels (blocks of adjacent columns). The elements are int8 integers, uint8 pairs of 4-bit integers from two
    /// rows, or pairs of bfloat16 numbers from two rows.
    pub panels: Constant,
    /// For quantized integers: (number of rows that share a scale, scales, zero points). Scales and zero points are float32, and
    /// packed as panels like the integers. `None` for bfloat16.
    pub groups: Option<(i64, Constant, Option<Constant>)>,
}

/// Checks that the kernels support a left operand: its rank must be known and at most [`MAX_RANK`]. The error is the reason why
/// they do not.
pub(crate) fn check_operand(func: &Function, x: RelaxExpr) -> Result<(), KeepReason> {
    match func.rank_of(func.expr_ty(x)) {
        None => Err("the rank of the matmul's left operand is unknown".into()),
        Some(rank) if rank as usize > MAX_RANK => Err(KeepReason::Because(
            format!(
                "the matmul's left operand has {rank} dims, but the kernel supports at most {MAX_RANK}"
            )
            .into(),
        )),
        Some(_) => Ok(()),
    }
}

/// Creates the kernel call. The left operand `x` must have as many columns as the right operand has rows.
pub(crate) fn call(func: &mut Function, x: RelaxExpr, weights: &PackedWeights) -> NewKernelCall {
    let kernel = match weights.panels.dtype() {
        DType::Int8 => &INT8,
        DType::UInt8 => &INT4,
        _ => &BFLOAT16,
    };
    let weight = func.constant(weights.panels.clone());
    let call = NewKernelCall::new(kernel).operand("x", x).operand("weight", weight);
    match &weights.groups {
        Some((group, scales, zeros)) => call
            .operand("scales", func.constant(scales.clone()))
            .optional("zeros", zeros.clone().map(|zeros| func.constant(zeros)))
            .attribute("group", AttrValue::Int(*group)),
        None => call,
    }
}
