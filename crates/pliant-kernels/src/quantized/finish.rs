//! Finishes the sums of 8-bit products in place, tile by tile: the last step of a quantised layer.
//!
//! A sum is increased by a term of its column, converted to float32, multiplied by a factor of its
//! row, and finished like other results ([`Standard`]). It may then be requantised to a byte:
//! divided by a scale, rounded to even, shifted by a zero point, and clipped to two limits.

use std::ffi::c_void;
use std::ptr::null;
use std::slice::{from_raw_parts, from_raw_parts_mut};

use pliant_exec::abi::STATUS_OK;

use crate::epilogue::{Epilogue, EpilogueTile, Standard, pliant_epilogue_f32};
use crate::lanes::{Lanes, for_isa};
use pliant_machine::isa::isa;

/// [`pliant_epilogue_f32`] on tiles of int32, which are converted to float32 in place.
///
/// # Safety
/// As for [`pliant_epilogue_f32`].
pub unsafe extern "C" fn pliant_epilogue_int32(
    operands: *const c_void,
    tile: *const EpilogueTile,
) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        to_floats(&Finish::default(), &*tile);
        pliant_epilogue_f32(operands, tile)
    }
}

/// How sums are finished.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// Terms of the columns; null if there are none.
    pub sums: *const i32,
    /// Factors of the rows; null if all are 1.
    pub rows: *const f32,
    /// The stride of the factors: 0 if all rows share one.
    pub step: i64,
    /// The epilogue of the float32 results.
    pub standard: Standard,
    /// The conversion to bytes, which are then written instead.
    pub bytes: Option<Bytes>,
}

impl Default for Finish {
    fn default() -> Finish {
        Finish { sums: null(), rows: null(), step: 0, standard: Standard::default(), bytes: None }
    }
}

/// The conversion of results to bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The divisor of results.
    pub divisor: f32,
    /// The zero point, added after rounding.
    pub zero: f32,
    /// The minimum and the maximum.
    pub limits: (f32, f32),
    /// Whether bytes are signed.
    pub signed: bool,
    /// The destination of the bytes, and their row stride.
    pub out: (*mut u8, i64),
}

impl Finish {
    /// The same for results from a column on.
    pub(super) fn shifted(&self, column: usize) -> Finish {
        let mut finish = *self;
        let shift = |p: &mut *const f32| {
            if !p.is_null() {
                *p = p.wrapping_add(column);
            }
        };
        shift(&mut finish.standard.column_scale);
        shift(&mut finish.standard.bias);
        if !finish.sums.is_null() {
            finish.sums = finish.sums.wrapping_add(column);
        }
        if let Some(bytes) = &mut finish.bytes {
            bytes.out.0 = bytes.out.0.wrapping_add(column);
        }
        finish
    }

    /// The epilogue that a product calls.
    pub(super) fn epilogue(&self) -> Epilogue {
        Epilogue { function: finish, operands: (&raw const *self).cast() }
    }
}

/// [`crate::epilogue::EpilogueFn`] over a [`Finish`].
///
/// # Safety
/// As for [`pliant_epilogue_int32`]; the factors of the rows and terms of the columns are readable, the bytes writable.
unsafe extern "C" fn finish(operands: *const c_void, tile: *const EpilogueTile) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (f, tile) = (&*operands.cast::<Finish>(), &*tile);
        for_isa!(isa(), each_row(f: &Finish, tile: &EpilogueTile)).0(f, tile);
        let status = pliant_epilogue_f32((&raw const f.standard).cast(), tile);
        if let Some(bytes) = f.bytes.as_ref().filter(|_| status == STATUS_OK) {
            for_isa!(isa(), to_bytes(b: &Bytes, tile: &EpilogueTile)).0(bytes, tile);
        }
        status
    }
}

