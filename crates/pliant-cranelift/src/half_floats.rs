//! Conversions between float32 and the 16-bit float types by integer arithmetic, on scalars and on 128-bit chunks,
//! because Cranelift cannot generate the machine's conversion instructions for float16.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use pliant_tensor::DType;

use crate::function_builder::FuncGen;
use crate::value_representations::bitcast_flags;

/// The bit pattern of float32 infinity.
const F32_INFINITY: i64 = 0x7f80_0000;
/// The float32 bits of the smallest normal float16.
const MIN_NORMAL_F16: i64 = 0x3880_0000;
/// The float32 bits of 65536, the smallest power of two that overflows float16.
const F16_OVERFLOW: i64 = 0x4780_0000;

impl FuncGen<'_, '_> {
    /// Converts the bits of a 16-bit float, in the low half of a 32-bit integer, to float32. Works on a scalar or lane by lane on
    /// a 128-bit chunk.
    pub fn half_bits_to_f32(&mut self, bits: Value, dtype: DType) -> Value {
        if dtype == DType::BFloat16 {
            let high = self.shl(bits, 16);
            return self.as_float(high);
        }
        self.f16_to_f32(bits)
    }

    /// Converts a float32 to the bits of a 16-bit float, in the low half of a 32-bit integer. Works on a scalar or lane by lane
    /// on a 128-bit chunk. The value must be exactly representable as a 16-bit float.
    pub fn f32_to_half_bits(&mut self, v: Value, dtype: DType) -> Value {
        if dtype == DType::BFloat16 {
            let bits = self.as_bits(v);
            return self.shr(bits, 16);
        }
        self.f32_to_f16_bits(v)
    }

    /// Converts the bits of a float16 to float32. The left shift by 13 is the difference of the mantissa lengths. The
    /// multiplication by 2^112 corrects the exponent, because 112 is the difference of the exponent biases. The product
    /// is exact, also for subnormal numbers. Infinities and NaNs get the largest float32 exponent.
    fn f16_to_f32(&mut self, half_bits: Value) -> Value {
        let magnitude = self.and_constant(half_bits, 0x7fff);
        let sign = self.b.ins().bxor(half_bits, magnitude);
        let sign = self.shl(sign, 16);
        let bits = self.shl(magnitude, 13);
        let unscaled = self.as_float(bits);
        let scale = self.b.ins().f32const(2f32.powi(112));
        let scale = self.splat_like(scale, half_bits);
        let scaled = self.b.ins().fmul(unscaled, scale);
        let scaled = self.as_bits(scaled);
        let is_inf_or_nan = self.at_least(magnitude, 0x7c00);
        let inf_or_nan = self.or_constant(bits, F32_INFINITY);
        let bits = self.select_bits(is_inf_or_nan, inf_or_nan, scaled);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(bits)
    }

    /// Converts float32 to the bits of float16, rounding to nearest, ties to even. A normal result is rounded by adding an
    /// integer to the float32 bits before the low bits are shifted out. A subnormal result is rounded by adding 0.5: the last bit
    /// of the float32 sum has the same weight as the last bit of a subnormal float16.
    fn f32_to_f16_bits(&mut self, v: Value) -> Value {
        let all_bits = self.as_bits(v);
        let magnitude = self.and_constant(all_bits, 0x7fff_ffff);
        let sign = self.b.ins().bxor(all_bits, magnitude);
        let sign = self.shr(sign, 16);

        let shifted = self.shr(magnitude, 13);
        // The exponent biases differ by 112. Adding 0xfff, and 1 more if the last kept bit is 1, rounds ties to even.
        let rebased = self.add_rounding_bias(magnitude, shifted, (-112 << 23) + 0xfff);
        let normal = self.shr(rebased, 13);

        let sum = self.add_one_half(magnitude);
        let sum = self.as_bits(sum);
        let subnormal = self.add_constant(sum, -i64::from(0.5f32.to_bits()));

        let payload = self.and_constant(shifted, 0x3ff);
        let nan = self.or_constant(payload, 0x7e00);
        let infinity = self.constant(0x7c00, all_bits);

        let is_normal = self.at_least(magnitude, MIN_NORMAL_F16);
        let overflows = self.at_least(magnitude, F16_OVERFLOW);
        let is_nan = self.at_least(magnitude, F32_INFINITY + 1);
        let bits = self.select_bits(is_normal, normal, subnormal);
        let bits = self.select_bits(overflows, infinity, bits);
        let bits = self.select_bits(is_nan, nan, bits);
        self.b.ins().bor(bits, sign)
    }

