//! Creates the loop function of an int8 matmul, which contains one call of the kernel `matmul_int8`.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_kernel_api::kernels::matmul_int8::KERNEL;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, TensorView};
use pliant_ops::{LegalizeError, te_call};

use super::matmul_int8_matcher::IntegerMatmul;
use super::pack_constant_operand::PackedOperands;
use crate::offload::dequantized::has_one_element;
use crate::offload::int8_epilogue::IntegerEpilogue;
use crate::offload::kernel_attributes::KernelAttributes;

/// Creates the loop function of an int8 matmul and its epilogue, and a call of it.
pub(super) fn loop_function_call(
    func: &mut Function,
    p: &IntegerMatmul,
    weights: &PackedOperands,
) -> Result<TirCall, LegalizeError> {
    let per_row = p.zero.is_some_and(|z| !has_one_element(func, z));
    let mut operands = vec![p.x];
    operands.extend(p.zero);
    let quads = operands.len();
    operands.extend([weights.quads, weights.sums]);
    operands.extend(weights.zeros);
    let epilogue = p.epilogue.as_ref().map(|f| {
        let per_row = f.rows.is_some_and(|e| !has_one_element(func, e));
        let first = operands.len();
        let (divisor, shift) = quantization_operands(f);
        let all = [f.terms, f.rows, f.columns, f.bias, divisor, shift];
        operands.extend(all.into_iter().flatten());
        (f, first, per_row)
    });
    let result = func.find_var_expr(p.epilogue.as_ref().map_or(p.result, |f| f.result));
    let dtype = result.and_then(|e| func.ty(e).dtype()).unwrap_or(DType::Int32);
    let end = epilogue.map_or(operands.len(), |(_, first, _)| first);
    te_call(func, "matmul_int8", &operands, |t| {
        let x = &t[0];
        let leads = &x.shape()[..x.ndim() - 1];
        let mut shape = leads.to_vec();
        shape.push(t[quads + 1].shape()[0].clone());
        let rows = leads.iter().fold(te::int(1), |rows, d| rows * d);
        // A tensor with one element for each row, or with one element that is broadcast to all rows.
        let flatten = |tensor| TensorView::from(tensor).flatten();
        let by_rows = |tensor, per_row| {
            let all = flatten(tensor);
            if per_row { all } else { all.broadcast(std::slice::from_ref(&rows), &[true]) }
        };
        Ok(te::extern_("matmul_int8", &[(shape, dtype)], |b, out| {
            let mut call = te::KernelCall::new(&KERNEL)
                .operand("x", x)
                .optional("x_zeros", (quads > 1).then(|| by_rows(&t[1], per_row)))
                .operand("weight", &t[quads])
                .operand("column_sums", &t[quads + 1])
                .optional("weight_zeros", t[..end].get(quads + 2))
                .operand("out", &out[0]);
            if let Some((f, first, per_row)) = epilogue {
                let mut others = t[first..].iter();
                let mut next = |e: Option<RelaxExpr>| e.and_then(|_| others.next());
                let (divisor, shift) = quantization_operands(f);
                call = call
                    .optional("terms", next(f.terms).map(flatten))
                    .optional("row_scales", next(f.rows).map(|tensor| by_rows(tensor, per_row)))
                    .optional("column_scales", next(f.columns).map(flatten))
                    .optional("bias", next(f.bias).map(flatten))
                    .optional("out_scale", next(divisor).map(flatten))
                    .optional("out_zero", next(shift).map(flatten));
                call = f.activation.attributes(call);
                if let Some(requantization) = &f.requantization {
                    let (low, high) = requantization.limits;
                    call = call.float("out_low", low).float("out_high", high);
                }
            }
            b.evaluate(call.finish());
        }))
    })
}

/// Returns the scale and the zero point of 8-bit results.
fn quantization_operands(f: &IntegerEpilogue) -> (Option<RelaxExpr>, Option<RelaxExpr>) {
    f.requantization.as_ref().map_or((None, None), |r| (r.divisor, r.shift))
}
