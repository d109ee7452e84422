//! The index of the first largest or smallest element of a row, or of its first NaN.
//!
//! The row is read once, in blocks; only the best block is searched again.

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use pliant_machine::isa::{Isa, Vectors, isa};

/// Elements of a block.
const BLOCK: usize = 512;
/// Number of elements that are compared in parallel.
const SIDE: usize = 64;

/// An element type that may have NaN.
pub trait Element: Copy + PartialOrd {
    /// Whether it is NaN.
    fn is_nan(self) -> bool {
        false
    }
}

impl Element for f32 {
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Element for f64 {
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

macro_rules! integers {
    ($($ty:ty)*) => { $(impl Element for $ty {})* };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Whether `a` is better than `b`.
#[inline(always)]
fn better<T: Element, const LARGEST: bool>(a: T, b: T) -> bool {
    if LARGEST { a > b } else { a < b }
}

/// The best element of a block, and whether it contains NaN. The last step may overlap the one
/// before it.
#[inline(always)]
fn best_of<T: Element, const LARGEST: bool>(block: &[T]) -> (T, bool) {
    let mut best = [block[0]; SIDE];
    let mut nan = [false; SIDE];
    let mut compare = |side: &[T]| {
        for i in 0..side.len().min(SIDE) {
            best[i] = if better::<T, LARGEST>(side[i], best[i]) { side[i] } else { best[i] };
            nan[i] |= side[i].is_nan();
        }
    };
    for side in block.as_chunks::<SIDE>().0 {
        compare(side);
    }
    compare(&block[block.len().saturating_sub(SIDE)..]);
    let mut any = block[0].is_nan();
    let mut half = SIDE / 2;
    while half > 0 {
        for i in 0..half {
            let (a, b) = (best[i], best[i + half]);
            best[i] = if better::<T, LARGEST>(b, a) { b } else { a };
        }
        half /= 2;
    }
    for n in nan {
        any |= n;
    }
    (best[0], any)
}

/// The first index whose element satisfies `is`; 0 if there is none.
#[inline(always)]
fn first_of<T: Element>(row: &[T], is: impl Fn(T) -> bool) -> usize {
    for (i, side) in row.chunks(SIDE).enumerate() {
        // Elements are tested in parallel before one is searched for.
        if side.iter().fold(false, |any, &v| any | is(v)) {
            return i * SIDE + side.iter().position(|&v| is(v)).unwrap_or(0);
        }
    }
    0
}

/// The index of the best element of a non-empty row.
#[inline(always)]
fn place<T: Element, const LARGEST: bool>(row: &[T]) -> usize {
    let (mut best, mut at) = (row[0], 0);
    for (i, block) in row.chunks(BLOCK).enumerate() {
        let (value, nan) = best_of::<T, LARGEST>(block);
        if nan {
            return i * BLOCK + first_of(block, T::is_nan);
        }
        if better::<T, LARGEST>(value, best) {
            (best, at) = (value, i);
        }
    }
    let from = at * BLOCK;
    from + first_of(&row[from..], |v| v == best)
}

/// The index of the largest or smallest element.
#[inline(always)]
fn either<T: Element>(row: &[T], largest: bool) -> usize {
    if largest { place::<T, true>(row) } else { place::<T, false>(row) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<T: Element>(row: &[T], largest: bool) -> usize {
    either(row, largest)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn with_avx512<T: Element>(row: &[T], largest: bool) -> usize {
    either(row, largest)
}

/// [`either`] with the given instruction set.
fn run<T: Element>(isa: Isa, row: &[T], largest: bool) -> usize {
    match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 if wide_avx512() => {
            // SAFETY: the machine has these instructions.
            unsafe { with_avx512(row, largest) }
        }
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 | Vectors::Avx2 => {
            // SAFETY: the machine has these instructions, or better ones.
            unsafe { with_avx2(row, largest) }
        }
        _ => either(row, largest),
    }
}

/// Whether the machine also has AVX-512 for small elements.
#[cfg(target_arch = "x86_64")]
fn wide_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512dq")
}

macro_rules! entries {
    ($($name:ident: $ty:ty;)*) => {$(
        /// Called by generated code with the length of the row, whether the largest element is
        /// wanted, the row, and the address for the index. Writes nothing for an empty row. Returns
        /// a kernel status.
        ///
        /// # Safety
        /// `row` is valid for `n` elements, `place` for one.
        pub unsafe extern "C" fn $name(
            _runtime: *const KernelRuntime,
            n: i64,
            largest: i64,
            row: *const $ty,
            place: *mut i64,
        ) -> i64 {
            if n > 0 {
                // SAFETY: guaranteed by the caller.
                let row = unsafe { std::slice::from_raw_parts(row, n as usize) };
                let found = run(isa(), row, largest != 0) as i64;
                // SAFETY: guaranteed by the caller.
                unsafe { *place = found };
            }
            STATUS_OK
        }
    )*};
}

entries! {
    extreme_i8: i8;
    extreme_i16: i16;
    extreme_i32: i32;
    extreme_i64: i64;
    extreme_u8: u8;
    extreme_u16: u16;
    extreme_u32: u32;
    extreme_u64: u64;
    extreme_f32: f32;
    extreme_f64: f64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pliant_machine::isa::available;

    #[test]
    fn the_first_of_equal_ones_is_found_at_every_place() {
        for isa in available() {
            for n in [1usize, 2, 63, 64, 65, 511, 512, 513, 1500] {
                for at in [0, 1, n / 2, n.saturating_sub(2), n - 1] {
                    let at = at.min(n - 1);
                    let mut row: Vec<f32> = (0..n).map(|i| (i * 7 % 5) as f32).collect();
                    row[at] = 9.0;
                    row[n - 1] = 9.0;
                    assert_eq!(run(isa, &row, true), at, "{isa:?} {n}");
                    let ints: Vec<i8> = row.iter().map(|&v| -(v as i8)).collect();
                    assert_eq!(run(isa, &ints, false), at, "{isa:?} {n}");
                    row[at] = f32::NAN;
                    row[n - 1] = f32::NAN;
                    assert_eq!(run(isa, &row, true), at, "{isa:?} {n}");
                    assert_eq!(run(isa, &row, false), at, "{isa:?} {n}");
                }
            }
        }
    }
}
