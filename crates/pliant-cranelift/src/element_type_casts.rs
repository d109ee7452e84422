//! Code generation for conversions between element types.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pliant_ir::tir::Ty;
use pliant_tensor::DType;

use crate::function_builder::{FuncGen, Gen};
use crate::value_representations::{ExprValue, chunk_type, fills_chunks, scalar_type};

impl FuncGen<'_, '_> {
    /// Generates code that converts a value from the type `from` to the type `to`. Conversions from float to integer truncate and
    /// saturate, and NaN becomes 0.
    pub fn cast(&mut self, v: ExprValue, from: Ty, to: Ty) -> Gen<ExprValue> {
        if from.dtype == to.dtype {
            return Ok(v);
        }
        if to.lanes > 1
            && let Some(v) = self.cast_mask(&v, from, to)?
        {
            return Ok(v);
        }
        if to.lanes > 1
            && fills_chunks(from)
            && fills_chunks(to)
            && let Some(chunks) = self.cast_chunks(&v, from, to)
        {
            return self.round_to_type(ExprValue::Chunks(chunks), to);
        }
        self.try_map_lanes(&[(v, from)], to, |g, l| g.scalar_cast(l[0], from.dtype, to.dtype))
    }

    /// Converts a vector in 128-bit chunks to another element type. Returns `None` if the machine has no instructions
    /// for the conversion. Results of type float16 and bfloat16 are float32 values that still have to be rounded.
    fn cast_chunks(&mut self, v: &ExprValue, from: Ty, to: Ty) -> Option<Rc<[Value]>> {
        let chunks = self.chunks(v, from).to_vec();
        let (a, b) = (scalar_type(from.dtype), scalar_type(to.dtype));
        let signed = from.dtype.is_int();
        Some(match (a.is_float(), b.is_float()) {
            (true, true) if a == b => chunks.into(),
            (true, true) if b == types::F64 => self.f32_to_f64(chunks),
            // Excludes float16 and bfloat16: a conversion from float64 through float32 would round twice.
            (true, true) if to.dtype == DType::Float32 => self.f64_to_f32(chunks),
            (true, false) if a == types::F32 => self.f32_to_ints(chunks, to.dtype)?,
            (false, true) if a.bits() < 32 || a == types::I32 && to.dtype.bits() > 16 => {
                let wide = self.widen_ints(chunks, signed, 32).to_vec();
                let signed = signed || a.bits() < 32;
                match b {
                    types::F32 if signed => {
                        wide.iter().map(|&c| self.b.ins().fcvt_from_sint(types::F32X4, c)).collect()
                    }
                    types::F32 => {
                        wide.iter().map(|&c| self.b.ins().fcvt_from_uint(types::F32X4, c)).collect()
                    }
                    _ => self.int32_to_f64(wide, signed),
                }
            }
            (false, false) if a.bits() < b.bits() => self.widen_ints(chunks, signed, b.bits()),
            (false, false) => self.truncate_ints(chunks, b.bits()),
            _ => return None,
        })
    }

    /// Extends 128-bit chunks of integers to `bits` bits per lane. The result has more chunks than the input.
    fn widen_ints(&mut self, mut chunks: Vec<Value>, signed: bool, bits: u32) -> Rc<[Value]> {
        while self.b.func.dfg.value_type(chunks[0]).lane_bits() < bits {
            let twice = chunks.into_iter().flat_map(|c| match signed {
                true => [self.b.ins().swiden_low(c), self.b.ins().swiden_high(c)],
                false => [self.b.ins().uwiden_low(c), self.b.ins().uwiden_high(c)],
            });
            chunks = twice.collect();
        }
        chunks.into()
    }

    /// Truncates 128-bit chunks of integers to `bits` bits per lane. The result has fewer chunks than the input.
    fn truncate_ints(&mut self, mut chunks: Vec<Value>, bits: u32) -> Rc<[Value]> {
        while self.b.func.dfg.value_type(chunks[0]).lane_bits() > bits {
            chunks = chunks.chunks(2).map(|p| self.truncate_pair(p[0], p[1])).collect();
        }
        chunks.into()
    }

