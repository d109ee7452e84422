//! The cost model for compile-time decisions: whether a kernel, a packed operand or Winograd's algorithm is faster than the
//! alternative. Offload rules query it. Symbolic sizes are unknown at compile time, so a decision must be good for every shape
//! that the model can have at run time. The rules for choices at run time, when the shape is known, are in
//! `pliant-kernels/src/algorithm_selection`.

use crate::Machine;

/// Size of a float32 in bytes.
const FLOAT: u64 = 4;
/// Minimum number of channels, and minimum number of filters, for which Winograd's algorithm is
/// used.
const WINOGRAD_CHANNELS: i64 = 64;
/// The number of elements of a 3 x 3 filter after the filter transform of F(2x2), the variant of Winograd's algorithm for which the
/// other limits were measured.
const WINOGRAD_FILTER_ELEMENTS: u64 = 16;
/// Maximum ratio of the number of elements of a pooling window to the sum of its sizes in all dims. Up to this ratio in pooling
/// with channels last, each window is reduced as a whole; above it, one axis is reduced after the other.
const WINDOW_RATIO: i64 = 3;
/// Minimum number of time steps of a recurrent layer for which packing its non-constant weights is
/// profitable.
const RECURRENT_STEPS: i64 = 3;

impl Machine {
    /// Minimum number of columns of a constant matrix for which packing is profitable.
    pub const PACKED_COLUMNS: i64 = 8;

    /// Whether Winograd's algorithm is faster than direct convolution for 3 x 3 filters with this number of channels
    /// and filters, for most image sizes. The transformed weights are read for every image, so they must fit in a
    /// cache.
    ///
    /// Speedups on one thread of Emerald Rapids and Zen 5, for channels by filters and an image size
    /// (`cargo bench -p pliant-kernels --bench convolution`):
    /// - 64 by 64: 1.5x and 1.6x at 56 x 56.
    /// - 256 by 256: 2.0x and 2.2x at 14 x 14, 1.6x at 7 x 7, and none at 5 x 5.
    /// - 32 by 32: 1.3x at 56 x 56. The algorithm is not used, because direct convolution halves the errors.
    /// - 512 by 512: 1.6x and 1.8x at 7 x 7 if the weights are in the third-level cache. But the weights take 16 MB (16
    ///   elements instead of 9), and for images of a few pixels reading them takes longer than multiplying.
    pub fn winograd_is_faster(&self, channels: i64, filters: i64) -> bool {
        let bytes = (channels.unsigned_abs())
            .saturating_mul(filters.unsigned_abs())
            .saturating_mul(WINOGRAD_FILTER_ELEMENTS * FLOAT);
        channels.min(filters) >= WINOGRAD_CHANNELS && bytes <= self.cached_weights() as u64
    }

    /// Whether channels-last pooling is faster if each window (with the sizes `window`) is reduced as a whole than if one axis is
    /// reduced after the other. The reduction of one axis after the other reads fewer elements, but writes intermediate results.
    pub fn whole_windows_are_faster(&self, window: &[i64]) -> bool {
        let elements = window.iter().fold(1i64, |n, &k| n.saturating_mul(k));
        let sum = window.iter().fold(0i64, |n, &k| n.saturating_add(k));
        elements <= sum.saturating_mul(WINDOW_RATIO)
    }

    /// Whether packing the non-constant weights of a recurrent layer is faster than loops that read
    /// the weights in place. `steps` is the total number of time steps over all sequences.
    ///
    /// Times for an LSTM of 256 units on Emerald Rapids, in ms, with loops / with the kernel on one
    /// thread / with the kernel on two threads: 0.16 / 0.55 / 0.27 for one step; 0.29 / 0.58 / 0.30
    /// for two steps; 0.55 / 0.60 / 0.32 for three steps; 2.3 / 0.83 / 0.42 for 16 steps.
    pub fn packing_recurrent_weights_is_faster(&self, steps: i64) -> bool {
        steps >= RECURRENT_STEPS
    }

    /// Whether a matrix product with a packed constant operand is faster than with the constant in
    /// its original layout. With few columns, most of a panel would be padding.
    pub fn packed_product_is_faster(&self, columns: i64) -> bool {
        columns >= Self::PACKED_COLUMNS
    }
}

#[cfg(test)]
mod tests {
    use crate::{Caches, Isa, Machine, Rates};

    fn machine(isa: Isa) -> Machine {
        let caches = Caches { l1: 32 << 10, l2: 1 << 20, l3: 16 << 20 };
        Machine { name: "test", isa, caches, cores: 2, rates: Rates::estimate(isa) }
    }

    #[test]
    fn winograd_is_used_if_the_weights_fit_in_a_cache() {
        let machine = machine(Isa::Avx2);
        assert!(machine.winograd_is_faster(64, 64) && machine.winograd_is_faster(128, 256));
        assert!(!machine.winograd_is_faster(32, 512) && !machine.winograd_is_faster(512, 512));
        assert!(!machine.winograd_is_faster(i64::MAX, i64::MAX));
    }

    #[test]
    fn large_pooling_windows_are_reduced_by_axis() {
        let machine = machine(Isa::Avx2);
        assert!(machine.whole_windows_are_faster(&[5, 5]));
        assert!(!machine.whole_windows_are_faster(&[13, 13]));
        assert!(!machine.whole_windows_are_faster(&[1 << 20, 1 << 20]));
    }
}
