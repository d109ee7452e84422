//! Implements [`super::MathLanes`], the primitive operations from which functions such as `exp` are built, for the vectors of
//! AArch64.

use std::arch::aarch64::*;

use super::neon_vectors::{F32x4, F64x2};
use super::{FromSingle, MathLanes};

macro_rules! math {
    ($name:ident: $elem:ty, $int:ty, $signed:ty, $set:ident, $set_int:ident, $sub:ident, $mul:ident, $div:ident, $sqrt:ident,
     $less:ident, $equal:ident, $blend:ident, $lane_max:expr, $iadd:ident, $isub:ident, $iand:ident, $ior:ident, $shl:ident,
     $set_signed:ident, $to:ident, $from:ident) => {
        impl MathLanes for $name {
            #[inline(always)]
            unsafe fn constant(value: f64) -> Self {
                // SAFETY: every AArch64 machine has these instructions; likewise below.
                unsafe { $name($set(value as $elem)) }
            }
            #[inline(always)]
            unsafe fn pattern(bits: i64) -> Self {
                // SAFETY: as above.
                unsafe { $name($from($set_int(bits as $int))) }
            }
            #[inline(always)]
            unsafe fn sqrt(self) -> Self {
                // SAFETY: as above.
                unsafe { $name($sqrt(self.0)) }
            }
            #[inline(always)]
            unsafe fn min2(self, x: Self) -> Self {
                // SAFETY: as above. `vmin` treats NaN differently.
                unsafe { Self::select_lt(self, x, self, x) }
            }
            #[inline(always)]
            unsafe fn max2(self, x: Self) -> Self {
                // SAFETY: as above.
                unsafe { Self::select_lt(x, self, self, x) }
            }
            #[inline(always)]
            unsafe fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($blend($less(a.0, b.0), x.0, y.0)) }
            }
            #[inline(always)]
            unsafe fn keep_nan(x: Self, y: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($blend($equal(x.0, x.0), y.0, x.0)) }
            }
            #[inline(always)]
            unsafe fn any_lt(a: Self, b: Self) -> bool {
                // SAFETY: as above.
                unsafe { $lane_max($less(a.0, b.0)) != 0 }
            }
            #[inline(always)]
            unsafe fn ishl(self, by: u8) -> Self {
                // SAFETY: as above.
                unsafe { $name($from($shl($to(self.0), $set_signed(by as $signed)))) }
            }
            #[inline(always)]
            unsafe fn ishr(self, by: u8) -> Self {
                // SAFETY: as above; a negative distance shifts right.
                unsafe { $name($from($shl($to(self.0), $set_signed(-(by as $signed))))) }
            }
            math!(@float $name, sub $sub, mul $mul, div $div);
            math!(@int $name, $to, $from, iadd $iadd, isub $isub, iand $iand, ior $ior);
        }
    };
    (@float $name:ident, $($method:ident $op:ident),*) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, x: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($op(self.0, x.0)) }
            }
        )*
    };
    (@int $name:ident, $to:ident, $from:ident, $($method:ident $op:ident),*) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, x: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($from($op($to(self.0), $to(x.0)))) }
            }
        )*
    };
}

/// Returns a nonzero number if any lane of the mask is nonzero. (NEON has no `vmaxvq` for 64-bit
/// lanes.)
#[inline(always)]
unsafe fn any_lane(mask: uint64x2_t) -> u64 {
    // SAFETY: as above.
    unsafe { vgetq_lane_u64::<0>(mask) | vgetq_lane_u64::<1>(mask) }
}

math!(
    F32x4: f32, u32, i32, vdupq_n_f32, vdupq_n_u32, vsubq_f32, vmulq_f32, vdivq_f32, vsqrtq_f32, vcltq_f32, vceqq_f32, vbslq_f32,
    vmaxvq_u32, vaddq_u32, vsubq_u32, vandq_u32, vorrq_u32, vshlq_u32, vdupq_n_s32, vreinterpretq_u32_f32, vreinterpretq_f32_u32
);
math!(
    F64x2: f64, u64, i64, vdupq_n_f64, vdupq_n_u64, vsubq_f64, vmulq_f64, vdivq_f64, vsqrtq_f64, vcltq_f64, vceqq_f64, vbslq_f64,
    any_lane, vaddq_u64, vsubq_u64, vandq_u64, vorrq_u64, vshlq_u64, vdupq_n_s64, vreinterpretq_u64_f64, vreinterpretq_f64_u64
);

impl FromSingle for F64x2 {
    #[inline(always)]
    unsafe fn load_single(from: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { F64x2(vcvt_f64_f32(vld1_f32(from))) }
    }
    #[inline(always)]
    unsafe fn store_single(self, to: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { vst1_f32(to, vcvt_f32_f64(self.0)) }
    }
}
