//! Conversions between element types.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use pliant_ir::tir::Ty;
use pliant_tensor::DType;

use crate::function::{FuncGen, Gen};
use crate::value::{V, chunk, clif, packable};

impl FuncGen<'_, '_> {
    /// Converts a value to another element type. Conversion from float to integer truncates and saturates, and turns NaN into 0.
    pub fn cast(&mut self, v: V, from: Ty, to: Ty) -> Gen<V> {
        if from.dtype == to.dtype {
            return Ok(v);
        }
        if to.lanes > 1
            && let Some(v) = self.cast_mask(&v, from, to)?
        {
            return Ok(v);
        }
        if to.lanes > 1
            && packable(from)
            && packable(to)
            && let Some(chunks) = self.cast_chunks(&v, from, to)
        {
            return self.narrow(V::X(chunks), to);
        }
        self.try_map_lanes(&[(v, from)], to, |g, l| g.scalar_cast(l[0], from.dtype, to.dtype))
    }

    /// Converts chunks; `None` if the machine has no instructions for it. float16 and bfloat16 results, which are held as float32,
    /// are not yet rounded.
    fn cast_chunks(&mut self, v: &V, from: Ty, to: Ty) -> Option<Rc<[Value]>> {
        let chunks = self.chunks(v, from).to_vec();
        let (a, b) = (clif(from.dtype), clif(to.dtype));
        let signed = from.dtype.is_int();
        Some(match (a.is_float(), b.is_float()) {
            (true, true) if a == b => chunks.into(),
            (true, true) if b == types::F64 => self.promoted(chunks),
            // Not to float16 or bfloat16: conversion from float64 through float32 would round twice.
            (true, true) if to.dtype == DType::Float32 => self.demoted(chunks),
            (true, false) if a == types::F32 => self.saturated(chunks, to.dtype)?,
            (false, true) if a.bits() < 32 || a == types::I32 && to.dtype.bits() > 16 => {
                let wide = self.widened(chunks, signed, 32).to_vec();
                let signed = signed || a.bits() < 32;
                match b {
                    types::F32 if signed => {
                        wide.iter().map(|&c| self.b.ins().fcvt_from_sint(types::F32X4, c)).collect()
                    }
                    types::F32 => {
                        wide.iter().map(|&c| self.b.ins().fcvt_from_uint(types::F32X4, c)).collect()
                    }
                    _ => self.doubles(wide, signed),
                }
            }
            (false, false) if a.bits() < b.bits() => self.widened(chunks, signed, b.bits()),
            (false, false) => self.truncated_to(chunks, b.bits()),
            _ => return None,
        })
    }

    /// Extends chunks of integers to chunks of integers of `bits` bits.
    fn widened(&mut self, mut chunks: Vec<Value>, signed: bool, bits: u32) -> Rc<[Value]> {
        while self.b.func.dfg.value_type(chunks[0]).lane_bits() < bits {
            let twice = chunks.into_iter().flat_map(|c| match signed {
                true => [self.b.ins().swiden_low(c), self.b.ins().swiden_high(c)],
                false => [self.b.ins().uwiden_low(c), self.b.ins().uwiden_high(c)],
            });
            chunks = twice.collect();
        }
        chunks.into()
    }

    /// Truncates chunks of integers to chunks of their lowest `bits` bits.
    fn truncated_to(&mut self, mut chunks: Vec<Value>, bits: u32) -> Rc<[Value]> {
        while self.b.func.dfg.value_type(chunks[0]).lane_bits() > bits {
            chunks = chunks.chunks(2).map(|p| self.truncated(p[0], p[1])).collect();
        }
        chunks.into()
    }

    /// The lower halves of the elements of two chunks.
    pub fn truncated(&mut self, a: Value, b: Value) -> Value {
        let ty = self.b.func.dfg.value_type(a);
        if ty == types::I64X2 {
            return self.low_halves(a, b);
        }
        // The saturating instruction truncates if the upper halves of the elements are 0.
        let half = ty.lane_bits() / 2;
        let mask = self.b.ins().iconst(ty.lane_type(), (1i64 << half) - 1);
        let mask = self.b.ins().splat(ty, mask);
        let [a, b] = [a, b].map(|c| self.b.ins().band(c, mask));
        self.b.ins().unarrow(a, b)
    }