    /// Truncates the lanes of two 128-bit chunks to half their width, and packs them into one chunk.
    pub fn truncate_pair(&mut self, a: Value, b: Value) -> Value {
        let ty = self.b.func.dfg.value_type(a);
        if ty == types::I64X2 {
            return self.low_halves(a, b);
        }
        // The instruction saturates, so the high halves are cleared first.
        let half = ty.lane_bits() / 2;
        let mask = self.b.ins().iconst(ty.lane_type(), (1i64 << half) - 1);
        let mask = self.b.ins().splat(ty, mask);
        let [a, b] = [a, b].map(|c| self.b.ins().band(c, mask));
        self.b.ins().unarrow(a, b)
    }

    /// Converts 128-bit chunks of float32 to 128-bit chunks of float64.
    fn f32_to_f64(&mut self, chunks: Vec<Value>) -> Rc<[Value]> {
        let halves = chunks.into_iter().flat_map(|c| {
            let high = self.upper_half(c);
            [self.b.ins().fvpromote_low(c), self.b.ins().fvpromote_low(high)]
        });
        halves.collect()
    }

    /// Converts 128-bit chunks of float64 to 128-bit chunks of float32.
    fn f64_to_f32(&mut self, chunks: Vec<Value>) -> Rc<[Value]> {
        let pairs = chunks.chunks(2).map(|p| {
            let [a, b] = [p[0], p[1]].map(|c| {
                let c = self.b.ins().fvdemote(c);
                self.bitcast_chunk(c, types::I64X2)
            });
            let second = self.b.ins().extractlane(b, 0);
            let both = self.b.ins().insertlane(a, second, 1);
            self.bitcast_chunk(both, types::F32X4)
        });
        pairs.collect()
    }

    /// Converts 128-bit chunks of 32-bit integers to 128-bit chunks of float64.
    pub fn int32_to_f64(&mut self, chunks: Vec<Value>, signed: bool) -> Rc<[Value]> {
        let halves = chunks.into_iter().flat_map(|c| {
            let high = self.upper_half(c);
            [c, high].map(|c| {
                if signed {
                    let wide = self.b.ins().swiden_low(c);
                    self.b.ins().fcvt_from_sint(types::F64X2, wide)
                } else {
                    let wide = self.b.ins().uwiden_low(c);
                    self.b.ins().fcvt_from_uint(types::F64X2, wide)
                }
            })
        });
        halves.collect()
    }

    /// Moves the upper 64 bits of a 128-bit chunk to its lower half.
    fn upper_half(&mut self, c: Value) -> Value {
        let ty = self.b.func.dfg.value_type(c);
        let bytes = self.bitcast_chunk(c, types::I8X16);
        let sources: Vec<u8> = (8..16).chain(8..16).collect();
        let sources = self.b.func.dfg.immediates.push(sources.into());
        let high = self.b.ins().shuffle(bytes, bytes, sources);
        self.bitcast_chunk(high, ty)
    }

    /// Converts 128-bit chunks of float32 to integers of at most 32 bits. Truncates and saturates; NaN becomes 0. Returns
    /// `None` for wider integer types.
    fn f32_to_ints(&mut self, chunks: Vec<Value>, to: DType) -> Option<Rc<[Value]>> {
        if to.bits() > 32 {
            return None;
        }
        if to == DType::UInt32 {
            return Some(
                chunks.iter().map(|&c| self.b.ins().fcvt_to_uint_sat(types::I32X4, c)).collect(),
            );
        }
        let mut chunks: Vec<Value> =
            chunks.iter().map(|&c| self.b.ins().fcvt_to_sint_sat(types::I32X4, c)).collect();
        let mut bits = 32;
        while bits > to.bits() as u32 {
            bits /= 2;
            // A conversion to 8 bits saturates to signed 16 bits first, which does not change the result.
            let unsigned = to.is_uint() && bits == to.bits() as u32;
            let pairs = chunks.chunks(2);
            chunks = pairs
                .map(|p| match unsigned {
                    true => self.b.ins().unarrow(p[0], p[1]),
                    false => self.b.ins().snarrow(p[0], p[1]),
                })
                .collect();
        }
        Some(chunks.into())
    }

