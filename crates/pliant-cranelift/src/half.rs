//! Conversions between float32 and the 16-bit floats by integer arithmetic, on scalars and on 128-bit chunks. The machine's own
//! instructions for float16 cannot be generated here.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use pliant_tensor::DType;

use crate::function::FuncGen;
use crate::value::cast_flags;

/// The bits of float32 infinity.
const INFINITY: i64 = 0x7f80_0000;
/// The bits of the smallest float32 that is a normal float16.
const LEAST_NORMAL: i64 = 0x3880_0000;
/// The bits of the smallest power of two beyond the range of float16.
const BEYOND: i64 = 0x4780_0000;

impl FuncGen<'_, '_> {
    /// Converts a 16-bit float in the low half of 32 bits (scalar or chunk) to float32.
    pub fn widen_half(&mut self, bits: Value, dtype: DType) -> Value {
        if dtype == DType::BFloat16 {
            let high = self.shl(bits, 16);
            return self.as_float(high);
        }
        self.float_of_half(bits)
    }

    /// Converts a float32 (scalar or chunk) that a 16-bit float can represent to the bits of that float, in the low half of 32
    /// bits.
    pub fn half_bits(&mut self, v: Value, dtype: DType) -> Value {
        if dtype == DType::BFloat16 {
            let bits = self.as_bits(v);
            return self.shr(bits, 16);
        }
        self.half_of_float(v)
    }

    /// Converts float16 to float32. The bits are shifted left by 13, the difference of the mantissas' lengths. The product with
    /// 2^112 corrects the exponent, since 112 is the difference of the exponents' biases. It is exact, for subnormal numbers too.
    /// Infinities and NaN have the highest exponent in either type.
    fn float_of_half(&mut self, wide: Value) -> Value {
        let size = self.and(wide, 0x7fff);
        let sign = self.b.ins().bxor(wide, size);
        let sign = self.shl(sign, 16);
        let bits = self.shl(size, 13);
        let small = self.as_float(bits);
        let scale = self.b.ins().f32const(2f32.powi(112));
        let scale = self.repeated(scale, wide);
        let scaled = self.b.ins().fmul(small, scale);
        let scaled = self.as_bits(scaled);
        let endless = self.at_least(size, 0x7c00);
        let highest = self.or(bits, INFINITY);
        let bits = self.choose(endless, highest, scaled);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(bits)
    }

    /// Converts float32 to the bits of float16, ties to even. A normal result is rounded by the carry of an integer sum. A
    /// subnormal result is rounded by a float32 sum with 0.5, whose last bit has the weight of the last bit of a subnormal float16.
    fn half_of_float(&mut self, v: Value) -> Value {
        let all = self.as_bits(v);
        let size = self.and(all, 0x7fff_ffff);
        let sign = self.b.ins().bxor(all, size);
        let sign = self.shr(sign, 16);

        let last = self.shr(size, 13);
        // The exponents' biases differ by 112. Adding 0xfff, and 1 more if the last kept bit is odd, rounds ties to even.
        let moved = self.rounded_up(size, last, (-112 << 23) + 0xfff);
        let normal = self.shr(moved, 13);

        let sum = self.plus_half(size);
        let sum = self.as_bits(sum);
        let subnormal = self.plus(sum, -i64::from(0.5f32.to_bits()));

        let payload = self.and(last, 0x3ff);
        let nan = self.or(payload, 0x7e00);
        let infinity = self.constant(0x7c00, all);

        let is_normal = self.at_least(size, LEAST_NORMAL);
        let is_large = self.at_least(size, BEYOND);
        let is_nan = self.at_least(size, INFINITY + 1);
        let bits = self.choose(is_normal, normal, subnormal);
        let bits = self.choose(is_large, infinity, bits);
        let bits = self.choose(is_nan, nan, bits);
        self.b.ins().bor(bits, sign)
    }

