//! Sorted elements with their original indices: sorting, and selection if only a part of the order
//! is needed.
//!
//! Equal elements keep their order. NaN comes after every number in either direction, and both
//! zeros are equal. Each key becomes an integer with the required order, with the index in the
//! lower bits. These pairs are distinct, so an unstable sort of integers gives the stable order.

use half::{bf16, f16};
use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};

/// An element type that can be sorted.
pub trait Key: Copy {
    /// Whether [`Key::rank`] fits 32 bits.
    const NARROW: bool;

    /// An integer that increases with the element; that of NaN is the largest.
    fn rank(self, descending: bool) -> u64;
}

macro_rules! integers {
    ($($ty:ty, $flip:expr, $narrow:expr;)*) => {$(
        impl Key for $ty {
            const NARROW: bool = $narrow;

            fn rank(self, descending: bool) -> u64 {
                let rank = (self ^ $flip) as u64 & (u64::MAX >> (64 - <$ty>::BITS));
                if descending { !rank & (u64::MAX >> (64 - <$ty>::BITS)) } else { rank }
            }
        }
    )*};
}

integers! {
    i8, i8::MIN, true;
    i16, i16::MIN, true;
    i32, i32::MIN, true;
    i64, i64::MIN, false;
    u8, 0, true;
    u16, 0, true;
    u32, 0, true;
    u64, 0, false;
}

macro_rules! floats {
    ($($ty:ty, $bits:ty, $narrow:expr;)*) => {$(
        impl Key for $ty {
            const NARROW: bool = $narrow;

            fn rank(self, descending: bool) -> u64 {
                if self.is_nan() {
                    return <$bits>::MAX.into();
                }
                let sign: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                let bits = if bits == sign { 0 } else { bits };
                let rank = if bits & sign == 0 { bits | sign } else { !bits };
                u64::from(if descending { !rank } else { rank })
            }
        }
    )*};
}

floats! {
    f16, u16, true;
    bf16, u16, true;
    f32, u32, true;
    f64, u64, false;
}

/// Moves the records of ranks `from .. to` to their sorted positions.
fn arrange<R: Ord>(records: &mut [R], from: usize, to: usize) {
    let mut part = records;
    if to < part.len() {
        let (low, _, _) = part.select_nth_unstable(to);
        part = low;
    }
    if from > 0 && from < part.len() {
        let (_, _, high) = part.select_nth_unstable(from - 1);
        part = high;
    } else if from > 0 {
        return;
    }
    part.sort_unstable();
}

/// Sorts a row. `record` combines a rank and an index into a sortable value; `place` extracts
/// the index.
///
/// # Safety
/// As for [`order`].
unsafe fn sorted<K: Key, R: Ord>(
    (keys, places, n): (*mut K, *mut i64, usize),
    (from, to, descending): (usize, usize, bool),
    record: impl Fn(u64, usize) -> R,
    place: impl Fn(&R) -> usize,
) -> i64 {
    let (mut records, mut values) = (Vec::new(), Vec::new());
    if records.try_reserve_exact(n).is_err() || values.try_reserve_exact(to - from).is_err() {
        return STATUS_NO_MEMORY;
    }
    // SAFETY: the row has `n` elements.
    records.extend((0..n).map(|i| record(unsafe { *keys.add(i) }.rank(descending), i)));
    arrange(&mut records, from, to);
    // SAFETY: indices are below `n`.
    values.extend(records[from..to].iter().map(|r| unsafe { *keys.add(place(r)) }));
    for (i, (r, value)) in (from..to).zip(records[from..to].iter().zip(values)) {
        // SAFETY: `to` is at most `n`.
        unsafe {
            *places.add(i) = place(r) as i64;
            *keys.add(i) = value;
        }
    }
    STATUS_OK
}

