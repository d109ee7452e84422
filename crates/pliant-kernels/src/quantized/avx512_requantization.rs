//! The requantization of int32 sums to 8 bits in a single pass, with AVX-512.

use std::arch::x86_64::*;

use super::IntegerEpilogue;
use super::requantization::{Requantization, ZeroPoints};
use crate::epilogue::EpilogueTile;

/// The operands of a single pass that applies the epilogue to the int32 sums of a tile and requantizes the results to 8 bits.
pub(super) struct SinglePass<'a> {
    epilogue: &'a IntegerEpilogue,
    requantization: Requantization,
    /// The limits of the float32 results before the requantization.
    bounds: (f32, f32),
    zeros: ZeroPoints,
}

impl<'a> SinglePass<'a> {
    /// Returns the operands of the single pass; `None` if the results are not 8-bit integers, or if the epilogue does more than
    /// scaling, adding and clipping.
    pub fn of(epilogue: &'a IntegerEpilogue, zeros: &ZeroPoints) -> Option<SinglePass<'a>> {
        let requantization = epilogue.requantization?;
        let bounds = epilogue.float.clip_bounds()?;
        let applies = epilogue.float.residual.is_none();
        applies.then_some(SinglePass { epilogue, requantization, bounds, zeros: *zeros })
    }

    /// Computes the 8-bit results of a tile from its sums.
    ///
    /// # Safety
    /// The machine has AVX-512. The conditions of [`IntegerEpilogue::requantize`] hold.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn run(&self, t: &EpilogueTile) {
        let p = self;
        let (e, b) = (p.epilogue, &p.requantization);
        let divisor = Divisor::of(b);
        let limits = b.byte_limits();
        // A NaN in the second operand of these functions is the result.
        let clip = |x: __m512, (low, high): (f32, f32)| {
            _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x))
        };
        for row in 0..t.rows {
            let index = t.position.row + row;
            // SAFETY: guaranteed by the caller.
            let (zero, scale) = unsafe {
                let scale = match e.row_scales.is_null() {
                    true => 1.0,
                    false => *e.row_scales.offset((index as i64 * e.row_scales_stride) as isize),
                };
                (_mm512_set1_epi32(p.zeros.of_row(index)), _mm512_set1_ps(scale))
            };
            let (sums, line) = (t.row(row).cast::<i32>(), index as i64 * b.out.1);
            for from in (0..t.columns).step_by(16) {
                let mask = u16::MAX >> 16usize.saturating_sub(t.columns - from);
                let column = t.position.column + from;
                // SAFETY: guaranteed by the caller; elements that the mask excludes are not accessed.
                unsafe {
                    let integers = |p: *const i32| _mm512_maskz_loadu_epi32(mask, p.add(column));
                    let floats = |p: *const f32| _mm512_maskz_loadu_ps(mask, p.add(column));
                    let mut sum = _mm512_maskz_loadu_epi32(mask, sums.add(from));
                    if !p.zeros.column_sums.is_null() {
                        let product = _mm512_mullo_epi32(zero, integers(p.zeros.column_sums));
                        sum = _mm512_sub_epi32(sum, product);
                    }
                    if !e.terms.is_null() {
                        sum = _mm512_add_epi32(sum, integers(e.terms));
                    }
                    let mut x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
                    if !e.float.column_scale.is_null() {
                        x = _mm512_mul_ps(x, floats(e.float.column_scale));
                    }
                    if !e.float.bias.is_null() {
                        x = _mm512_add_ps(x, floats(e.float.bias));
                    }
                    x = clip(x, p.bounds);
                    let quotient = match &divisor {
                        Some(divisor) => divisor.divide(clip(x, (-divisor.limit, divisor.limit))),
                        None => _mm512_div_ps(x, _mm512_set1_ps(b.divisor)),
                    };
                    let rounded = _mm512_roundscale_ps::<_MM_FROUND_TO_NEAREST_INT>(quotient);
                    let result = clip(_mm512_add_ps(rounded, _mm512_set1_ps(b.zero)), limits);
                    let is_number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(result, result);
                    let bytes = _mm512_maskz_cvttps_epi32(is_number, result);
                    let out = b.out.0.offset(line as isize).add(column);
                    if mask == u16::MAX {
                        // Takes less time than the conversion with a masked store.
                        _mm_storeu_si128(out.cast(), _mm512_cvtepi32_epi8(bytes));
                    } else {
                        _mm512_mask_cvtepi32_storeu_epi8(out.cast(), mask, bytes);
                    }
                }
            }
        }
    }
}