    /// Rounds a float32 (scalar or chunk) to float16 as [`half_of_float`](Self::half_of_float) does, but returns a float32.
    pub fn round_f16(&mut self, v: Value) -> Value {
        let all = self.as_bits(v);
        let size = self.and(all, 0x7fff_ffff);
        let sign = self.b.ins().bxor(all, size);

        let last = self.shr(size, 13);
        let normal = self.rounded_up(size, last, 0xfff);
        let normal = self.and(normal, !0x1fff & 0xffff_ffff);

        let sum = self.plus_half(size);
        let half = self.b.ins().f32const(0.5);
        let half = self.repeated(half, all);
        let subnormal = self.b.ins().fsub(sum, half);
        let subnormal = self.as_bits(subnormal);

        let kept = self.and(size, !0x1fff & 0xffff_ffff);
        let nan = self.or(kept, 0x7fc0_0000);
        let infinity = self.constant(INFINITY, all);

        let is_normal = self.at_least(size, LEAST_NORMAL);
        let is_large = self.at_least(normal, BEYOND);
        let is_nan = self.at_least(size, INFINITY + 1);
        let bits = self.choose(is_normal, normal, subnormal);
        let bits = self.choose(is_large, infinity, bits);
        let bits = self.choose(is_nan, nan, bits);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(bits)
    }

    /// Rounds a float32 (scalar or chunk) to bfloat16, ties to even, by adding half of the last kept bit. Returns a float32. NaNs
    /// become quiet.
    pub fn round_bf16(&mut self, v: Value) -> Value {
        let bits = self.as_bits(v);
        let last = self.shr(bits, 16);
        let sum = self.rounded_up(bits, last, 0x7fff);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, v, v);
        let nan = self.or(bits, 0x40_0000);
        let bits = self.choose(is_nan, nan, sum);
        let bits = self.and(bits, 0xffff_0000);
        self.as_float(bits)
    }

    /// `bits + bias`, plus 1 where `last` is odd.
    fn rounded_up(&mut self, bits: Value, last: Value, bias: i64) -> Value {
        let odd = self.and(last, 1);
        let sum = self.plus(bits, bias);
        self.b.ins().iadd(sum, odd)
    }

    /// Adds 0.5 to the float32 with these bits.
    fn plus_half(&mut self, bits: Value) -> Value {
        let small = self.as_float(bits);
        let half = self.b.ins().f32const(0.5);
        let half = self.repeated(half, bits);
        self.b.ins().fadd(small, half)
    }

    fn is_chunk(&self, v: Value) -> bool {
        self.b.func.dfg.value_type(v).is_vector()
    }

    /// Broadcasts a scalar if `like` is a chunk.
    fn repeated(&mut self, scalar: Value, like: Value) -> Value {
        if !self.is_chunk(like) {
            return scalar;
        }
        let scalar_ty = self.b.func.dfg.value_type(scalar);
        self.b.ins().splat(crate::value::chunk_of(scalar_ty), scalar)
    }

    fn constant(&mut self, value: i64, like: Value) -> Value {
        let c = self.b.ins().iconst(types::I32, value & 0xffff_ffff);
        self.repeated(c, like)
    }

    fn and(&mut self, v: Value, mask: i64) -> Value {
        let mask = self.constant(mask, v);
        self.b.ins().band(v, mask)
    }

    fn or(&mut self, v: Value, bits: i64) -> Value {
        let bits = self.constant(bits, v);
        self.b.ins().bor(v, bits)
    }

    fn plus(&mut self, v: Value, value: i64) -> Value {
        let value = self.constant(value, v);
        self.b.ins().iadd(v, value)
    }

    fn shl(&mut self, v: Value, by: i64) -> Value {
        let by = self.b.ins().iconst(types::I32, by);
        self.b.ins().ishl(v, by)
    }

    fn shr(&mut self, v: Value, by: i64) -> Value {
        let by = self.b.ins().iconst(types::I32, by);
        self.b.ins().ushr(v, by)
    }

    /// Whether integers whose sign bit is clear are at least `least`.
    fn at_least(&mut self, v: Value, least: i64) -> Value {
        let least = self.constant(least, v);
        self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, v, least)
    }

    fn choose(&mut self, condition: Value, a: Value, b: Value) -> Value {
        if self.is_chunk(a) {
            self.b.ins().bitselect(condition, a, b)
        } else {
            self.b.ins().select(condition, a, b)
        }
    }

    fn as_bits(&mut self, v: Value) -> Value {
        self.reinterpreted(v, types::I32)
    }

    fn as_float(&mut self, v: Value) -> Value {
        self.reinterpreted(v, types::F32)
    }

    fn reinterpreted(&mut self, v: Value, lane: Type) -> Value {
        if self.is_chunk(v) {
            self.b.ins().bitcast(crate::value::chunk_of(lane), cast_flags(), v)
        } else {
            self.b.ins().bitcast(lane, MemFlagsData::new(), v)
        }
    }
}
