//! The cost model: sizes of blocks that fit in a cache, and the number of pieces of work for threads. It does not decide which
//! operators are fused: fusion patterns do (`pliant-opt/src/fuse`).
//!
//! Matrix products use the loop structure of Low et al., "Analytical modeling is enough for
//! high-performance BLIS" (2016): a slice of a panel of B stays in the first-level cache while the
//! rows of A and C are streamed, and a block of rows of A stays in the second-level cache. The
//! fraction of each level that may be used was measured on Emerald Rapids (48 KB, 2 MB) and Zen 5
//! (48 KB, 1 MB), with one thread of `cargo bench -p pliant-kernels`. Zen 5 loses 2 % with slices
//! of 20 KB instead of 32, 1 % with 66 rows of A instead of 126, and 2 % with a depth of 256 for
//! packed panels instead of 512.

use crate::Machine;

/// Size of a float32 in bytes.
const FLOAT: usize = 4;
/// The unit of the size of a slice, in bytes. A slice is the part of a panel of the right operand that stays in the first-level
/// cache. The size of a slice is a multiple of this unit, so that slices contain whole rows of panels of every width.
const SLICE_UNIT: usize = 4096;
/// Maximum number of pieces into which the work of a kernel is divided for the threads of the worker team.
pub const MAX_PIECES: usize = 256;
/// Maximum depth (number of columns) of a block of A, the left operand, in a matrix product with a
/// packed operand. A larger depth is divided into equal parts.
pub const BLOCK_DEPTH: usize = 1536;
/// Maximum number of rows of a block of A, the left operand, in a matrix product with a packed
/// operand.
const MAX_BLOCK_ROWS: usize = 132;
/// Minimum number of rows of a block of A, the left operand, in a matrix product with a packed
/// operand.
const MIN_BLOCK_ROWS: usize = 24;

impl Machine {
    /// Returns the number of pieces into which a large amount of work is divided: four per core, so that cores of
    /// different speed finish at the same time. The number was measured only on two cores (eight pieces).
    pub fn pieces(&self) -> usize {
        (4 * self.cores).clamp(8, MAX_PIECES)
    }

    /// The size in bytes of a slice, the part of a panel of the right operand that all rows of a block read: two thirds of the
    /// first-level cache.
    pub fn slice_bytes(&self) -> usize {
        self.caches.l1 * 2 / 3 / SLICE_UNIT * SLICE_UNIT
    }

    /// The number of rows in a block of the left operand of a matrix product: as many float32 rows of `depth` elements as fit in
    /// three quarters of the second-level cache, rounded down to a multiple of `unit`. At least 24 and at most 132.
    pub fn block_rows(&self, depth: usize, unit: usize) -> usize {
        let rows = self.caches.l2 / 4 * 3 / (depth.max(1) * FLOAT);
        (rows / unit * unit).clamp(MIN_BLOCK_ROWS, MAX_BLOCK_ROWS)
    }

    /// Returns how many cache lines at a distance of `distance` bytes fit in the first-level cache. On current x86-64 cores, the
    /// bits of an address within a page of 4 KB select the set, so the cache has one way per 4 KB.
    pub fn fitting_lines(&self, distance: usize) -> usize {
        const PAGE: usize = 4096;
        const LINE: usize = 64;
        let sets = (PAGE >> distance.trailing_zeros().min(PAGE.trailing_zeros())).min(PAGE / LINE);
        sets * (self.caches.l1 / PAGE)
    }

    /// Returns `numerator` sixteenths of the size of the second-level cache, in bytes.
    pub fn l2_share(&self, numerator: usize) -> usize {
        self.caches.l2 / 16 * numerator
    }

    /// Maximum size in bytes of a layer's weights that stay in a cache from one image to the next:
    /// the size of the second-level cache, or an eighth of the third-level cache, which other
    /// layers need, too. At most 4 MB, the largest size that was measured with a whole model.
    pub fn cached_weights(&self) -> usize {
        (self.caches.l3 / 8).max(self.caches.l2).min(4 << 20)
    }
}

#[cfg(test)]
mod tests {
    use crate::cache_sizes::Caches;
    use crate::isa::Isa;
    use crate::{Machine, Rates};

    fn machine(l1: usize, l2: usize, cores: usize) -> Machine {
        let caches = Caches { l1: l1 << 10, l2: l2 << 10, l3: 32 << 20 };
        Machine { name: "test", isa: Isa::Avx2, caches, cores, rates: Rates::estimate(Isa::Avx2) }
    }

    #[test]
    fn block_sizes_depend_on_the_cache_sizes() {
        let emerald_rapids = machine(48, 2048, 2);
        assert_eq!(emerald_rapids.slice_bytes(), 32 << 10);
        assert_eq!(emerald_rapids.block_rows(1536, 6), 132);
        let zen4 = machine(32, 1024, 2);
        assert_eq!(zen4.slice_bytes(), 20 << 10);
        assert_eq!(zen4.block_rows(1536, 6), 126);
        assert_eq!(machine(32, 256, 2).block_rows(1536, 6), 30);
        assert_eq!(zen4.cached_weights(), 4 << 20);
        assert_eq!(
            Machine { caches: Caches { l3: 1 << 20, ..zen4.caches }, ..zen4 }.cached_weights(),
            1 << 20
        );
        assert_eq!(machine(32, 256, 2).block_rows(0, 6), 132);
    }

    #[test]
    fn the_number_of_pieces_depends_on_the_cores() {
        let pieces = |cores| machine(32, 1024, cores).pieces();
        assert_eq!([1, 2, 16, 1000].map(pieces), [8, 8, 64, 256]);
    }
}