/// Moves the elements of ranks `from .. to` to these positions of the row, and writes their
/// original indices. The contents of other positions are unspecified.
///
/// # Safety
/// `keys` and `places` are valid for `n` elements.
unsafe fn order<K: Key>(
    n: i64,
    from: i64,
    to: i64,
    descending: i64,
    keys: *mut K,
    places: *mut i64,
) -> i64 {
    let n = n.max(0) as usize;
    let to = to.clamp(0, n as i64) as usize;
    let from = from.clamp(0, to as i64) as usize;
    let part = (from, to, descending != 0);
    if n <= 1 << 32 && K::NARROW {
        let record = |rank: u64, i: usize| rank << 32 | i as u64;
        // SAFETY: guaranteed by the caller.
        return unsafe { sorted((keys, places, n), part, record, |r| (r & 0xffff_ffff) as usize) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { sorted((keys, places, n), part, |rank, i| (rank, i), |r| r.1) }
}

macro_rules! entries {
    ($($name:ident: $ty:ty;)*) => {$(
        /// Called by generated code with the length of the row, the range of ranks, whether the
        /// order is descending, the elements and the indices. Returns a kernel status.
        ///
        /// # Safety
        /// Both addresses are valid for the number of elements of the row.
        pub unsafe extern "C" fn $name(
            _runtime: *const KernelRuntime,
            n: i64,
            from: i64,
            to: i64,
            descending: i64,
            keys: *mut $ty,
            places: *mut i64,
        ) -> i64 {
            // SAFETY: guaranteed by the caller.
            unsafe { order(n, from, to, descending, keys, places) }
        }
    )*};
}

entries! {
    order_i8: i8;
    order_i16: i16;
    order_i32: i32;
    order_i64: i64;
    order_u8: u8;
    order_u16: u16;
    order_u32: u32;
    order_u64: u64;
    order_f16: f16;
    order_bf16: bf16;
    order_f32: f32;
    order_f64: f64;
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::fmt::Debug;

    use super::*;

    /// Compares the range `from .. to` of the stable order by comparison with the kernel's result.
    fn check<K: Key + Debug>(row: &[K], less: impl Fn(&K, &K) -> bool, descending: bool) {
        let mut want: Vec<usize> = (0..row.len()).collect();
        want.sort_by(|&a, &b| {
            let (a, b) = (&row[a], &row[b]);
            match (less(a, b), less(b, a)) {
                (true, _) => Ordering::Less,
                (_, true) => Ordering::Greater,
                _ => Ordering::Equal,
            }
        });
        let n = row.len();
        for (from, to) in [(0, n), (0, n / 2), (n / 2, (n / 2 + 1).min(n)), (n / 3, n), (n, n)] {
            let (mut keys, mut places) = (row.to_vec(), vec![-1; n]);
            let [n, from64, to64] = [n, from, to].map(|v| v as i64);
            // SAFETY: both have as many elements as the row.
            let status = unsafe {
                order(n, from64, to64, descending.into(), keys.as_mut_ptr(), places.as_mut_ptr())
            };
            assert_eq!(status, STATUS_OK);
            let found: Vec<usize> = places[from..to].iter().map(|&p| p as usize).collect();
            assert_eq!(found, want[from..to], "{row:?} {from}..{to} descending {descending}");
            let moved: Vec<K> = found.iter().map(|&p| row[p]).collect();
            assert_eq!(format!("{:?}", &keys[from..to]), format!("{moved:?}"));
        }
    }

    /// Numbers with repetitions, without a pattern.
    fn numbers(n: usize) -> Vec<i64> {
        (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as i64 - 16).collect()
    }

    #[test]
    fn rows_of_every_length_are_ordered() {
        for n in [0, 1, 2, 3, 7, 33, 200] {
            let row = numbers(n);
            for descending in [false, true] {
                let less = |a: i64, b: i64| if descending { a > b } else { a < b };
                check(&row, |a, b| less(*a, *b), descending);
                let small: Vec<i8> = row.iter().map(|&v| v as i8).collect();
                check(&small, |a, b| less((*a).into(), (*b).into()), descending);
                let large: Vec<u64> = row.iter().map(|&v| v.unsigned_abs() << 59).collect();
                check(&large, |a, b| if descending { a > b } else { a < b }, descending);
            }
        }
    }

    #[test]
    fn nan_is_last_and_zeros_are_equal() {
        let specials = [f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN, 1.0];
        let row: Vec<f32> = (0..40).map(|i| specials[i * 5 % 7]).collect();
        for descending in [false, true] {
            let less = |a: f32, b: f32| {
                b.is_nan() && !a.is_nan() || if descending { a > b } else { a < b }
            };
            check(&row, |a, b| less(*a, *b), descending);
            let half: Vec<f16> = row.iter().map(|&v| f16::from_f32(v)).collect();
            check(&half, |a, b| less(a.to_f32(), b.to_f32()), descending);
            let wide: Vec<f64> = row.iter().map(|&v| v.into()).collect();
            check(&wide, |a, b| less(*a as f32, *b as f32), descending);
        }
    }
}
