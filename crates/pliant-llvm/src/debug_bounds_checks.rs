//! Bounds checks directly before every access, in test builds (`CodegenOptions::check_accesses`).
//!
//! Passes prove that an index is inside its buffer, or insert an assertion. The checks here rely on neither: generated
//! code compares each index with the size of its buffer. So a defect of a pass becomes an internal error, as with a
//! sanitizer.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use pliant_ir::tir::{Buffer, Expr, ExprData};
use pliant_tensor::CheckFailure;

use crate::function_builder::{FuncGen, Gen};

/// The range of valid linear indices of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'ctx> {
    /// The smallest valid linear index; negative if a stride is negative.
    pub first: IntValue<'ctx>,
    /// The largest valid linear index plus 1.
    pub end: IntValue<'ctx>,
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// If access checks are enabled, emits code that computes the range of valid indices of a buffer, and records the range for
    /// later checks. The variables in the dims and strides of the buffer must be defined in the current basic block.
    pub fn record_limits(&mut self, buffer: Buffer) -> Gen<()> {
        if !self.unit.check_accesses {
            return Ok(());
        }
        let data = self.f.buffer(buffer);
        let zero = self.i64(0);
        let mut limits = Limits { first: zero, end: self.i64(1) };
        if data.strides.is_empty() {
            for &dim in &data.shape {
                let dim = self.int(dim)?;
                limits.end = self.b.build_int_mul(limits.end, dim, "")?;
            }
        } else {
            let mut is_empty = self.unit.context.bool_type().const_zero();
            for (&dim, &stride) in data.shape.iter().zip(&data.strides) {
                let (dim, stride) = (self.int(dim)?, self.int(stride)?);
                let max_index = self.b.build_int_sub(dim, self.i64(1), "")?;
                let max_index = self.extremum("llvm.smax", max_index, zero)?;
                let last = self.b.build_int_mul(max_index, stride, "")?;
                let low = self.extremum("llvm.smin", last, zero)?;
                let high = self.extremum("llvm.smax", last, zero)?;
                limits.first = self.b.build_int_add(limits.first, low, "")?;
                limits.end = self.b.build_int_add(limits.end, high, "")?;
                let is_zero = self.b.build_int_compare(IntPredicate::EQ, dim, zero, "")?;
                is_empty = self.b.build_or(is_empty, is_zero, "")?;
            }
            let end = self.b.build_select(is_empty, limits.first, limits.end, "")?;
            limits.end = end.into_int_value();
        }
        self.limits.insert(buffer, limits);
        Ok(())
    }

    fn extremum(
        &self,
        intrinsic: &str,
        a: IntValue<'ctx>,
        b: IntValue<'ctx>,
    ) -> Gen<IntValue<'ctx>> {
        Ok(self.same_type_intrinsic(intrinsic, &[a.into(), b.into()])?.into_int_value())
    }

    /// If access checks are enabled, emits a check: at run time, the loop function fails with an internal error unless all lanes of
    /// an index are inside the buffer.
    pub fn check_access(&mut self, buffer: Buffer, index: Expr) -> Gen<()> {
        if !self.unit.check_accesses {
            return Ok(());
        }
        let checked_lanes = match *self.f.expr(index) {
            // With a small constant stride, no lane between the first and the last one wraps around.
            ExprData::Ramp(base, stride, lanes)
                if self.f.as_int(stride).is_some_and(|s| s.unsigned_abs() <= 1 << 40) =>
            {
                let (base, stride) = (self.int(base)?, self.int(stride)?);
                let count = self.i64(i64::from(lanes) - 1);
                let span = self.b.build_int_mul(stride, count, "")?;
                vec![base.into(), self.b.build_int_add(base, span, "")?.into()]
            }
            _ => {
                let lanes = self.f.expr_ty(index).lanes;
                let index = self.expr(index)?;
                self.lanes(index, lanes)?
            }
        };
        checked_lanes.into_iter().try_for_each(|i| self.check_element(buffer, i.into_int_value()))
    }

    /// Emits a check: at run time, the loop function fails with an internal error unless a scalar index is inside the buffer.
    fn check_element(&mut self, buffer: Buffer, index: IntValue<'ctx>) -> Gen<()> {
        let Some(&Limits { first, end }) = self.limits.get(&buffer) else { return Ok(()) };
        let position = self.b.build_int_sub(index, first, "")?;
        let count = self.b.build_int_sub(end, first, "")?;
        let outside = self.b.build_int_compare(IntPredicate::UGE, position, count, "")?;
        let name = &self.f.buffer(buffer).name;
        let message = format!(
            "element {{0}} of '{name}' is out of bounds, and no pass checks the access; the buffer has elements {{1}} to {{2}} - 1"
        );
        self.error_with_values_if(outside, CheckFailure::Internal.mark(&message), |_| {
            Ok(vec![index, first, end])
        })
    }
}
