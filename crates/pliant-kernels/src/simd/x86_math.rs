//! Implements [`super::MathLanes`], the primitive operations from which functions such as `exp` are built, for the vectors of
//! x86-64.

use std::arch::x86_64::*;

use super::x86_vectors::{F32x8, F32x16, F64x4, F64x8};
use super::{FromSingle, MathLanes};

/// Implements [`MathLanes`] for a vector type. `to` and `from` reinterpret floats as integers and back.
macro_rules! math {
    ($name:ident: $elem:ty, $int:ty, $set:ident, $set_int:ident, $sub:ident, $mul:ident, $div:ident,
    $sqrt:ident, $min:ident,
     $max:ident, $iadd:ident, $isub:ident, $iand:ident, $ior:ident, $shl:ident, $shr:ident, $to:ident, $from:ident,
    |$a:ident, $b:ident| $less:expr, $unordered:expr, |$mask:ident| $any:expr, |$m:ident, $x:ident, $y:ident|
    $blend:expr,
     $($scalef:ident)?) => {
        impl MathLanes for $name {
            #[inline(always)]
            unsafe fn constant(value: f64) -> Self {
                // SAFETY: the caller guarantees the instructions; likewise below.
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
            unsafe fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    let ($a, $b) = (a.0, b.0);
                    let $m = $less;
                    let ($x, $y) = (x.0, y.0);
                    $name($blend)
                }
            }
            #[inline(always)]
            unsafe fn keep_nan(x: Self, y: Self) -> Self {
                // SAFETY: as above.
                unsafe {
                    let ($a, $b) = (x.0, x.0);
                    let $m = $unordered;
                    let ($x, $y) = (x.0, y.0);
                    $name($blend)
                }
            }
            #[inline(always)]
            unsafe fn any_lt(a: Self, b: Self) -> bool {
                // SAFETY: as above.
                unsafe {
                    let ($a, $b) = (a.0, b.0);
                    let $mask = $less;
                    $any
                }
            }
            math!(@two $name, sub $sub, mul $mul, div $div, min2 $min, max2 $max);
            math!(@int $name, $to, $from, iadd $iadd, isub $isub, iand $iand, ior $ior);
            math!(@shift $name, $to, $from, ishl $shl, ishr $shr);
            $(
                #[inline(always)]
                unsafe fn scale(self, n: Self) -> Option<Self> {
                    // SAFETY: as above.
                    unsafe { Some($name($scalef(self.0, n.0))) }
                }
            )?
        }
    };
    (@two $name:ident, $($method:ident $op:ident),*) => {
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
    (@shift $name:ident, $to:ident, $from:ident, $($method:ident $op:ident),*) => {
        $(
            #[inline(always)]
            unsafe fn $method(self, by: u8) -> Self {
                // SAFETY: as above.
                unsafe { $name($from($op($to(self.0), _mm_cvtsi32_si128(i32::from(by))))) }
            }
        )*
    };
}

math!(
    F32x16: f32, i32, _mm512_set1_ps, _mm512_set1_epi32, _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps,
    _mm512_sqrt_ps, _mm512_min_ps, _mm512_max_ps,
    _mm512_add_epi32, _mm512_sub_epi32, _mm512_and_si512, _mm512_or_si512, _mm512_sll_epi32, _mm512_srl_epi32,
    _mm512_castps_si512, _mm512_castsi512_ps,
    |a, b| _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b), |mask| mask != 0,
    |m, x, y| _mm512_mask_blend_ps(m, y, x),
    _mm512_scalef_ps
);
math!(
    F64x8: f64, i64, _mm512_set1_pd, _mm512_set1_epi64, _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd,
    _mm512_sqrt_pd, _mm512_min_pd, _mm512_max_pd,
    _mm512_add_epi64, _mm512_sub_epi64, _mm512_and_si512, _mm512_or_si512, _mm512_sll_epi64, _mm512_srl_epi64,
    _mm512_castpd_si512, _mm512_castsi512_pd,
    |a, b| _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, b), |mask| mask != 0,
    |m, x, y| _mm512_mask_blend_pd(m, y, x),
    _mm512_scalef_pd
);
math!(
    F32x8: f32, i32, _mm256_set1_ps, _mm256_set1_epi32, _mm256_sub_ps, _mm256_mul_ps, _mm256_div_ps,
    _mm256_sqrt_ps, _mm256_min_ps, _mm256_max_ps,
    _mm256_add_epi32, _mm256_sub_epi32, _mm256_and_si256, _mm256_or_si256, _mm256_sll_epi32, _mm256_srl_epi32,
    _mm256_castps_si256, _mm256_castsi256_ps,
    |a, b| _mm256_cmp_ps::<_CMP_LT_OQ>(a, b), _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b), |mask|
    _mm256_movemask_ps(mask) != 0, |m, x, y| _mm256_blendv_ps(y, x, m),

);
math!(
    F64x4: f64, i64, _mm256_set1_pd, _mm256_set1_epi64x, _mm256_sub_pd, _mm256_mul_pd, _mm256_div_pd,
    _mm256_sqrt_pd, _mm256_min_pd, _mm256_max_pd,
    _mm256_add_epi64, _mm256_sub_epi64, _mm256_and_si256, _mm256_or_si256, _mm256_sll_epi64, _mm256_srl_epi64,
    _mm256_castpd_si256, _mm256_castsi256_pd,
    |a, b| _mm256_cmp_pd::<_CMP_LT_OQ>(a, b), _mm256_cmp_pd::<_CMP_UNORD_Q>(a, b), |mask|
    _mm256_movemask_pd(mask) != 0, |m, x, y| _mm256_blendv_pd(y, x, m),

);

macro_rules! from_single {
    ($name:ident: $load:ident, $widen:ident, $store:ident, $narrow:ident) => {
        impl FromSingle for $name {
            #[inline(always)]
            unsafe fn load_single(from: *const f32) -> Self {
                // SAFETY: guaranteed by the caller.
                unsafe { $name($widen($load(from))) }
            }
            #[inline(always)]
            unsafe fn store_single(self, to: *mut f32) {
                // SAFETY: guaranteed by the caller.
                unsafe { $store(to, $narrow(self.0)) }
            }
        }
    };
}

from_single!(F64x8: _mm256_loadu_ps, _mm512_cvtps_pd, _mm256_storeu_ps, _mm512_cvtpd_ps);
from_single!(F64x4: _mm_loadu_ps, _mm256_cvtps_pd, _mm_storeu_ps, _mm256_cvtpd_ps);