/// [`to_floats`] with the instructions of `L`.
///
/// # Safety
/// The machine has them, and the caller has enabled them; as for [`finish`].
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "says which instructions the compiler may use"
)]
#[inline(always)]
unsafe fn each_row<L: Lanes<Elem = f32>>(f: &Finish, tile: &EpilogueTile) {
    // SAFETY: guaranteed by the caller.
    unsafe { to_floats(f, tile) }
}

/// Converts the int32 of a tile to float32, each with the term of its column added and multiplied
/// by the factor of its row.
///
/// # Safety
/// As for [`finish`].
#[inline(always)]
unsafe fn to_floats(f: &Finish, t: &EpilogueTile) {
    for row in 0..t.rows {
        let columns = t.columns as usize;
        // SAFETY: guaranteed by the caller; both types have the same size.
        let data = unsafe {
            let data = t.data.cast::<i32>().offset((row * t.row_stride) as isize);
            from_raw_parts_mut(data, columns)
        };
        if !f.sums.is_null() {
            // SAFETY: guaranteed by the caller.
            let terms = unsafe { from_raw_parts(f.sums.offset(t.column as isize), columns) };
            for (x, term) in data.iter_mut().zip(terms) {
                *x = x.wrapping_add(*term);
            }
        }
        let factor = match f.rows.is_null() {
            true => 1.0,
            // SAFETY: guaranteed by the caller.
            false => unsafe { *f.rows.offset(((t.row + row) * f.step) as isize) },
        };
        for x in data {
            *x = (*x as f32 * factor).to_bits() as i32;
        }
    }
}

/// Writes the bytes of a finished tile.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them; as for [`finish`].
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "says which instructions the compiler may use"
)]
#[inline(always)]
unsafe fn to_bytes<L: Lanes<Elem = f32>>(b: &Bytes, t: &EpilogueTile) {
    let range = if b.signed { (-128.0, 127.0) } else { (0.0, 255.0) };
    for row in 0..t.rows {
        let columns = t.columns as usize;
        // SAFETY: guaranteed by the caller; these bytes are not accessed by others.
        let (from, to) = unsafe {
            let from = t.data.cast::<f32>().offset((row * t.row_stride) as isize);
            let to = b.out.0.offset(((t.row + row) * b.out.1 + t.column) as isize);
            (from_raw_parts(from, columns), from_raw_parts_mut(to, columns))
        };
        for (to, x) in to.iter_mut().zip(from) {
            *to = low_byte(b.value(*x), range);
        }
    }
}

impl Bytes {
    /// The byte of a result, as a float with an integer value.
    #[inline(always)]
    fn value(&self, x: f32) -> f32 {
        let x = round_even(x / self.divisor) + self.zero;
        let x = if x < self.limits.0 { self.limits.0 } else { x };
        if x > self.limits.1 { self.limits.1 } else { x }
    }
}

/// A float, clipped to a range of bytes and truncated; 0 for NaN. The conversion of a clipped value vectorises, unlike Rust's own,
/// which saturates at the limits of int32.
#[inline(always)]
fn low_byte(x: f32, (low, high): (f32, f32)) -> u8 {
    let x = if x < low { low } else { x };
    let x = if x > high { high } else { x };
    let x = if x.is_nan() { 0.0 } else { x };
    // SAFETY: the value is in the range of bytes.
    unsafe { x.to_int_unchecked::<i32>() as u8 }
}

/// Rounds to the nearest integer, ties to even, by adding and subtracting 2^23, where float32 has
/// no fraction bits. This vectorises for any instruction set.
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
    fn bytes_are_those_of_a_saturating_conversion() {
        let edges = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e30, -1e30];
        for x in edges.into_iter().chain((-1500..1500).map(|i| i as f32 / 5.0)) {
            assert_eq!(low_byte(x, (0.0, 255.0)), x as u8, "{x}");
            assert_eq!(low_byte(x, (-128.0, 127.0)), x as i8 as u8, "{x}");
        }
    }

    #[test]
    fn numbers_are_rounded_to_even() {
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
