//! The epilogue of 8-bit matrix products and convolutions.
//!
//! The epilogue adds an integer term for the column to each sum, converts the sum to float32,
//! multiplies it by a factor for the row, and applies the float32 [`Epilogue`]. The result may then
//! be requantised to 8 bits: divided by a scale, rounded to nearest, ties to even, shifted by a
//! zero point, and clipped.

use std::ptr::null;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use crate::epilogue::{Epilogue, EpilogueTile};
use crate::simd::{Lanes, for_isa};
use pliant_machine::isa::Isa;

/// The epilogue of int32 sums. The results are float32 numbers, which replace the sums in memory,
/// or 8-bit integers.
#[derive(Clone, Copy, Debug)]
pub struct IntegerEpilogue {
    /// The address of the integers that are added to the sums, one for each column; null if there
    /// are none.
    pub terms: *const i32,
    /// The address of the factors by which the sums are multiplied, one for each row; null if all
    /// are 1.
    pub row_scales: *const f32,
    /// The distance between the factors of adjacent rows, in elements: 0 if all rows share one
    /// factor.
    pub row_scales_stride: i64,
    /// The epilogue that is applied to the results as float32.
    pub float: Epilogue,
    /// The parameters for requantising results to 8-bit integers; `None` if the results are
    /// float32.
    pub requantization: Option<Requantization>,
}

impl Default for IntegerEpilogue {
    /// The epilogue that only converts sums to float32.
    fn default() -> IntegerEpilogue {
        IntegerEpilogue {
            terms: null(),
            row_scales: null(),
            row_scales_stride: 0,
            float: Epilogue::default(),
            requantization: None,
        }
    }
}

/// The parameters for requantising float32 results to 8-bit integers.
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

impl IntegerEpilogue {
    /// Returns the epilogue for the part of the results that starts at column `column`, such as the
    /// filters of one group of a convolution.
    pub(super) fn at_column(&self, column: usize) -> IntegerEpilogue {
        let mut epilogue = *self;
        let shift = |p: &mut *const f32| {
            if !p.is_null() {
                *p = p.wrapping_add(column);
            }
        };
        shift(&mut epilogue.float.column_scale);
        shift(&mut epilogue.float.bias);
        if !epilogue.terms.is_null() {
            epilogue.terms = epilogue.terms.wrapping_add(column);
        }
        if let Some(bytes) = &mut epilogue.requantization {
            bytes.out.0 = bytes.out.0.wrapping_add(column);
        }
        epilogue
    }

    /// Applies the epilogue to a tile of int32 sums, which become float32 in place.
    ///
    /// # Safety
    /// The conditions of [`Epilogue::finish`] hold, with elements of int32. The factors of the rows
    /// and the terms of the columns are readable; the 8-bit results are writable.
    pub(super) unsafe fn finish(&self, isa: Isa, tile: &EpilogueTile) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            for_isa!(isa, to_floats(e: &IntegerEpilogue, tile: &EpilogueTile)).0(self, tile);
            self.float.finish(isa, tile);
            if let Some(bytes) = &self.requantization {
                for_isa!(isa, to_bytes(b: &Requantization, tile: &EpilogueTile)).0(bytes, tile);
            }
        }
    }
}

/// Converts the sums of a tile to float32: adds the terms of the columns, and multiplies by the factors of the rows.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The conditions of
/// [`IntegerEpilogue::finish`] hold.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
unsafe fn to_floats<L: Lanes<Elem = f32>>(e: &IntegerEpilogue, t: &EpilogueTile) {
    for row in 0..t.rows {
        // SAFETY: guaranteed by the caller; both types have the same size.
        let data = unsafe { from_raw_parts_mut(t.row(row).cast::<i32>(), t.columns) };
        if !e.terms.is_null() {
            // SAFETY: guaranteed by the caller.
            let terms = unsafe { from_raw_parts(e.terms.add(t.position.column), t.columns) };
            for (x, term) in data.iter_mut().zip(terms) {
                *x = x.wrapping_add(*term);
            }
        }
        let factor = match e.row_scales.is_null() {
            true => 1.0,
            // SAFETY: guaranteed by the caller.
            false => unsafe {
                let row = (t.position.row + row) as i64;
                *e.row_scales.offset((row * e.row_scales_stride) as isize)
            },
        };
        for x in data {
            *x = (*x as f32 * factor).to_bits() as i32;
        }
    }
}

/// Requantises a tile of float32 results to 8-bit integers.
///
/// # Safety
/// The conditions of [`to_floats`] hold.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
unsafe fn to_bytes<L: Lanes<Elem = f32>>(b: &Requantization, t: &EpilogueTile) {
    let range = if b.signed { (-128.0, 127.0) } else { (0.0, 255.0) };
    for row in 0..t.rows {
        // SAFETY: guaranteed by the caller; these bytes are not accessed by others.
        let (from, to) = unsafe {
            let line = (t.position.row + row) as i64 * b.out.1;
            let to = b.out.0.offset(line as isize).add(t.position.column);
            (from_raw_parts(t.row(row), t.columns), from_raw_parts_mut(to, t.columns))
        };
        for (to, x) in to.iter_mut().zip(from) {
            *to = clip_to_byte(b.value(*x), range);
        }
    }
}

impl Requantization {
    /// Requantises the result `x`. Returns the 8-bit integer as a float.
    #[inline(always)]
    fn value(&self, x: f32) -> f32 {
        let x = round_even(x / self.divisor) + self.zero;
        let x = if x < self.limits.0 { self.limits.0 } else { x };
        if x > self.limits.1 { self.limits.1 } else { x }
    }
}

/// Clips a float to the limits, and truncates it to a byte; 0 for NaN. The compiler can vectorise
/// this function, unlike the saturating `as` conversion.
#[inline(always)]
fn clip_to_byte(x: f32, (low, high): (f32, f32)) -> u8 {
    let x = if x < low { low } else { x };
    let x = if x > high { high } else { x };
    let x = if x.is_nan() { 0.0 } else { x };
    // SAFETY: the value is in the range of bytes.
    unsafe { x.to_int_unchecked::<i32>() as u8 }
}

/// Rounds to the nearest integer, ties to even, by adding and subtracting 2^23: float32 numbers of
/// that size have no fraction bits. The compiler can vectorise this for any instruction set.
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