    /// Rounds a float32 (scalar or 128-bit chunk) to float16 precision, to nearest, ties to even. Returns a float32.
    /// The method is that of [`f32_to_f16_bits`](Self::f32_to_f16_bits).
    pub fn round_f16(&mut self, v: Value) -> Value {
        let all_bits = self.as_bits(v);
        let magnitude = self.and_constant(all_bits, 0x7fff_ffff);
        let sign = self.b.ins().bxor(all_bits, magnitude);

        let shifted = self.shr(magnitude, 13);
        let normal = self.add_rounding_bias(magnitude, shifted, 0xfff);
        let normal = self.and_constant(normal, !0x1fff & 0xffff_ffff);

        let sum = self.add_one_half(magnitude);
        let half = self.b.ins().f32const(0.5);
        let half = self.splat_like(half, all_bits);
        let subnormal = self.b.ins().fsub(sum, half);
        let subnormal = self.as_bits(subnormal);

        let payload = self.and_constant(magnitude, !0x1fff & 0xffff_ffff);
        let nan = self.or_constant(payload, 0x7fc0_0000);
        let infinity = self.constant(F32_INFINITY, all_bits);

        let is_normal = self.at_least(magnitude, MIN_NORMAL_F16);
        let overflows = self.at_least(normal, F16_OVERFLOW);
        let is_nan = self.at_least(magnitude, F32_INFINITY + 1);
        let bits = self.select_bits(is_normal, normal, subnormal);
        let bits = self.select_bits(overflows, infinity, bits);
        let bits = self.select_bits(is_nan, nan, bits);
        let bits = self.b.ins().bor(bits, sign);
        self.as_float(bits)
    }

    /// Rounds a float32 (scalar or 128-bit chunk) to bfloat16 precision, ties to even, by adding half of the last kept bit.
    /// Returns a float32. NaNs become quiet NaNs.
    pub fn round_bf16(&mut self, v: Value) -> Value {
        let bits = self.as_bits(v);
        let shifted = self.shr(bits, 16);
        let rounded = self.add_rounding_bias(bits, shifted, 0x7fff);
        let is_nan = self.b.ins().fcmp(FloatCC::Unordered, v, v);
        let nan = self.or_constant(bits, 0x40_0000);
        let bits = self.select_bits(is_nan, nan, rounded);
        let bits = self.and_constant(bits, 0xffff_0000);
        self.as_float(bits)
    }

    /// Returns `bits + bias`, plus 1 where `shifted` is odd, which rounds halfway cases to even. `shifted` contains the
    /// bits that rounding keeps.
    fn add_rounding_bias(&mut self, bits: Value, shifted: Value, bias: i64) -> Value {
        let odd = self.and_constant(shifted, 1);
        let sum = self.add_constant(bits, bias);
        self.b.ins().iadd(sum, odd)
    }

    /// Returns 0.5 plus the float32 number whose bit pattern is `bits`.
    fn add_one_half(&mut self, bits: Value) -> Value {
        let float = self.as_float(bits);
        let half = self.b.ins().f32const(0.5);
        let half = self.splat_like(half, bits);
        self.b.ins().fadd(float, half)
    }

    fn is_chunk(&self, v: Value) -> bool {
        self.b.func.dfg.value_type(v).is_vector()
    }

    /// Broadcasts a scalar to all lanes if `like` is a 128-bit chunk; otherwise returns the scalar.
    fn splat_like(&mut self, scalar: Value, like: Value) -> Value {
        if !self.is_chunk(like) {
            return scalar;
        }
        let scalar_ty = self.b.func.dfg.value_type(scalar);
        self.b.ins().splat(crate::value_representations::chunk_type_of(scalar_ty), scalar)
    }

    /// Creates a 32-bit integer constant: a scalar or, if `like` is a 128-bit chunk, a chunk with this value in all lanes.
    fn constant(&mut self, value: i64, like: Value) -> Value {
        let c = self.b.ins().iconst(types::I32, value & 0xffff_ffff);
        self.splat_like(c, like)
    }

    fn and_constant(&mut self, v: Value, mask: i64) -> Value {
        let mask = self.constant(mask, v);
        self.b.ins().band(v, mask)
    }

    fn or_constant(&mut self, v: Value, bits: i64) -> Value {
        let bits = self.constant(bits, v);
        self.b.ins().bor(v, bits)
    }

    fn add_constant(&mut self, v: Value, value: i64) -> Value {
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

    /// Emits a comparison: whether a 32-bit integer with a clear sign bit is at least `min` at run time. Works on a scalar or lane
    /// by lane on a 128-bit chunk.
    fn at_least(&mut self, v: Value, min: i64) -> Value {
        let min = self.constant(min, v);
        self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, v, min)
    }

    fn select_bits(&mut self, condition: Value, a: Value, b: Value) -> Value {
        if self.is_chunk(a) {
            self.b.ins().bitselect(condition, a, b)
        } else {
            self.b.ins().select(condition, a, b)
        }
    }

    fn as_bits(&mut self, v: Value) -> Value {
        self.bitcast_lanes(v, types::I32)
    }

    fn as_float(&mut self, v: Value) -> Value {
        self.bitcast_lanes(v, types::F32)
    }

    /// Reinterprets the bits of a scalar or of the lanes of a chunk as the type `lane`.
    fn bitcast_lanes(&mut self, v: Value, lane: Type) -> Value {
        if self.is_chunk(v) {
            self.b.ins().bitcast(
                crate::value_representations::chunk_type_of(lane),
                bitcast_flags(),
                v,
            )
        } else {
            self.b.ins().bitcast(lane, MemFlagsData::new(), v)
        }
    }
}
