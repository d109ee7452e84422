//! Recognizes int32 matmuls whose operands are casts of 8-bit integers, with constant or non-constant right operands.

use pliant_ir::DType;
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_pass::pattern::Defs;
use pliant_sym::Sym;
use pliant_tensor::Tensor;

use crate::common::matmul_and_conv_operands::{MATMUL, call_operands};
use crate::offload::dequantized::{has_one_element, is_scalar_or_per_row};
use crate::offload::int8_epilogue::{CAST, IntegerEpilogue, SUBTRACT};

/// An int32 matmul of an 8-bit left operand.
#[derive(Clone, Debug)]
pub(super) struct IntegerMatmul {
    /// The int8 or uint8 left operand.
    pub x: Expr,
    /// The int32 per-tensor or per-row zero point of the left operand.
    pub zero: Option<Expr>,
    /// The variable that is bound to the int32 result of the matmul.
    pub result: Var,
    /// The epilogue that the kernel applies to the int32 result; `None` if there is none.
    pub epilogue: Option<IntegerEpilogue>,
}

fn is_byte(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Int8 | DType::UInt8))
}

/// Whether the result of a matmul is int32.
pub(super) fn is_int32(func: &Function, binding: Binding) -> bool {
    func.ty(binding.value).dtype() == Some(DType::Int32)
}

/// Returns the right operand of an int32 matmul if it is a constant matrix.
pub(super) fn constant_matrix(func: &Function, binding: Binding) -> Option<&Tensor> {
    let args = call_operands(func, binding.value, MATMUL)?.0;
    let ExprData::Constant(c) = func.expr(args[1]) else { return None };
    let weights = func.const_tensor(*c);
    let is_supported = func.ty(binding.value).dtype() == Some(DType::Int32)
        && weights.shape().len() == 2
        && weights.shape()[1] > 0
        && (weights.dtype() == DType::Int32 || is_byte(Some(weights.dtype())));
    is_supported.then_some(weights)
}

/// The non-constant 8-bit right operand of an int32 matmul.
#[derive(Clone, Copy, Debug)]
pub(super) struct NonConstantMatrix {
    /// The int8 or uint8 matrix.
    pub matrix: Expr,
    /// The int32 per-tensor or per-column zero point of the matrix.
    pub zero: Option<Expr>,
}

/// Returns the non-constant right operand of an int32 matmul if it is a cast 8-bit matrix, with or without a zero point.
pub(super) fn non_constant_matrix(
    func: &Function,
    defs: &Defs,
    binding: Binding,
) -> Option<NonConstantMatrix> {
    let args = call_operands(func, binding.value, MATMUL)?.0;
    let value = |e: Expr| defs.value_in_epoch(func, e, binding.var);
    let (mut matrix, mut zero) = (args[1], None);
    if let Some((&[left, right], _)) = call_operands(func, value(matrix), SUBTRACT)
        && func.ty(right).dtype() == Some(DType::Int32)
        && func.ty(left).dims() == func.ty(matrix).dims()
    {
        (matrix, zero) = (left, Some(right));
    }
    if func.ty(matrix).dtype() == Some(DType::Int32) {
        matrix = call_operands(func, value(matrix), CAST)?.0[0];
    }
    let columns = *func.ty(matrix).dims().filter(|dims| dims.len() == 2)?.last()?;
    let is_per_column = |z: Expr| {
        let dims = func.ty(z).dims().unwrap_or_default();
        let (last, others) = dims.split_last().unzip();
        let ones = others.into_iter().flatten().all(|&d| func.syms.as_int(d) == Some(1));
        last.is_some_and(|&d| d == columns && ones)
    };
    let is_supported = func.ty(binding.value).dtype() == Some(DType::Int32)
        && is_byte(func.ty(matrix).dtype())
        && zero.is_none_or(|z| has_one_element(func, z) || is_per_column(z));
    is_supported.then_some(NonConstantMatrix { matrix, zero })
}

/// Recognizes an int32 matmul whose right operand has `rows` rows. The kernel reads the 8-bit left operand itself instead of its
/// cast, at the position of the matmul. Therefore no call between the cast and the matmul may write to this operand.
pub(super) fn match_matmul(
    func: &Function,
    defs: &Defs,
    binding: Binding,
    rows: Sym,
) -> Option<IntegerMatmul> {
    let args = call_operands(func, binding.value, MATMUL)?.0;
    let value = |e: Expr| defs.value_in_epoch(func, e, binding.var);
    let (mut x, mut zero) = (args[0], None);
    if let Some((&[left, right], _)) = call_operands(func, value(x), SUBTRACT)
        && func.ty(right).dtype() == Some(DType::Int32)
        && func.ty(left).dims() == func.ty(x).dims()
    {
        (x, zero) = (left, Some(right));
    }
    if func.ty(x).dtype() == Some(DType::Int32) {
        x = call_operands(func, value(x), CAST)?.0[0];
    }
    let dims = func.ty(x).dims()?;
    let is_supported = is_byte(func.ty(x).dtype())
        && *dims.last()? == rows
        && (zero.is_none_or(|z| is_scalar_or_per_row(func, z, x)));
    is_supported.then_some(IntegerMatmul { x, zero, result: binding.var, epilogue: None })
}
