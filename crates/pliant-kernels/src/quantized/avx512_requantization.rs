//! The requantization of int32 sums to 8 bits in a single pass, with AVX-512.
//!
//! Method: a tile is processed in blocks of up to four vectors of 16 columns. Everything that the rows of a column share is loaded
//! or computed once for a block ([`Columns`]); the loop over the rows contains only the arithmetic of one sum. All clipping before
//! the division is one pair of instructions, the conversion to integers rounds, and the instructions that narrow the integers of
//! four vectors to bytes saturate.

use std::arch::x86_64::*;

use super::IntegerEpilogue;
use super::requantization::{Requantization, ZeroPoints, restrict};
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
    /// The machine has AVX-512 with byte instructions. The conditions of [`IntegerEpilogue::requantize`] hold.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub unsafe fn run(&self, t: &EpilogueTile) {
        let e = self.epilogue;
        let rows_share_zero = self.zeros.zeros.is_null() || self.zeros.stride == 0;
        let rows_share_scale = e.row_scales.is_null() || e.row_scales_stride == 0;
        let to_byte = ToByte::of(&self.requantization, self.bounds);
        // SAFETY: guaranteed by the caller.
        unsafe {
            match (rows_share_zero && rows_share_scale, to_byte.divisor) {
                (true, Some(divisor)) => {
                    self.tile::<true>(t, |x| to_byte.divided_by(&divisor, x));
                }
                (false, Some(divisor)) => {
                    self.tile::<false>(t, |x| to_byte.divided_by(&divisor, x));
                }
                (_, None) => self.tile::<false>(t, |x| to_byte.by_division(x)),
            }
        }
    }

    /// Computes the 8-bit results of a tile. `ROWS_ALIKE` states that all rows have the same zero point and the same scale.
    /// `to_byte` converts float32 results to integers, which are clipped to the range of the 8-bit type afterwards.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn tile<const ROWS_ALIKE: bool>(
        &self,
        t: &EpilogueTile,
        to_byte: impl Fn(__m512) -> __m512i + Copy,
    ) {
        for from in (0..t.columns).step_by(64) {
            let count = t.columns - from;
            // SAFETY: guaranteed by the caller.
            unsafe {
                match count.div_ceil(16) {
                    1 => self.block::<1, ROWS_ALIKE>(t, (from, count), to_byte),
                    2 => self.block::<2, ROWS_ALIKE>(t, (from, count), to_byte),
                    3 => self.block::<3, ROWS_ALIKE>(t, (from, count), to_byte),
                    _ => self.block::<4, ROWS_ALIKE>(t, (from, count.min(64)), to_byte),
                }
            }
        }
    }

    /// Computes the 8-bit results of `count` columns of a tile, from column `from` of the tile on, in `V` vectors.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn block<const V: usize, const ROWS_ALIKE: bool>(
        &self,
        t: &EpilogueTile,
        (from, count): (usize, usize),
        to_byte: impl Fn(__m512) -> __m512i,
    ) {
        let (out, signed) = (self.requantization.out, self.requantization.signed);
        let column = t.position.column + from;
        let bytes_mask = u64::MAX >> (64 - count);
        let mask = |v: usize| (bytes_mask >> (16 * v)) as __mmask16;
        // SAFETY: guaranteed by the caller; elements that the masks exclude are not accessed.
        unsafe {
            let (zero, scale) = self.row(t.position.row);
            // Loops, because a function such as `array::from_fn` is not compiled for AVX-512, and so cannot be inlined with its
            // closure.
            let mut columns = [Columns::load(self, mask(0), column); V];
            let mut first = [columns[0].with_row(zero, scale); V];
            for v in 1..V {
                columns[v] = Columns::load(self, mask(v), column + 16 * v);
                first[v] = columns[v].with_row(zero, scale);
            }
            for row in 0..t.rows {
                let index = t.position.row + row;
                let sums = t.row(row).cast::<i32>().add(from);
                let (zero, scale) = if ROWS_ALIKE { (zero, scale) } else { self.row(index) };
                let mut integers = [_mm512_setzero_si512(); V];
                for v in 0..V {
                    let sum = _mm512_maskz_loadu_epi32(mask(v), sums.wrapping_add(16 * v));
                    let terms =
                        if ROWS_ALIKE { first[v] } else { columns[v].with_row(zero, scale) };
                    integers[v] = to_byte(columns[v].float_result(sum, &terms));
                }
                let bytes = narrow(integers, signed);
                let out = out.0.offset((index as i64 * out.1) as isize).add(column);
                match count == 64 {
                    true => _mm512_storeu_si512(out.cast(), bytes),
                    false => _mm512_mask_storeu_epi8(out.cast(), bytes_mask, bytes),
                }
            }
        }
    }

    /// Returns the zero point and the scale of a row.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold.
    unsafe fn row(&self, index: usize) -> (i32, f32) {
        let e = self.epilogue;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let scale = match e.row_scales.is_null() {
                true => 1.0,
                false => *e.row_scales.offset((index as i64 * e.row_scales_stride) as isize),
            };
            (self.zeros.of_row(index), scale)
        }
    }
}

