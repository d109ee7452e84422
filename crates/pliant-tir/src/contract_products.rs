//! ContractProducts: replaces `C[i] = C[i] + a * b` by a fused multiply-add in functions that a user has scheduled
//! (`tir.is_scheduled`). The matmul kernels of the library use fused multiply-adds, too.

use pliant_ir::tir::{BinOp, ExprData, Intrin, PrimFunc, StmtData};
use pliant_machine::isa::{Isa, isa};

use crate::lowering_error::LowerError;
use crate::lowering_pipeline::is_scheduled;
use crate::statement_traversal::map_stmts;

/// Replaces the accumulations of float products by fused multiply-adds, if a user has scheduled the function and the CPU has the
/// instruction.
///
/// # Errors
/// None.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if !is_scheduled(f) || isa() == Isa::Portable {
        return Ok(());
    }
    let body = f.body;
    f.body = map_stmts(f, body, &mut |f, s| {
        let StmtData::Store { buffer, indices, value } = f.stmt(s).clone() else { return None };
        let ExprData::Binary(BinOp::Add, x, y) = *f.expr(value) else { return None };
        if !matches!(f.buffer(buffer).dtype.name(), "float32" | "float64") {
            return None;
        }
        let is_result =
            |e| matches!(f.expr(e), ExprData::Load(b, at) if *b == buffer && *at == indices);
        let (sum, product) = if is_result(x) { (x, y) } else { (y, x) };
        let ExprData::Binary(BinOp::Mul, a, b) = *f.expr(product) else { return None };
        if !is_result(sum) {
            return None;
        }
        let value = f.call(Intrin::Fma, &[a, b, sum]);
        Some(f.store(buffer, &indices, value))
    });
    Ok(())
}
