//! Sort keys. Each element is converted to an integer, its rank, such that ranks have the required order of the elements. The rank
//! and the position of an element are combined to a record.

use half::{bf16, f16};

/// The order in which elements are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub descending: bool,
    /// Whether NaN is before all numbers instead of after them.
    pub nan_first: bool,
}

/// An element type that can be sorted.
pub(super) trait Key: Copy {
    /// The integer type to which elements are converted for sorting.
    type Rank: Copy + Ord + Into<u64>;

    /// Whether a rank and a 32-bit position fit in a 64-bit record.
    const FITS_U64_RECORD: bool = size_of::<Self::Rank>() <= 4;

    /// Returns the rank of an element: an integer key. The keys have the requested order of the elements.
    fn rank(self, order: Order) -> Self::Rank;
}

macro_rules! integers {
    ($($ty:ty => $rank:ty, $flip:expr;)*) => {$(
        impl Key for $ty {
            type Rank = $rank;

            #[inline(always)]
            fn rank(self, order: Order) -> $rank {
                let rank = (self ^ $flip) as $rank;
                if order.descending { !rank } else { rank }
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

            /// Computes the rank without branches, because branches on random signs would be
            /// mispredicted.
            #[inline(always)]
            fn rank(self, order: Order) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let mask_if = |is: bool| <$bits>::from(is).wrapping_neg();
                let bits = self.to_bits();
                // Both zeros have the same rank.
                let bits = bits & mask_if(bits != SIGN);
                let rank = bits ^ (mask_if(bits & SIGN != 0) | SIGN) ^ mask_if(order.descending);
                // No number has the smallest or the largest rank.
                let nan = mask_if(bits & !SIGN > $infinity);
                if order.nan_first { rank & !nan } else { rank | nan }
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

/// The sort record of an element: its rank (integer key) and its position, ordered by rank, then by
/// position.
pub(super) trait Record: Copy + Ord {
    /// A record that is ordered after all others.
    const LAST: Self;

    fn new(rank: u64, position: usize) -> Self;
    fn position(self) -> usize;
}

/// A record as one 64-bit integer: a rank and a position of 32 bits each.
impl Record for u64 {
    const LAST: u64 = u64::MAX;

    #[inline(always)]
    fn new(rank: u64, position: usize) -> u64 {
        rank << 32 | position as u64
    }

    #[inline(always)]
    fn position(self) -> usize {
        (self & 0xffff_ffff) as usize
    }
}

impl Record for (u64, usize) {
    const LAST: (u64, usize) = (u64::MAX, usize::MAX);

    #[inline(always)]
    fn new(rank: u64, position: usize) -> (u64, usize) {
        (rank, position)
    }

    #[inline(always)]
    fn position(self) -> usize {
        self.1
    }
}

/// Returns the record of the element `key` at position `position` of a row.
#[inline(always)]
pub(super) fn record<K: Key, R: Record>(key: K, position: usize, order: Order) -> R {
    R::new(key.rank(order).into(), position)
}