/// Narrows the integers of up to four vectors to bytes, which are int8 if `signed` is set and otherwise uint8. Integers outside of
/// the range of the type saturate.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn narrow<const V: usize>(integers: [__m512i; V], signed: bool) -> __m512i {
    let vector = |v: usize| if v < V { integers[v] } else { _mm512_setzero_si512() };
    let words =
        (_mm512_packs_epi32(vector(0), vector(1)), _mm512_packs_epi32(vector(2), vector(3)));
    let bytes = match signed {
        true => _mm512_packs_epi16(words.0, words.1),
        false => _mm512_packus_epi16(words.0, words.1),
    };
    // Each block of 128 bits contains four bytes of each vector.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_epi32(order, bytes)
}

/// The parameters of the epilogue for 16 adjacent columns.
#[derive(Clone, Copy)]
struct Columns {
    /// The sums of the columns of the right operand; zeros if there are no zero points.
    sums: __m512i,
    /// The integers that are added to the sums.
    terms: __m512i,
    /// The factors of the columns; `None` if all are 1.
    scale: Option<__m512>,
    /// The numbers that are added to the scaled results; `None` if there are none.
    bias: Option<__m512>,
}

/// The parameters of the epilogue for one row of 16 adjacent columns.
#[derive(Clone, Copy)]
struct RowTerms {
    /// The integers that are added to the sums: the terms of the columns minus the correction for the zero point of the row.
    terms: __m512i,
    /// The factor of the row; `None` for 1.
    scale: Option<__m512>,
}

impl Columns {
    /// Loads the parameters of the columns from `column` on that the mask includes.
    ///
    /// # Safety
    /// The conditions of [`SinglePass::run`] hold.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(pass: &SinglePass<'_>, mask: __mmask16, column: usize) -> Columns {
        let integers = |p: *const i32| match p.is_null() {
            true => _mm512_setzero_si512(),
            // SAFETY: guaranteed by the caller.
            false => unsafe { _mm512_maskz_loadu_epi32(mask, p.add(column)) },
        };
        let floats = |p: *const f32| {
            // SAFETY: guaranteed by the caller.
            (!p.is_null()).then(|| unsafe { _mm512_maskz_loadu_ps(mask, p.add(column)) })
        };
        let e = pass.epilogue;
        Columns {
            sums: integers(pass.zeros.column_sums),
            terms: integers(e.terms),
            scale: floats(e.float.column_scale),
            bias: floats(e.float.bias),
        }
    }

    /// Returns the parameters for a row with the given zero point and scale.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn with_row(&self, zero: i32, scale: f32) -> RowTerms {
        let correction = _mm512_mullo_epi32(_mm512_set1_epi32(zero), self.sums);
        RowTerms {
            terms: _mm512_sub_epi32(self.terms, correction),
            scale: (scale != 1.0).then(|| _mm512_set1_ps(scale)),
        }
    }

    /// Returns the float32 results for a row of sums, before clipping.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn float_result(&self, sum: __m512i, row: &RowTerms) -> __m512 {
        let mut x = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, row.terms));
        if let Some(scale) = row.scale {
            x = _mm512_mul_ps(x, scale);
        }
        if let Some(scale) = self.scale {
            x = _mm512_mul_ps(x, scale);
        }
        if let Some(bias) = self.bias {
            x = _mm512_add_ps(x, bias);
        }
        x
    }
}