/// A divisor of numbers that are then rounded and clipped to 8 bits. The division takes five fused multiply-adds instead of the
/// division instruction, which takes 16 cycles for a vector of AVX-512.
struct Divisor {
    divisor: f32,
    reciprocal: f32,
    /// The maximum magnitude of a dividend. The caller clips larger dividends to this limit, which does not change the results,
    /// because their quotients are clipped to 8 bits in any case.
    limit: f32,
}

impl Divisor {
    /// The maximum magnitude of a zero point for which [`Divisor`] is used. Quotients beyond twice this number saturate for any
    /// such zero point.
    const MAX_ZERO: f32 = 512.0;

    /// Returns the divisor; `None` if results could differ from those of the division instruction.
    fn of(b: &Requantization) -> Option<Divisor> {
        let size = b.divisor.abs();
        let is_exact = (1e-30..=1e30).contains(&size) && b.zero.abs() <= Divisor::MAX_ZERO;
        let limit = 2.0 * Divisor::MAX_ZERO * size;
        is_exact.then_some(Divisor { divisor: b.divisor, reciprocal: 1.0 / b.divisor, limit })
    }

    /// Returns `x / divisor` for dividends within the limit. The quotient is rounded as by the division
    /// instruction if its magnitude is at least 2^-20; smaller quotients stay small.
    ///
    /// Method: P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990: a quotient with an
    /// error of at most one unit in the last place is corrected by its exact remainder. The first correction brings the estimate to
    /// this accuracy.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn divide(&self, x: __m512) -> __m512 {
        let divisor = _mm512_set1_ps(self.divisor);
        let reciprocal = _mm512_set1_ps(self.reciprocal);
        let correct = |q: __m512| {
            let remainder = _mm512_fnmadd_ps(divisor, q, x);
            _mm512_fmadd_ps(remainder, reciprocal, q)
        };
        correct(correct(_mm512_mul_ps(x, reciprocal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requantization(divisor: f32, zero: f32) -> Requantization {
        let out = (std::ptr::null_mut(), 0);
        Requantization { divisor, zero, limits: (0.0, 255.0), signed: false, out }
    }

    /// Returns the quotient of `x` and the divisor for the tests. `x` is first clipped to the limit of the divisor, as
    /// [`SinglePass::run`] does.
    fn quotient(divisor: &Divisor, x: f32) -> f32 {
        let x = if x.is_nan() { x } else { x.clamp(-divisor.limit, divisor.limit) };
        let mut lanes = [0.0; 16];
        // SAFETY: the callers have checked that the machine has AVX-512; the array has 16 lanes.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), divisor.divide(_mm512_set1_ps(x))) };
        lanes[7]
    }

    /// Whether the machine has AVX-512. Other machines cannot execute these tests, and never run the code that they test.
    fn has_avx512() -> bool {
        pliant_machine::isa::isa().vectors() == pliant_machine::isa::Vectors::Avx512
    }

    #[test]
    fn quotients_equal_those_of_the_division_instruction() {
        if !has_avx512() {
            return;
        }
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            1.0 + (state >> 9) as f32 / (1 << 23) as f32
        };
        for exponent in [-90, -20, -3, 0, 1, 17, 90] {
            let size = random() * 2f32.powi(exponent);
            for sign in [1.0, -1.0] {
                let divisor =
                    Divisor::of(&requantization(sign * size, 3.0)).expect("a normal size");
                let check = |x: f32| {
                    let (got, want) = (quotient(&divisor, x), x / (sign * size));
                    assert_eq!(got.to_bits(), want.to_bits(), "{x:e} / {size:e}");
                };
                for step in 0..200_000 {
                    let x = random() * size * 2f32.powi(step % 30 - 20);
                    check(x);
                    check(-x);
                }
                // Quotients at or near the midpoint of two integers: an error in the last bit changes how they round.
                (0..511).for_each(|half| check((half as f32 + 0.5) * size));
            }
        }
    }

    #[test]
    fn extreme_dividends_are_clipped_and_extreme_divisors_rejected() {
        if !has_avx512() {
            return;
        }
        let divisor = Divisor::of(&requantization(0.5, 3.0)).expect("a normal size");
        for (x, want) in [(f32::INFINITY, 1024.0), (-3e38, -1024.0), (0.0, 0.0), (1e-44, 0.0)] {
            assert_eq!(quotient(&divisor, x).round(), want, "{x:e}");
        }
        assert!(quotient(&divisor, f32::NAN).is_nan());
        for size in [0.0, 1e-40, 1e-31, 1e31, f32::INFINITY, f32::NAN] {
            assert!(Divisor::of(&requantization(size, 3.0)).is_none(), "{size:e}");
        }
        assert!(Divisor::of(&requantization(0.5, 600.0)).is_none());
    }
}
