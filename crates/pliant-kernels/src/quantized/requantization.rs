//! Requantization of the results of 8-bit matrix products and convolutions to 8 bits.
//!
//! Method: with AVX-512, one pass over the int32 sums of a tile, if the float32 epilogue only scales, adds a bias and clips. It
//! also subtracts the zero points. Tiles have rows of 16 to 64 columns, so that further passes would cost more for the start of
//! each row than for the arithmetic. Other epilogues are computed first, and a pass over their float32 results requantizes these.

use std::ptr::null;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use super::IntegerEpilogue;
#[cfg(target_arch = "x86_64")]
use super::avx512_requantization::SinglePass;
use crate::epilogue::EpilogueTile;
use crate::simd::Lanes;
use pliant_machine::isa::Isa;
#[cfg(target_arch = "x86_64")]
use pliant_machine::isa::Vectors;

/// The parameters for requantizing float32 results to 8-bit integers.
#[derive(Clone, Copy, Debug)]
pub struct Requantization {
    /// The number by which results are divided.
    pub divisor: f32,
    /// The zero point, which is added after rounding.
    pub zero: f32,
    /// The minimum and the maximum of the 8-bit results.
    pub limits: (f32, f32),
    /// Whether the results are int8 instead of uint8.
    pub signed: bool,
    /// The address to which the 8-bit results are written, and the stride between rows in bytes.
    pub out: (*mut u8, i64),
}

/// The zero points of the left operand of a product. Before their subtraction, each sum is too large by the zero point of its row
/// times the sum of its column of the right operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZeroPoints {
    /// The address of the zero points of the rows of the left operand; null if all are 0.
    pub zeros: *const i32,
    /// The distance between the zero points of adjacent rows, in elements.
    pub stride: i64,
    /// A number that is added to each zero point, because the micro-kernel adds the same number to each byte of the left operand:
    /// 128 if it makes signed bytes unsigned, otherwise 0.
    pub offset: i32,
    /// The address of the sums of the columns of the right operand; null if all zero points are 0.
    pub column_sums: *const i32,
}

impl ZeroPoints {
    /// The zero points of a left operand whose zero points are all 0.
    pub const NONE: ZeroPoints =
        ZeroPoints { zeros: null(), stride: 0, offset: 0, column_sums: null() };

    /// Returns the zero point of a row, plus the offset.
    ///
    /// # Safety
    /// The zero points are readable.
    pub unsafe fn of_row(&self, row: usize) -> i32 {
        // SAFETY: guaranteed by the caller.
        let zero = |p: *const i32| unsafe { *p.offset((row as i64 * self.stride) as isize) };
        if self.zeros.is_null() { self.offset } else { zero(self.zeros).wrapping_add(self.offset) }
    }
}

impl IntegerEpilogue {
    /// Corrects a tile of int32 sums for the zero points of the left operand and applies the epilogue, in a single pass. The
    /// correction subtracts the zero point of the row times the sum of the column of the right operand from each sum. Returns
    /// false, without any effect, if the results are not 8-bit integers, if the epilogue does more than scaling, adding and
    /// clipping, or if the machine does not have AVX-512 with byte instructions.
    ///
    /// # Safety
    /// The conditions of [`IntegerEpilogue::finish`] hold. The zero points and the column sums to which `zeros` points are
    /// readable.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "only x86-64 has AVX-512")
    )]
    pub(super) unsafe fn requantize(
        &self,
        isa: Isa,
        tile: &EpilogueTile,
        zeros: &ZeroPoints,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if isa.vectors() == Vectors::Avx512
            && std::arch::is_x86_feature_detected!("avx512bw")
            && let Some(pass) = SinglePass::of(self, zeros)
        {
            // SAFETY: guaranteed by the caller; the machine has the instructions.
            unsafe { pass.run(tile) };
            return true;
        }
        false
    }
}

/// Requantizes a tile of float32 results to 8-bit integers.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The conditions of
/// [`IntegerEpilogue::finish`] hold.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
pub(super) unsafe fn to_bytes<L: Lanes<Elem = f32>>(b: &Requantization, t: &EpilogueTile) {
    let limits = b.byte_limits();
    for row in 0..t.rows {
        // SAFETY: guaranteed by the caller; these bytes are not accessed by others.
        let (from, to) = unsafe {
            let line = (t.position.row + row) as i64 * b.out.1;
            let to = b.out.0.offset(line as isize).add(t.position.column);
            (from_raw_parts(t.row(row), t.columns), from_raw_parts_mut(to, t.columns))
        };
        for (to, x) in to.iter_mut().zip(from) {
            *to = clip_to_byte(round_even(*x / b.divisor) + b.zero, limits);
        }
    }
}

impl Requantization {
    /// Returns the limits to which results are clipped: [`Requantization::limits`] restricted to the range of int8 or uint8. A
    /// limit that is NaN has no effect.
    pub(super) fn byte_limits(&self) -> (f32, f32) {
        restrict(self.limits, self.type_range())
    }

    /// Returns the minimum and the maximum of the type of the results.
    pub(super) fn type_range(&self) -> (f32, f32) {
        if self.signed { (-128.0, 127.0) } else { (0.0, 255.0) }
    }
}

/// Restricts limits to a range. A limit that is NaN becomes the limit of the range.
pub(super) fn restrict((low, high): (f32, f32), range: (f32, f32)) -> (f32, f32) {
    (
        if low > range.0 { low.min(range.1) } else { range.0 },
        if high < range.1 { high.max(range.0) } else { range.1 },
    )
}

/// Clips a float to the limits, and truncates it to a byte; 0 for NaN. The limits are in the range
/// of the byte. The compiler can vectorize this function, unlike the saturating `as` conversion.
#[inline(always)]
fn clip_to_byte(x: f32, (low, high): (f32, f32)) -> u8 {
    let x = if x < low { low } else { x };
    let x = if x > high { high } else { x };
    let x = if x.is_nan() { 0.0 } else { x };
    // SAFETY: the value is in the range of bytes.
    unsafe { x.to_int_unchecked::<i32>() as u8 }
}

/// Rounds to the nearest integer, ties to even, by adding and subtracting 2^23: float32 numbers of
/// that size have no fraction bits. The compiler can vectorize this for any instruction set.
#[inline(always)]
fn round_even(x: f32) -> f32 {
    const WHOLE: f32 = (1 << 23) as f32;
    let size = x.abs();
    let whole = ((size + WHOLE) - WHOLE).copysign(x);
    if size < WHOLE { whole } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clip_to_byte_saturates() {
        let edges = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e30, -1e30];
        for x in edges.into_iter().chain((-1500..1500).map(|i| i as f32 / 5.0)) {
            assert_eq!(clip_to_byte(x, (0.0, 255.0)), x as u8, "{x}");
            assert_eq!(clip_to_byte(x, (-128.0, 127.0)), x as i8 as u8, "{x}");
        }
    }

    #[test]
    fn round_even_rounds_ties_to_even() {
        let edges = [0.0, 0.5, 1.5, 2.5, 0.49999997, 8388607.5, 8388608.0, 4194303.5, 1e30];
        for x in edges.into_iter().chain((0..2000).map(|i| i as f32 * 0.37 - 311.0)) {
            for x in [x, -x] {
                assert_eq!(round_even(x).to_bits(), x.round_ties_even().to_bits(), "{x}");
            }
        }
        assert!(round_even(f32::NAN).is_nan());
        assert_eq!(round_even(f32::NEG_INFINITY), f32::NEG_INFINITY);
    }
}
