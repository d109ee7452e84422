//! Code generation for conversions between element types.

use inkwell::values::InstructionOpcode;
use inkwell::{FloatPredicate, IntPredicate};
use pliant_ir::tir::Ty;
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen};
use crate::half_floats::is_half;
use crate::values::{Value, lane_type, with_lanes};

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Generates code that converts a value from the type `from` to the type `to`. Conversions from float to integer truncate and
    /// saturate, and NaN becomes 0.
    pub fn cast(&mut self, v: Value<'ctx>, from: Ty, to: Ty) -> Gen<Value<'ctx>> {
        if from.dtype == to.dtype {
            return Ok(v);
        }
        match (from.dtype.is_float(), to.dtype.is_float()) {
            (true, true) => self.float_to_float(v, from, to.dtype),
            (true, false) => self.float_to_int(v, to.dtype),
            (false, true) => self.int_to_float(v, from, to.dtype),
            (false, false) => self.int_to_int(v, from.dtype, to.dtype),
        }
    }

    fn float_to_float(&mut self, v: Value<'ctx>, from: Ty, to: DType) -> Gen<Value<'ctx>> {
        let (f32_type, f64_type) =
            (self.unit.context.f32_type().into(), self.unit.context.f64_type().into());
        match (from.dtype, to) {
            // A conversion from float64 through float32 would round twice.
            (DType::Float64, DType::Float16) => {
                self.map_lanes(&[v], from.lanes, |g, l| g.call_linked("pliant_f64_round_f16", l))
            }
            (DType::Float64, DType::BFloat16) => {
                let rounded_to_odd = self.round_to_odd_f32(v)?;
                self.round_to_type(rounded_to_odd, to)
            }
            (DType::Float64, _) => self.convert(InstructionOpcode::FPTrunc, v, f32_type),
            (_, DType::Float64) => self.convert(InstructionOpcode::FPExt, v, f64_type),
            _ => self.round_to_type(v, to),
        }
    }

    /// Generates code that rounds a float64 to a float32 by round-to-odd, as [`pliant_tensor::round_to_bf16`] does. If the result
    /// is then rounded to bfloat16, it equals the float64 rounded directly to bfloat16.
    fn round_to_odd_f32(&self, v: Value<'ctx>) -> Gen<Value<'ctx>> {
        let (f32_type, f64_type) =
            (self.unit.context.f32_type().into(), self.unit.context.f64_type().into());
        let nearest = self.convert(InstructionOpcode::FPTrunc, v, f32_type)?;
        let promoted = self.convert(InstructionOpcode::FPExt, nearest, f64_type)?;
        let inexact = self.fcmp(FloatPredicate::ONE, promoted, v)?;
        let rounded_magnitude = self.same_type_intrinsic("llvm.fabs", &[promoted])?;
        let magnitude = self.same_type_intrinsic("llvm.fabs", &[v])?;
        let rounded_up = self.fcmp(FloatPredicate::OGT, rounded_magnitude, magnitude)?;
        let rounded_up =
            self.convert(InstructionOpcode::ZExt, rounded_up, self.unit.int_type(32))?;
        let bits = self.bits_as(nearest, self.unit.int_type(32))?;
        let odd = self.op(InstructionOpcode::Sub, bits, rounded_up)?;
        let odd = self.op(InstructionOpcode::Or, odd, self.int_of_type(1, odd.get_type()))?;
        let bits = self.select(inexact, odd, bits)?;
        self.bits_as(bits, f32_type)
    }

    /// Generates code that rounds a 64-bit integer by round-to-odd to an integer that float64 can represent, as
    /// [`pliant_tensor::round_to_odd_f64`] does.
    fn round_to_odd_f64(&self, v: Value<'ctx>, signed: bool) -> Gen<Value<'ctx>> {
        let constant = |c: i64| self.int_of_type(c, v.get_type());
        let low = self.op(InstructionOpcode::And, v, constant(0x7ff))?;
        let high = self.op(InstructionOpcode::Xor, v, low)?;
        let odd = self.op(InstructionOpcode::Or, high, constant(0x800))?;
        let magnitude = match signed {
            true => {
                let may_be_min = self.unit.context.bool_type().const_zero().into();
                self.intrinsic("llvm.abs", &[v.get_type()], &[v, may_be_min])?
            }
            false => v,
        };
        let is_large = self.icmp(IntPredicate::UGE, magnitude, constant(1 << 53))?;
        let has_low_bits = self.icmp(IntPredicate::NE, low, constant(0))?;
        let inexact = self.op(InstructionOpcode::And, is_large, has_low_bits)?;
        self.select(inexact, odd, v)
    }

    fn float_to_int(&mut self, v: Value<'ctx>, to: DType) -> Gen<Value<'ctx>> {
        if to.is_bool() {
            let zero = self.float_of_type(0.0, v.get_type());
            return self.fcmp(FloatPredicate::UNE, v, zero);
        }
        if to.bits() <= 16 || to == DType::Int32 {
            return self.float_to_int32(v, to);
        }
        let name = if to.is_uint() { "llvm.fptoui.sat" } else { "llvm.fptosi.sat" };
        let result = self.same_lanes_type(self.unit.scalar_type(to), v);
        self.intrinsic(name, &[result, v.get_type()], &[v])
    }

    /// Converts floats to int32, or through int32 to integers of at most 16 bits. Limits the floats first, because LLVM's
    /// saturating conversion of vectors takes many instructions.
    fn float_to_int32(&self, v: Value<'ctx>, to: DType) -> Gen<Value<'ctx>> {
        let bits = to.bits() as i32;
        let (low, high) = match to.is_uint() {
            true => (0, (1i64 << bits) - 1),
            false => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        };
        let constant = |c: i64| self.float_of_type(c as f64, v.get_type());
        let (zero, low, high) = (constant(0), constant(low), constant(high));
        let is_number = self.fcmp(FloatPredicate::ORD, v, v)?;
        let v = self.select(is_number, v, zero)?;
        let above = self.fcmp(FloatPredicate::OGT, v, low)?;
        let v = self.select(above, v, low)?;
        let is_float32 = lane_type(v.get_type()) == self.unit.context.f32_type().into();
        if to == DType::Int32 && is_float32 {
            return self.saturate_above(v);
        }
        let below = self.fcmp(FloatPredicate::OLT, v, high)?;
        let v = self.select(below, v, high)?;
        let wide = self.convert(InstructionOpcode::FPToSI, v, self.unit.int_type(32))?;
        self.convert(InstructionOpcode::Trunc, wide, self.unit.scalar_type(to))
    }

    /// Converts float32 values of at least -2^31 to int32, and saturates those above the largest int32, which float32 does not
    /// represent.
    fn saturate_above(&self, v: Value<'ctx>) -> Gen<Value<'ctx>> {
        let zero = self.float_of_type(0.0, v.get_type());
        let limit = self.float_of_type(2f64.powi(31), v.get_type());
        let fits = self.fcmp(FloatPredicate::OLT, v, limit)?;
        let bounded = self.select(fits, v, zero)?;
        let converted = self.convert(InstructionOpcode::FPToSI, bounded, self.unit.int_type(32))?;
        self.select(fits, converted, self.int_of_type(i64::from(i32::MAX), converted.get_type()))
    }

    fn int_to_float(&mut self, v: Value<'ctx>, from: Ty, to: DType) -> Gen<Value<'ctx>> {
        let bits = if from.dtype.is_bool() { 1 } else { from.dtype.bits() as u32 };
        let instruction = match from.dtype.is_int() {
            true => InstructionOpcode::SIToFP,
            false => InstructionOpcode::UIToFP,
        };
        if !is_half(to) {
            return self.convert(instruction, v, self.unit.scalar_type(to));
        }
        // Float32 represents integers of up to 16 bits exactly. Others become 16-bit floats through float64, so that the value
        // is rounded once.
        if bits <= 16 {
            let exact = self.convert(instruction, v, self.unit.context.f32_type().into())?;
            return self.round_to_type(exact, to);
        }
        let v = match bits {
            64 if to == DType::BFloat16 => self.round_to_odd_f64(v, from.dtype.is_int())?,
            _ => v,
        };
        let wide = self.convert(instruction, v, self.unit.context.f64_type().into())?;
        self.float_to_float(wide, Ty::scalar(DType::Float64).with_lanes(from.lanes), to)
    }

    fn int_to_int(&self, v: Value<'ctx>, from: DType, to: DType) -> Gen<Value<'ctx>> {
        if to.is_bool() {
            return self.icmp(IntPredicate::NE, v, self.int_of_type(0, v.get_type()));
        }
        let scalar = self.unit.scalar_type(to);
        let instruction = match from.is_bool() || from.size() < to.size() {
            true if from.is_int() => InstructionOpcode::SExt,
            true => InstructionOpcode::ZExt,
            false => InstructionOpcode::Trunc,
        };
        self.convert(instruction, v, scalar)
    }

    /// Returns the type with `scalar` lanes and as many lanes as `v` has.
    pub fn same_lanes_type(
        &self,
        scalar: inkwell::types::BasicTypeEnum<'ctx>,
        v: Value<'ctx>,
    ) -> inkwell::types::BasicTypeEnum<'ctx> {
        with_lanes(scalar, crate::values::lane_count(v.get_type()))
    }
}
