//! float16, of which the machine's instructions that are generated here know nothing: by integers, in place.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};

use crate::function::FuncGen;

impl FuncGen<'_, '_> {
    /// A 16-bit float in float32: its bits stand 13 further up there, and 112 is the difference of the exponents' biases. The
    /// product is exact, of subnormal numbers too; infinities and NaN have the highest exponent of either type.
    pub fn float_of_half(&mut self, half: Value) -> Value {
        let wide = self.b.ins().uextend(types::I32, half);
        let size = self.b.ins().band_imm_s(wide, 0x7fff);
        let sign = self.b.ins().bxor(wide, size);
        let sign = self.b.ins().ishl_imm_s(sign, 16);
        let bits = self.b.ins().ishl_imm_s(size, 13);
        let small = self.b.ins().bitcast(types::F32, MemFlagsData::new(), bits);
        let scale = self.b.ins().f32const(2f32.powi(112));
        let scaled = self.b.ins().fmul(small, scale);
        let scaled = self.b.ins().bitcast(types::I32, MemFlagsData::new(), scaled);
        let endless = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, size, 0x7c00);
        let highest = self.b.ins().bor_imm_s(bits, 0x7f80_0000);
        let bits = self.b.ins().select(endless, highest, scaled);
        let bits = self.b.ins().bor(bits, sign);
        self.b.ins().bitcast(types::F32, MemFlagsData::new(), bits)
    }

    /// The bits of a float32 rounded to 16 bits, ties to even: by the carry of an integer sum where the result is normal, by the
    /// rounding of a sum with 0.5 below, whose last place is that of subnormal halves.
    pub fn half_of_float(&mut self, v: Value) -> Value {
        let all = self.b.ins().bitcast(types::I32, MemFlagsData::new(), v);
        let size = self.b.ins().band_imm_s(all, 0x7fff_ffff);
        let sign = self.b.ins().bxor(all, size);
        let sign = self.b.ins().ushr_imm_s(sign, 16);

        let last = self.b.ins().ushr_imm_s(size, 13);
        let odd = self.b.ins().band_imm_s(last, 1);
        // Exponents differ by 112; half of the last place but one rounds up.
        let moved = self.b.ins().iadd_imm_s(size, (-112 << 23) + 0xfff);
        let moved = self.b.ins().iadd(moved, odd);
        let normal = self.b.ins().ushr_imm_s(moved, 13);

        let small = self.b.ins().bitcast(types::F32, MemFlagsData::new(), size);
        let half = self.b.ins().f32const(0.5);
        let sum = self.b.ins().fadd(small, half);
        let sum = self.b.ins().bitcast(types::I32, MemFlagsData::new(), sum);
        let subnormal = self.b.ins().iadd_imm_s(sum, -i64::from(0.5f32.to_bits()));

        let payload = self.b.ins().band_imm_s(last, 0x3ff);
        let nan = self.b.ins().bor_imm_s(payload, 0x7e00);
        let infinity = self.b.ins().iconst(types::I32, 0x7c00);

        let is_small = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, size, 0x3880_0000);
        let is_large =
            self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, size, 0x4780_0000);
        let is_nan = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, size, 0x7f80_0000);
        let bits = self.b.ins().select(is_small, subnormal, normal);
        let bits = self.b.ins().select(is_large, infinity, bits);
        let bits = self.b.ins().select(is_nan, nan, bits);
        self.b.ins().bor(bits, sign)
    }
}
