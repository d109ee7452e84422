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
    /// The type of ranks.
    type Rank: Copy + Ord + Into<u64>;

    /// Whether [`Key::rank`] fits 32 bits.
    const NARROW: bool = size_of::<Self::Rank>() <= 4;

    /// An integer that grows with the element; that of NaN is the largest.
    fn rank(self, descending: bool) -> Self::Rank;
}

macro_rules! integers {
    ($($ty:ty => $rank:ty, $flip:expr;)*) => {$(
        impl Key for $ty {
            type Rank = $rank;

            #[inline(always)]
            fn rank(self, descending: bool) -> $rank {
                let rank = (self ^ $flip) as $rank;
                if descending { !rank } else { rank }
            }
        }
    )*};
}

integers! {
    i8 => u8, i8::MIN;
    i16 => u16, i16::MIN;
    i32 => u32, i32::MIN;
    i64 => u64, i64::MIN;
    u8 => u8, 0;
    u16 => u16, 0;
    u32 => u32, 0;
    u64 => u64, 0;
}

macro_rules! floats {
    ($($ty:ty => $bits:ty, $infinity:expr;)*) => {$(
        impl Key for $ty {
            type Rank = $bits;

            #[inline(always)]
            fn rank(self, descending: bool) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                // Both zeros are equal.
                let bits = if bits == SIGN { 0 } else { bits };
                let rank = if bits & SIGN == 0 { bits | SIGN } else { !bits };
                let rank = if descending { !rank } else { rank };
                if bits & !SIGN > $infinity { <$bits>::MAX } else { rank }
            }
        }
    )*};
}

floats! {
    f16 => u16, 0x7c00;
    bf16 => u16, 0x7f80;
    f32 => u32, 0x7f80_0000;
    f64 => u64, 0x7ff0_0000_0000_0000;
}

/// Elements that are compared with the worst candidate at once.
const BLOCK: usize = 32;