    /// Converts chunks of float32 to chunks of float64.
    fn promoted(&mut self, chunks: Vec<Value>) -> Rc<[Value]> {
        let halves = chunks.into_iter().flat_map(|c| {
            let high = self.upper_half(c);
            [self.b.ins().fvpromote_low(c), self.b.ins().fvpromote_low(high)]
        });
        halves.collect()
    }

    /// Converts chunks of float64 to chunks of float32.
    fn demoted(&mut self, chunks: Vec<Value>) -> Rc<[Value]> {
        let pairs = chunks.chunks(2).map(|p| {
            let [a, b] = [p[0], p[1]].map(|c| {
                let c = self.b.ins().fvdemote(c);
                self.recast(c, types::I64X2)
            });
            let second = self.b.ins().extractlane(b, 0);
            let both = self.b.ins().insertlane(a, second, 1);
            self.recast(both, types::F32X4)
        });
        pairs.collect()
    }

    /// Converts chunks of 32-bit integers to chunks of float64.
    pub fn doubles(&mut self, chunks: Vec<Value>, signed: bool) -> Rc<[Value]> {
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

    /// Moves the upper half of a chunk to the lower half.
    fn upper_half(&mut self, c: Value) -> Value {
        let ty = self.b.func.dfg.value_type(c);
        let bytes = self.recast(c, types::I8X16);
        let places: Vec<u8> = (8..16).chain(8..16).collect();
        let places = self.b.func.dfg.immediates.push(places.into());
        let high = self.b.ins().shuffle(bytes, bytes, places);
        self.recast(high, ty)
    }

    /// Converts chunks of float32 to integers of at most 32 bits: truncates, saturates, and turns NaN into 0. `None` for wider
    /// integers.
    fn saturated(&mut self, chunks: Vec<Value>, to: DType) -> Option<Rc<[Value]>> {
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
            // The path to 8 bits saturates to signed 16 bits first. A value that is out of range there is out of the range of 8
            // bits on the same side.
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

    /// Converts vectors of numbers to masks, which are true where a number is not 0, and masks to the numbers 0 and 1. `None` for
    /// other conversions.
    fn cast_mask(&mut self, v: &V, from: Ty, to: Ty) -> Gen<Option<V>> {
        if to.dtype.is_bool() && packable(from) && matches!(v, V::X(_)) {
            let chunks = self.chunks(v, from);
            let ty = self.b.func.dfg.value_type(chunks[0]);
            let zero = self.zero(ty);
            let holds = |g: &mut Self, c: Value| {
                if ty.lane_type().is_float() {
                    g.b.ins().fcmp(FloatCC::NotEqual, c, zero)
                } else {
                    g.b.ins().icmp(IntCC::NotEqual, c, zero)
                }
            };
            let chunks = chunks.iter().map(|&c| holds(self, c));
            return Ok(Some(V::M(ty.lane_bits() as u8, chunks.collect())));
        }
        let to = to.with_lanes(from.lanes.max(to.lanes));
        if from.dtype.is_bool() && packable(to) && matches!(v, V::M(..)) {
            let machine = chunk(to.dtype);
            let mask = self.mask(v, to.lanes, machine.lane_bits());
            let one = if machine.lane_type().is_float() {
                self.float_const(1.0, to)?
            } else {
                self.int_const(1, to)
            };
            let one = self.chunks(&one, to)[0];
            let one = self.recast(one, machine.as_int());
            let chunks = mask.iter().map(|&m| {
                let bits = self.b.ins().band(m, one);
                self.recast(bits, machine)
            });
            return Ok(Some(V::X(chunks.collect())));
        }
        Ok(None)
    }

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
                let narrow = self.odd_f32(v);
                self.round_scalar(narrow, to)
            }
            (DType::Float64, _) => Ok(self.b.ins().fdemote(types::F32, v)),
            (_, DType::Float64) => Ok(self.b.ins().fpromote(types::F64, v)),
            _ => self.round_scalar(v, to),
        }
    }

    /// Rounds a float64 to odd as float32, as [`pliant_tensor::round_to_bf16`] does. The result rounds to the same narrow float as
    /// the float64.
    fn odd_f32(&mut self, v: Value) -> Value {
        let flags = cranelift_codegen::ir::MemFlagsData::new();
        let near = self.b.ins().fdemote(types::F32, v);
        let back = self.b.ins().fpromote(types::F64, near);
        let inexact = self.b.ins().fcmp(FloatCC::OrderedNotEqual, back, v);
        let (far, len) = (self.b.ins().fabs(back), self.b.ins().fabs(v));
        let past = self.b.ins().fcmp(FloatCC::GreaterThan, far, len);
        let past = self.b.ins().uextend(types::I32, past);
        let bits = self.b.ins().bitcast(types::I32, flags, near);
        let odd = self.b.ins().isub(bits, past);
        let one = self.b.ins().iconst(types::I32, 1);
        let odd = self.b.ins().bor(odd, one);
        let bits = self.b.ins().select(inexact, odd, bits);
        self.b.ins().bitcast(types::F32, flags, bits)
    }

    /// Rounds a 64-bit integer to odd, so that float64 can represent it, as [`pliant_tensor::round_to_odd_f64`] does.
    fn odd_bits(&mut self, v: Value, signed: bool) -> Value {
        let (lost, one) =
            (self.b.ins().iconst(types::I64, 0x7ff), self.b.ins().iconst(types::I64, 0x800));
        let rest = self.b.ins().band(v, lost);
        let kept = self.b.ins().bxor(v, rest);
        let odd = self.b.ins().bor(kept, one);
        let limit = self.b.ins().iconst(types::I64, 1 << 53);
        let len = if signed { self.b.ins().iabs(v) } else { v };
        let long = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, len, limit);
        let some = self.b.ins().icmp_imm_s(IntCC::NotEqual, rest, 0);
        let lossy = self.b.ins().band(long, some);
        self.b.ins().select(lossy, odd, v)
    }

    fn round_scalar(&mut self, v: Value, to: DType) -> Gen<Value> {
        match self.narrow(V::S(v), Ty::scalar(to))? {
            V::S(v) => Ok(v),
            _ => unreachable!("a scalar stays a scalar"),
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
        let machine = clif(to);
        let wide = if machine.bits() < 32 { types::I32 } else { machine };
        if to.is_uint() {
            let x = self.b.ins().fcvt_to_uint_sat(wide, v);
            if wide == machine {
                return x;
            }
            let top = self.b.ins().iconst(wide, (1i64 << machine.bits()) - 1);
            let x = self.b.ins().umin(x, top);
            return self.b.ins().ireduce(machine, x);
        }
        let x = self.b.ins().fcvt_to_sint_sat(wide, v);
        if wide == machine {
            return x;
        }
        let top = (1i64 << (machine.bits() - 1)) - 1;
        let low = (-top - 1) & 0xffff_ffff;
        let (top, low) = (self.b.ins().iconst(wide, top), self.b.ins().iconst(wide, low));
        let x = self.b.ins().smin(x, top);
        let x = self.b.ins().smax(x, low);
        self.b.ins().ireduce(machine, x)
    }

    fn int_to_float(&mut self, v: Value, from: DType, to: DType) -> Gen<Value> {
        let machine = clif(from);
        let v = if machine.bits() < 32 {
            if from.is_int() {
                self.b.ins().sextend(types::I32, v)
            } else {
                self.b.ins().uextend(types::I32, v)
            }
        } else {
            v
        };
        // The conversion to float16 and bfloat16 goes through float64.
        let narrow = matches!(to, DType::Float16 | DType::BFloat16);
        let v = match machine.bits() {
            64 if to == DType::BFloat16 => self.odd_bits(v, from.is_int()),
            _ => v,
        };
        let target = if narrow { types::F64 } else { clif(to) };
        let x = if from.is_int() {
            self.b.ins().fcvt_from_sint(target, v)
        } else {
            self.b.ins().fcvt_from_uint(target, v)
        };
        if narrow { self.float_to_float(x, DType::Float64, to) } else { Ok(x) }
    }

    fn int_to_int(&mut self, v: Value, from: DType, to: DType) -> Value {
        if to.is_bool() {
            return self.b.ins().icmp_imm_s(IntCC::NotEqual, v, 0);
        }
        let (a, b) = (clif(from), clif(to));
        match a.bits().cmp(&b.bits()) {
            std::cmp::Ordering::Equal => v,
            std::cmp::Ordering::Greater => self.b.ins().ireduce(b, v),
            std::cmp::Ordering::Less if from.is_int() => self.b.ins().sextend(b, v),
            std::cmp::Ordering::Less => self.b.ins().uextend(b, v),
        }
    }
}
