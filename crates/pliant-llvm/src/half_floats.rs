//! Conversions between float32 and the 16-bit float types, on scalars and on vectors.

use inkwell::FloatPredicate;
use inkwell::values::InstructionOpcode;
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen};
use crate::values::Value;

/// Whether this is a 16-bit float type, whose values are float32 in registers and 16 bits in memory.
pub(crate) fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Float16 | DType::BFloat16)
}

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Converts the bits of 16-bit floats to float32.
    pub fn half_bits_to_f32(&self, bits: Value<'ctx>, dtype: DType) -> Gen<Value<'ctx>> {
        let (f32_type, i32_type) = (self.unit.context.f32_type().into(), self.unit.int_type(32));
        if dtype == DType::Float16 {
            let half = self.bits_as(bits, self.unit.context.f16_type().into())?;
            return self.convert(InstructionOpcode::FPExt, half, f32_type);
        }
        let wide = self.convert(InstructionOpcode::ZExt, bits, i32_type)?;
        let sixteen = self.int_of_type(16, wide.get_type());
        let high = self.op(InstructionOpcode::Shl, wide, sixteen)?;
        self.bits_as(high, f32_type)
    }

    /// Converts float32 values to the bits of 16-bit floats. The values must be exactly representable as 16-bit floats.
    pub fn f32_to_half_bits(&self, v: Value<'ctx>, dtype: DType) -> Gen<Value<'ctx>> {
        let (i16_type, i32_type) = (self.unit.int_type(16), self.unit.int_type(32));
        if dtype == DType::Float16 {
            let half =
                self.convert(InstructionOpcode::FPTrunc, v, self.unit.context.f16_type().into())?;
            return self.bits_as(half, i16_type);
        }
        let bits = self.bits_as(v, i32_type)?;
        let sixteen = self.int_of_type(16, bits.get_type());
        let high = self.op(InstructionOpcode::LShr, bits, sixteen)?;
        self.convert(InstructionOpcode::Trunc, high, i16_type)
    }

    /// Generates code that rounds the float32 result of an operation on 16-bit floats to their precision, ties to even. Returns
    /// values of other types unchanged.
    pub fn round_to_type(&self, v: Value<'ctx>, dtype: DType) -> Gen<Value<'ctx>> {
        match dtype {
            DType::Float16 => {
                let half = self.unit.context.f16_type().into();
                let half = self.convert(InstructionOpcode::FPTrunc, v, half)?;
                let f32_type = self.unit.context.f32_type().into();
                self.convert(InstructionOpcode::FPExt, half, f32_type)
            }
            DType::BFloat16 => self.round_bf16(v),
            _ => Ok(v),
        }
    }

    /// Rounds float32 values to bfloat16 precision, ties to even, by adding half of the last kept bit. NaNs become quiet NaNs.
    ///
    /// LLVM's conversion to bfloat16 is not used: the instruction of some CPUs replaces subnormal numbers by zeros.
    fn round_bf16(&self, v: Value<'ctx>) -> Gen<Value<'ctx>> {
        let bits = self.bits_as(v, self.unit.int_type(32))?;
        let constant = |c: i64| self.int_of_type(c, bits.get_type());
        let shifted = self.op(InstructionOpcode::LShr, bits, constant(16))?;
        let odd = self.op(InstructionOpcode::And, shifted, constant(1))?;
        let sum = self.op(InstructionOpcode::Add, bits, constant(0x7fff))?;
        let rounded = self.op(InstructionOpcode::Add, sum, odd)?;
        let is_nan = self.fcmp(FloatPredicate::UNO, v, v)?;
        let nan = self.op(InstructionOpcode::Or, bits, constant(0x40_0000))?;
        let bits = self.select(is_nan, nan, rounded)?;
        let bits = self.op(InstructionOpcode::And, bits, constant(0xffff_0000))?;
        self.bits_as(bits, self.unit.context.f32_type().into())
    }
}