/// The records of the first `count` elements of the order, and perhaps of others. Most elements of a long row are worse than
/// the worst of as many candidates, which one comparison says.
fn candidates<K: Key, R: Ord>(
    keys: &[K],
    count: usize,
    descending: bool,
    (record, place): (&impl Fn(u64, usize) -> R, &impl Fn(&R) -> usize),
    best: &mut Vec<R>,
) {
    let most = best.capacity();
    // Candidates are at earlier places, so an element of the same rank comes after them.
    let mut limit: Option<K::Rank> = None;
    for (b, block) in keys.chunks(BLOCK).enumerate() {
        let ranks = block.iter().map(|k| k.rank(descending));
        if let Some(limit) = limit
            && !ranks.clone().fold(false, |any, rank| any | (rank < limit))
        {
            continue;
        }
        for (i, rank) in ranks.enumerate() {
            if limit.is_some_and(|limit| rank >= limit) {
                continue;
            }
            best.push(record(rank.into(), b * BLOCK + i));
            if best.len() == most {
                best.select_nth_unstable(count - 1);
                best.truncate(count);
                limit = Some(keys[place(&best[count - 1])].rank(descending));
            }
        }
    }
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

/// The order's part `from .. to` of a row as records at these places of the result: `record` makes one of a rank and a place,
/// `place` takes it apart. `None` where memory is short.
fn ordered<K: Key, R: Ord>(
    row: &[K],
    (from, to, descending): (usize, usize, bool),
    record: &impl Fn(u64, usize) -> R,
    place: &impl Fn(&R) -> usize,
) -> Option<Vec<R>> {
    let mut records = Vec::new();
    // The first few of many are selected while the row is read.
    let few = (1..=row.len() / 8).contains(&to);
    let room = if few { 2 * to + BLOCK } else { row.len() };
    records.try_reserve_exact(room).ok()?;
    if few {
        candidates(row, to, descending, (record, place), &mut records);
    } else {
        records.extend(row.iter().enumerate().map(|(i, k)| record(k.rank(descending).into(), i)));
    }
    arrange(&mut records, from, to);
    Some(records)
}

/// Calls `write` with the position, element and place of what is at `from .. to` of the order of a row. Returns a kernel status.
fn each_ordered<K: Key>(
    row: &[K],
    (from, to, descending): (usize, usize, bool),
    mut write: impl FnMut(usize, K, usize),
) -> i64 {
    let part = (from, to, descending);
    let mut values = Vec::new();
    if values.try_reserve_exact(to - from).is_err() {
        return STATUS_NO_MEMORY;
    }
    if row.len() as u64 <= 1 << 32 && K::NARROW {
        let (record, place) =
            (|rank: u64, i: usize| rank << 32 | i as u64, |r: &u64| (*r & 0xffff_ffff) as usize);
        let Some(records) = ordered(row, part, &record, &place) else { return STATUS_NO_MEMORY };
        values.extend(records[from..to].iter().map(|r| (row[place(r)], place(r))));
    } else {
        let (record, place) = (|rank: u64, i: usize| (rank, i), |r: &(u64, usize)| r.1);
        let Some(records) = ordered(row, part, &record, &place) else { return STATUS_NO_MEMORY };
        values.extend(records[from..to].iter().map(|r| (row[place(r)], place(r))));
    }
    for (i, (value, place)) in (from..to).zip(values) {
        write(i, value, place);
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
    // SAFETY: the caller's promise; the row is written when the slice is no longer read.
    let row = unsafe { std::slice::from_raw_parts(keys, n) };
    each_ordered(row, (from, to, descending != 0), |i, value, place| {
        // SAFETY: `i` is below `to`, which is at most `n`.
        unsafe {
            *places.add(i) = place as i64;
            *keys.add(i) = value;
        }
    })
}

/// Writes the first `count` elements of the order of a row, but not more than it has, and where they come from.
///
/// # Safety
/// `row` is valid for `n` elements, `values` and `places` for `count`.
unsafe fn first<K: Key>(
    n: i64,
    count: i64,
    descending: i64,
    row: *const K,
    values: *mut K,
    places: *mut i64,
) -> i64 {
    let n = n.max(0) as usize;
    let count = count.clamp(0, n as i64) as usize;
    // SAFETY: the caller's promise.
    let row = unsafe { std::slice::from_raw_parts(row, n) };
    each_ordered(row, (0, count, descending != 0), |i, value, place| {
        // SAFETY: `i` is below `count`.
        unsafe {
            *values.add(i) = value;
            *places.add(i) = place as i64;
        }
    })
}

macro_rules! entries {
    ($($order:ident, $first:ident: $ty:ty;)*) => {$(
        /// Called by generated code: the length of the row, the part of the order that is wanted, whether the largest
        /// come first, the elements and the places they come from. Returns a kernel status.
        ///
        /// # Safety
        /// Both addresses are valid for as many elements as the row has.
        pub unsafe extern "C" fn $order(
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

        /// Called by generated code: the length of the row, how many elements are wanted, whether the largest come first, the
        /// row, and where the elements and the places they come from are written. Returns a kernel status.
        ///
        /// # Safety
        /// `row` is valid for as many elements as it has, the other addresses for as many as are wanted.
        pub unsafe extern "C" fn $first(
            _runtime: *const KernelRuntime,
            n: i64,
            count: i64,
            descending: i64,
            row: *const $ty,
            values: *mut $ty,
            places: *mut i64,
        ) -> i64 {
            // SAFETY: the caller's promise.
            unsafe { first(n, count, descending, row, values, places) }
        }
    )*};
}

entries! {
    order_i8, first_i8: i8;
    order_i16, first_i16: i16;
    order_i32, first_i32: i32;
    order_i64, first_i64: i64;
    order_u8, first_u8: u8;
    order_u16, first_u16: u16;
    order_u32, first_u32: u32;
    order_u64, first_u64: u64;
    order_f16, first_f16: f16;
    order_bf16, first_bf16: bf16;
    order_f32, first_f32: f32;
    order_f64, first_f64: f64;
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
        let middle = (n / 2, (n / 2 + 1).min(n));
        for (from, to) in
            [(0, n), (0, n / 2), (0, n / 9), (0, 1.min(n)), middle, (n / 3, n), (n, n)]
        {
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
            if from == 0 {
                let (mut values, mut places) = (row[..to].to_vec(), vec![-1; to]);
                let (values_to, places_to) = (values.as_mut_ptr(), places.as_mut_ptr());
                // SAFETY: the row has `n` elements, the others `to`.
                let status = unsafe {
                    first(n, to64, descending.into(), row.as_ptr(), values_to, places_to)
                };
                assert_eq!(status, STATUS_OK);
                let found: Vec<usize> = places.iter().map(|&p| p as usize).collect();
                assert_eq!(found, want[..to], "the first {to} of {row:?}, descending {descending}");
                assert_eq!(format!("{values:?}"), format!("{moved:?}"));
            }
        }
    }

    /// Numbers with repetitions, without a pattern.
    fn numbers(n: usize) -> Vec<i64> {
        (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as i64 - 16).collect()
    }

    #[test]
    fn rows_of_every_length_are_ordered() {
        for n in [0, 1, 2, 3, 7, 33, 200, 1111] {
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
