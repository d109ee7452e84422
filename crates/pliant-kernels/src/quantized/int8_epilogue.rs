//! The epilogue of 8-bit matrix products and convolutions.
//!
//! The epilogue adds an integer term for the column to each sum, converts the sum to float32,
//! multiplies it by a factor for the row, and applies the float32 [`Epilogue`]. The result may then
//! be requantized to 8 bits: divided by a scale, rounded to nearest, ties to even, shifted by a
//! zero point, and clipped.

use std::ptr::null;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use super::requantization::{Requantization, ZeroPoints, to_bytes};
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
    /// The address of the factors by which the sums are multiplied after their conversion to float32, one for each row;
    /// null if all are 1.
    pub row_scales: *const f32,
    /// The distance between the factors of adjacent rows, in elements: 0 if all rows share one
    /// factor.
    pub row_scales_stride: i64,
    /// The epilogue in float32 (column scales, bias, activation), which is applied after the factors of the rows.
    pub float: Epilogue,
    /// The parameters for requantizing results to 8-bit integers; `None` if the results are
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

    /// Applies the epilogue to a tile of int32 sums. They become float32 in place, unless the results are 8-bit integers.
    ///
    /// # Safety
    /// The conditions of [`Epilogue::finish`] hold, with elements of int32. The factors of the rows
    /// and the terms of the columns are readable; the 8-bit results are writable.
    pub(super) unsafe fn finish(&self, isa: Isa, tile: &EpilogueTile) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.requantize(isa, tile, &ZeroPoints::NONE) {
                return;
            }
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
