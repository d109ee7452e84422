//! The loop function of a product by a constant of fewer bits: one call of the kernel for its format.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te;
use pliant_ops::{LegalizeError, te_call};
use pliant_tensor::Tensor as Constant;

use crate::kernels::address;

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
    let name = match stored.panels.dtype() {
        DType::Int8 => "pliant_product_bytes_f32",
        DType::UInt8 => "pliant_product_nibbles_f32",
        _ => "pliant_product_bfloat16_f32",
    };
    let n = stored.size.1;
    te_call(func, "matmul_stored", &operands, |t| {
        let (x, panels) = (&t[0], &t[1]);
        let last = x.ndim() - 1;
        let (leads, k) = (&x.shape()[..last], &x.shape()[last]);
        let mut shape = leads.to_vec();
        shape.push(te::int(n));
        let rows = leads.iter().fold(te::int(1), |rows, d| rows * d);
        Ok(te::extern_("matmul_stored", &[(shape, DType::Float32)], |b, out| {
            let mut args =
                vec![te::string(name), rows, te::int(n), k.clone(), address(x), k.clone()];
            args.extend([address(panels), panels.shape()[2].clone()]);
            if let Some((group, ..)) = &stored.groups {
                // What is not there has the address of something that is.
                let zeros = t.get(3).unwrap_or(&t[2]);
                let given = te::int(i64::from(t.len() > 3));
                args.extend([te::int(*group), address(&t[2]), given, address(zeros)]);
            }
            args.extend([address(&out[0]), te::int(n)]);
            b.evaluate(te::call_typed(Intrin::CallExtern, args, Ty::I64));
        }))
    })
}