    /// Converts vectors of numbers to masks, which are true where a number is not 0, and masks to the numbers 0 and 1.
    /// Returns `None` for other conversions.
    fn cast_mask(&mut self, v: &ExprValue, from: Ty, to: Ty) -> Gen<Option<ExprValue>> {
        if to.dtype.is_bool() && fills_chunks(from) && matches!(v, ExprValue::Chunks(_)) {
            let chunks = self.chunks(v, from);
            let ty = self.b.func.dfg.value_type(chunks[0]);
            let zero = self.zero(ty);
            let is_nonzero = |g: &mut Self, c: Value| {
                if ty.lane_type().is_float() {
                    g.b.ins().fcmp(FloatCC::NotEqual, c, zero)
                } else {
                    g.b.ins().icmp(IntCC::NotEqual, c, zero)
                }
            };
            let chunks = chunks.iter().map(|&c| is_nonzero(self, c));
            return Ok(Some(ExprValue::Mask(ty.lane_bits() as u8, chunks.collect())));
        }
        let to = to.with_lanes(from.lanes.max(to.lanes));
        if from.dtype.is_bool() && fills_chunks(to) && matches!(v, ExprValue::Mask(..)) {
            let machine_type = chunk_type(to.dtype);
            let mask = self.mask(v, to.lanes, machine_type.lane_bits());
            let one = if machine_type.lane_type().is_float() {
                self.float_const(1.0, to)?
            } else {
                self.int_const(1, to)
            };
            let one = self.chunks(&one, to)[0];
            let one = self.bitcast_chunk(one, machine_type.as_int());
            let chunks = mask.iter().map(|&m| {
                let bits = self.b.ins().band(m, one);
                self.bitcast_chunk(bits, machine_type)
            });
            return Ok(Some(ExprValue::Chunks(chunks.collect())));
        }
        Ok(None)
    }

    /// Generates code that converts a scalar from the element type `from` to the element type `to`.
    fn scalar_cast(&mut self, v: Value, from: DType, to: DType) -> Gen<Value> {
        match (from.is_float(), to.is_float()) {
            (true, true) => self.float_to_float(v, from, to),
            (true, false) => Ok(self.float_to_int(v, to)),
            (false, true) => self.int_to_float(v, from, to),
            (false, false) => Ok(self.int_to_int(v, from, to)),
        }
    }

    fn float_to_float(&mut self, v: Value, from: DType, to: DType) -> Gen<Value> {
        match (from, to) {
            (DType::Float64, DType::Float16) => self.call_linked("pliant_f64_round_f16", &[v]),
            (DType::Float64, DType::BFloat16) => {
                let rounded_to_odd = self.round_to_odd_f32(v);
                self.round_scalar(rounded_to_odd, to)
            }
            (DType::Float64, _) => Ok(self.b.ins().fdemote(types::F32, v)),
            (_, DType::Float64) => Ok(self.b.ins().fpromote(types::F64, v)),
            _ => self.round_scalar(v, to),
        }
    }

    /// Generates code that rounds a float64 to a float32 by round-to-odd, as [`pliant_tensor::round_to_bf16`] does. If the result
    /// is then rounded to bfloat16, it equals the float64 rounded directly to bfloat16.
    fn round_to_odd_f32(&mut self, v: Value) -> Value {
        let flags = cranelift_codegen::ir::MemFlagsData::new();
        let nearest = self.b.ins().fdemote(types::F32, v);
        let promoted = self.b.ins().fpromote(types::F64, nearest);
        let inexact = self.b.ins().fcmp(FloatCC::OrderedNotEqual, promoted, v);
        let (rounded_magnitude, magnitude) = (self.b.ins().fabs(promoted), self.b.ins().fabs(v));
        let rounded_up = self.b.ins().fcmp(FloatCC::GreaterThan, rounded_magnitude, magnitude);
        let rounded_up = self.b.ins().uextend(types::I32, rounded_up);
        let bits = self.b.ins().bitcast(types::I32, flags, nearest);
        let odd = self.b.ins().isub(bits, rounded_up);
        let one = self.b.ins().iconst(types::I32, 1);
        let odd = self.b.ins().bor(odd, one);
        let bits = self.b.ins().select(inexact, odd, bits);
        self.b.ins().bitcast(types::F32, flags, bits)
    }

