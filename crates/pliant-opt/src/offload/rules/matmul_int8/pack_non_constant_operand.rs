//! Packs non-constant right operands with the kernel `pack_int8` before `matmul_int8` reads them.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Expr, TypeData};
use pliant_ir::{Attrs, DType, Op};
use pliant_kernel_api::kernels::pack_int8::KERNEL;
use pliant_pass::PassError;
use pliant_tensor::{Tensor, vnni_panel_width};

use super::matmul_int8_matcher::NonConstantMatrix;
use super::pack_constant_operand::PackedOperands;
use crate::offload::dequantized::has_one_element;
use crate::offload::int8_epilogue::SUBTRACT;
use crate::offload::offload_rule::{KeepReason, Site};

const BROADCAST: Op = Op::new("relax.broadcast_to");
const RESHAPE: Op = Op::new("relax.reshape");

/// Emits the call that packs a matrix at run time. The inner error is the reason why the kernel does not support the matrix.
pub(super) fn pack_matrix(
    site: &mut Site<'_>,
    right: NonConstantMatrix,
) -> Result<Result<PackedOperands, KeepReason>, PassError> {
    let Some(&[inner, columns]) = site.func.ty(right.matrix).dims() else {
        return Ok(Err("the shape of the matmul's right operand is unknown".into()));
    };
    let column_count = site.func.syms.as_int(columns).and_then(|n| usize::try_from(n).ok());
    let width = vnni_panel_width(column_count) as i64;
    let ceil_div = |site: &mut Site<'_>, size, divisor: i64| {
        let (divisor, round_up) = (site.func.syms.int(divisor), site.func.syms.int(divisor - 1));
        let sum = site.func.syms.add(size, round_up);
        site.func.syms.floordiv(sum, divisor)
    };
    let (panels, quads) = (ceil_div(site, columns, width), ceil_div(site, inner, 4));
    let (width, four) = (site.func.syms.int(width), site.func.syms.int(4));
    let dims = [panels, quads, width, four];
    let tys = [
        site.func.intern(TypeData::tensor(dims, DType::Int8)),
        site.func.intern(TypeData::tensor([columns], DType::Int32)),
    ];
    let call = NewKernelCall::new(&KERNEL).operand("x", right.matrix);
    let call = match call.add_to(site.func, site.ctx.ops, &tys) {
        Ok(call) => site.emit(call),
        Err(error) => return Ok(Err(KeepReason::Because(error.message.into()))),
    };
    let [quads, sums] = [0, 1].map(|field| {
        let value = site.func.tuple_get_item(call, field);
        site.emit(value)
    });
    let zeros = packed_zero_points(site, right)?;
    Ok(Ok(PackedOperands { quads, sums, zeros }))
}

/// Returns the zero points of the columns of the packed matrix. For uint8 matrices they are reduced by 128, because the packed
/// integers are int8.
fn packed_zero_points(
    site: &mut Site<'_>,
    right: NonConstantMatrix,
) -> Result<Option<Expr>, PassError> {
    let columns = site.func.ty(right.matrix).dims().map(|dims| dims[1]);
    let unsigned = site.func.ty(right.matrix).dtype() == Some(DType::UInt8);
    let constant = |site: &mut Site<'_>, n: i32| {
        let tensor = Tensor::from_slice(&[], &[n]);
        tensor.map(|t| site.func.constant(t)).map_err(|e| PassError::internal(e.to_string()))
    };
    let mut zero = match (right.zero, unsigned) {
        (None, false) => return Ok(None),
        (None, true) => constant(site, -128)?,
        (Some(zero), false) => zero,
        (Some(zero), true) => {
            let offset = constant(site, 128)?;
            let value = site.call(SUBTRACT, &[zero, offset], Attrs::default())?;
            site.emit(value)
        }
    };
    let shape = site.func.shape(&[
        columns.expect("the right operand is a matrix, so its number of columns is known")
    ]);
    let op = if has_one_element(site.func, zero) { BROADCAST } else { RESHAPE };
    if op == BROADCAST {
        let one = site.func.syms.int(1);
        let one = site.func.shape(&[one]);
        let value = site.call(RESHAPE, &[zero, one], Attrs::default())?;
        zero = site.emit(value);
    }
    let value = site.call(op, &[zero, shape], Attrs::default())?;
    Ok(Some(site.emit(value)))
}