/// Clips vectors to limits. A NaN stays NaN, and a limit that is NaN has no effect.
#[derive(Clone, Copy)]
struct Clip {
    low: __m512,
    high: __m512,
}

impl Clip {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn to((low, high): (f32, f32)) -> Clip {
        Clip { low: _mm512_set1_ps(low), high: _mm512_set1_ps(high) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn apply(&self, x: __m512) -> __m512 {
        // A NaN in the second operand of these functions is the result.
        _mm512_min_ps(self.high, _mm512_max_ps(self.low, x))
    }
}

/// The conversion of float32 results to 8-bit integers: clipping, division, rounding, the zero point, clipping. NaN becomes 0.
struct ToByte {
    /// The divisor and the clipping before the division, if the division instruction is not needed.
    divisor: Option<Divisor>,
    /// The clipping of the float32 results. If there is a `divisor`, it includes the limit of the dividends.
    bounds: Clip,
    /// The number by which results are divided.
    divide_by: __m512,
    /// The zero point, as a float and as an integer.
    zero: (__m512, __m512i),
    /// The clipping of the results, and of the quotients before the zero point is added. The latter is `None` if the results may
    /// have all values of their type, to which [`narrow`] clips them.
    limits: (Clip, Option<Clip>),
}

impl ToByte {
    /// Returns the conversion for float32 results that are first clipped to `bounds`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn of(b: &Requantization, bounds: (f32, f32)) -> ToByte {
        let divisor = Divisor::of(b);
        let bounds = match &divisor {
            Some(divisor) => restrict(bounds, (-divisor.limit, divisor.limit)),
            None => bounds,
        };
        let (low, high) = b.byte_limits();
        let is_restricted = (low, high) != b.type_range();
        let quotient_limits = is_restricted.then(|| Clip::to((low - b.zero, high - b.zero)));
        ToByte {
            divisor,
            bounds: Clip::to(bounds),
            divide_by: _mm512_set1_ps(b.divisor),
            zero: (_mm512_set1_ps(b.zero), _mm512_set1_epi32(b.zero as i32)),
            limits: (Clip::to((low, high)), quotient_limits),
        }
    }

    /// Returns the integers for a vector of results, with the reciprocal of the divisor.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn divided_by(&self, divisor: &Divisor, x: __m512) -> __m512i {
        let mut quotient = divisor.divide(self.bounds.apply(x));
        let is_number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(quotient, quotient);
        if let Some(limits) = &self.limits.1 {
            // The limits are integers, so that clipping before and after rounding is the same.
            quotient = limits.apply(quotient);
        }
        let rounded = _mm512_cvtps_epi32(quotient);
        _mm512_maskz_add_epi32(is_number, rounded, self.zero.1)
    }

    /// Returns the integers for a vector of results, with the division instruction.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn by_division(&self, x: __m512) -> __m512i {
        let quotient = _mm512_div_ps(self.bounds.apply(x), self.divide_by);
        let rounded = _mm512_roundscale_ps::<_MM_FROUND_TO_NEAREST_INT>(quotient);
        let result = self.limits.0.apply(_mm512_add_ps(rounded, self.zero.0));
        let is_number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(result, result);
        _mm512_maskz_cvttps_epi32(is_number, result)
    }
}

/// A divisor of numbers that are then rounded and clipped to 8 bits. The division takes five fused multiply-adds instead of the
/// division instruction, which takes 16 cycles for a vector of AVX-512.
#[derive(Clone, Copy)]
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
        let (low, high) = b.byte_limits();
        let are_integers = [b.zero, low, high].iter().all(|x| x.fract() == 0.0);
        let is_exact =
            (1e-30..=1e30).contains(&size) && b.zero.abs() <= Divisor::MAX_ZERO && are_integers;
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