    /// Generates code that rounds a 64-bit integer by round-to-odd to an integer that float64 can represent, as
    /// [`pliant_tensor::round_to_odd_f64`] does.
    fn round_to_odd_f64(&mut self, v: Value, signed: bool) -> Value {
        let (low_mask, lowest_kept) =
            (self.b.ins().iconst(types::I64, 0x7ff), self.b.ins().iconst(types::I64, 0x800));
        let low = self.b.ins().band(v, low_mask);
        let high = self.b.ins().bxor(v, low);
        let odd = self.b.ins().bor(high, lowest_kept);
        let limit = self.b.ins().iconst(types::I64, 1 << 53);
        let magnitude = if signed { self.b.ins().iabs(v) } else { v };
        let is_large = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, magnitude, limit);
        let has_low_bits = self.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0);
        let inexact = self.b.ins().band(is_large, has_low_bits);
        self.b.ins().select(inexact, odd, v)
    }

    /// Rounds a float32 scalar to a float type of at most 32 bits.
    fn round_scalar(&mut self, v: Value, to: DType) -> Gen<Value> {
        match self.round_to_type(ExprValue::Scalar(v), Ty::scalar(to))? {
            ExprValue::Scalar(v) => Ok(v),
            _ => unreachable!("a rounded scalar is a scalar"),
        }
    }

    fn float_to_int(&mut self, v: Value, to: DType) -> Value {
        if to.is_bool() {
            let ty = self.b.func.dfg.value_type(v);
            let zero = if ty == types::F64 {
                self.b.ins().f64const(0.0)
            } else {
                self.b.ins().f32const(0.0)
            };
            return self.b.ins().fcmp(FloatCC::NotEqual, v, zero);
        }
        let machine_type = scalar_type(to);
        let wide = if machine_type.bits() < 32 { types::I32 } else { machine_type };
        if to.is_uint() {
            let x = self.b.ins().fcvt_to_uint_sat(wide, v);
            if wide == machine_type {
                return x;
            }
            let max = self.b.ins().iconst(wide, (1i64 << machine_type.bits()) - 1);
            let x = self.b.ins().umin(x, max);
            return self.b.ins().ireduce(machine_type, x);
        }
        let x = self.b.ins().fcvt_to_sint_sat(wide, v);
        if wide == machine_type {
            return x;
        }
        let max = (1i64 << (machine_type.bits() - 1)) - 1;
        let min = (-max - 1) & 0xffff_ffff;
        let (max, min) = (self.b.ins().iconst(wide, max), self.b.ins().iconst(wide, min));
        let x = self.b.ins().smin(x, max);
        let x = self.b.ins().smax(x, min);
        self.b.ins().ireduce(machine_type, x)
    }

    fn int_to_float(&mut self, v: Value, from: DType, to: DType) -> Gen<Value> {
        let machine_type = scalar_type(from);
        let v = if machine_type.bits() < 32 {
            if from.is_int() {
                self.b.ins().sextend(types::I32, v)
            } else {
                self.b.ins().uextend(types::I32, v)
            }
        } else {
            v
        };
        // Conversions to float16 and bfloat16 go through float64.
        let to_half = matches!(to, DType::Float16 | DType::BFloat16);
        let v = match machine_type.bits() {
            64 if to == DType::BFloat16 => self.round_to_odd_f64(v, from.is_int()),
            _ => v,
        };
        let target = if to_half { types::F64 } else { scalar_type(to) };
        let x = if from.is_int() {
            self.b.ins().fcvt_from_sint(target, v)
        } else {
            self.b.ins().fcvt_from_uint(target, v)
        };
        if to_half { self.float_to_float(x, DType::Float64, to) } else { Ok(x) }
    }

    fn int_to_int(&mut self, v: Value, from: DType, to: DType) -> Value {
        if to.is_bool() {
            return self.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0);
        }
        let (a, b) = (scalar_type(from), scalar_type(to));
        match a.bits().cmp(&b.bits()) {
            std::cmp::Ordering::Equal => v,
            std::cmp::Ordering::Greater => self.b.ins().ireduce(b, v),
            std::cmp::Ordering::Less if from.is_int() => self.b.ins().sextend(b, v),
            std::cmp::Ordering::Less => self.b.ins().uextend(b, v),
        }
    }
}
