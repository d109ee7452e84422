//! Bounds checks directly before every access, in test builds (`CodegenOptions::check_accesses`).
//!
//! Passes prove that an index is inside its buffer, or insert an assertion. The checks here rely on neither: generated
//! code compares each index with the size of its buffer. So a defect of a pass becomes an internal error, as with a
//! sanitizer.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pliant_ir::tir::{Buffer, Expr, ExprData, Ty};
use pliant_tensor::CheckFailure;

use crate::function_builder::{FuncGen, Gen};

/// The range of valid linear indices of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The smallest valid linear index; negative if a stride is negative.
    pub first: Value,
    /// The largest valid linear index plus 1.
    pub end: Value,
}

impl FuncGen<'_, '_> {
    /// If access checks are enabled, emits code that computes the range of valid indices of a buffer, and records the range for
    /// later checks. The variables in the dims and strides of the buffer must be defined in the current basic block.
    pub fn record_limits(&mut self, buffer: Buffer) -> Gen<()> {
        if !self.unit.check_accesses {
            return Ok(());
        }
        let data = self.f.buffer(buffer);
        let zero = self.b.ins().iconst(types::I64, 0);
        let mut limits = Limits { first: zero, end: self.b.ins().iconst(types::I64, 1) };
        if data.strides.is_empty() {
            for &dim in &data.shape {
                let dim = self.scalar(dim)?;
                limits.end = self.b.ins().imul(limits.end, dim);
            }
        } else {
            let mut is_empty = self.b.ins().iconst(types::I8, 0);
            for (&dim, &stride) in data.shape.iter().zip(&data.strides) {
                let (dim, stride) = (self.scalar(dim)?, self.scalar(stride)?);
                let max_index = self.b.ins().iadd_imm_s(dim, -1);
                let max_index = self.b.ins().smax(max_index, zero);
                let last = self.b.ins().imul(max_index, stride);
                let (low, high) = (self.b.ins().smin(last, zero), self.b.ins().smax(last, zero));
                limits.first = self.b.ins().iadd(limits.first, low);
                limits.end = self.b.ins().iadd(limits.end, high);
                let is_zero = self.b.ins().icmp_imm_s(IntCC::Equal, dim, 0);
                is_empty = self.b.ins().bor(is_empty, is_zero);
            }
            limits.end = self.b.ins().select(is_empty, limits.first, limits.end);
        }
        self.limits.insert(buffer, limits);
        Ok(())
    }

    /// If access checks are enabled, emits a check: at run time, the loop function fails with an internal error unless all lanes of
    /// an index are inside the buffer.
    pub fn check_access(&mut self, buffer: Buffer, index: Expr) -> Gen<()> {
        if !self.unit.check_accesses {
            return Ok(());
        }
        let ty = Ty::I64.with_lanes(self.f.expr_ty(index).lanes);
        let checked_lanes = match *self.f.expr(index) {
            // With a small constant stride, no lane between the first and the last one wraps around.
            ExprData::Ramp(base, stride, lanes)
                if self.f.as_int(stride).is_some_and(|s| s.unsigned_abs() <= 1 << 40) =>
            {
                let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
                let span = self.b.ins().imul_imm_s(stride, i64::from(lanes) - 1);
                vec![base, self.b.ins().iadd(base, span)]
            }
            _ => {
                let lanes = self.expr(index)?;
                self.lanes(&lanes, ty).to_vec()
            }
        };
        checked_lanes.into_iter().try_for_each(|i| self.check_element(buffer, i))
    }

    /// Emits a check: at run time, the loop function fails with an internal error unless a scalar index is inside the buffer.
    fn check_element(&mut self, buffer: Buffer, index: Value) -> Gen<()> {
        let Some(&Limits { first, end }) = self.limits.get(&buffer) else { return Ok(()) };
        let position = self.b.ins().isub(index, first);
        let count = self.b.ins().isub(end, first);
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, position, count);
        let name = &self.f.buffer(buffer).name;
        let message = format!(
            "element {{0}} of '{name}' is out of bounds, and no pass checks the access; the buffer has elements {{1}} to {{2}} - 1"
        );
        self.error_with_values_if(&[outside], CheckFailure::Internal.mark(&message), |_| {
            Ok(vec![index, first, end])
        })
    }
}
