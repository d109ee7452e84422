//! Sorting networks, which sort the elements of several rows with the same comparisons.

use std::ops::Range;

/// Maximum number of comparators: the number in the network for
/// [`crate::algorithm_selection::sort::MAX_NETWORK`] elements.
const MAX_COMPARATORS: usize = 543;

/// A sorting network (Batcher's odd-even merge sort). Each comparator swaps the elements at its two
/// positions if they are out of order.
pub(super) struct Network {
    comparators: [(u8, u8); MAX_COMPARATORS],
    len: usize,
}

impl Network {
    /// Creates the sorting network for `wires` elements, at most
    /// [`crate::algorithm_selection::sort::MAX_NETWORK`].
    pub fn new(wires: usize) -> Network {
        let mut network = Network { comparators: [(0, 0); MAX_COMPARATORS], len: 0 };
        let mut sorted = 1;
        while sorted < wires {
            let mut distance = sorted;
            while distance > 0 {
                for start in (distance % sorted..wires - distance).step_by(2 * distance) {
                    for low in start..(start + distance).min(wires - distance) {
                        // Both positions are in lists that are merged.
                        if low / (2 * sorted) == (low + distance) / (2 * sorted) {
                            network.comparators[network.len] = (low as u8, (low + distance) as u8);
                            network.len += 1;
                        }
                    }
                }
                distance /= 2;
            }
            sorted *= 2;
        }
        network
    }

    /// Removes the comparators that do not affect the elements with the indices `ranks` in sorted order.
    pub fn keep(&mut self, ranks: Range<usize>) {
        let mut affects = [false; crate::algorithm_selection::sort::MAX_NETWORK];
        affects[ranks].fill(true);
        let mut first_kept = self.len;
        for i in (0..self.len).rev() {
            let (low, high) = self.comparators[i];
            let (low, high) = (usize::from(low), usize::from(high));
            if affects[low] || affects[high] {
                (affects[low], affects[high]) = (true, true);
                first_kept -= 1;
                self.comparators[first_kept] = self.comparators[i];
            }
        }
        self.comparators.copy_within(first_kept..self.len, 0);
        self.len -= first_kept;
    }

    /// The comparators, in the order in which they are applied.
    pub fn comparators(&self) -> &[(u8, u8)] {
        &self.comparators[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm_selection::sort::MAX_NETWORK;

    fn apply(network: &Network, input: u64, wires: usize) -> Vec<u64> {
        let mut list: Vec<u64> = (0..wires).map(|i| input >> i & 1).collect();
        for &(low, high) in network.comparators() {
            if list[high as usize] < list[low as usize] {
                list.swap(low.into(), high.into());
            }
        }
        list
    }

    #[test]
    fn reduced_network_gives_the_kept_ranks() {
        for (wires, ranks) in [(4, 0..1), (10, 2..4), (13, 6..7), (14, 0..14), (14, 9..14)] {
            let (whole, mut part) = (Network::new(wires), Network::new(wires));
            part.keep(ranks.clone());
            for input in 0..1u64 << wires {
                let expected = apply(&whole, input, wires);
                assert_eq!(apply(&part, input, wires)[ranks.clone()], expected[ranks.clone()]);
            }
        }
        let mut minimum = Network::new(64);
        minimum.keep(0..1);
        assert_eq!(minimum.len, 63);
    }

    /// Tests the network by the zero-one principle: a network sorts all inputs if it sorts all
    /// inputs of zeros and ones.
    #[test]
    fn network_sorts_all_zero_one_inputs() {
        for wires in 0..=MAX_NETWORK {
            let network = Network::new(wires);
            // All inputs of few wires, and samples of more.
            for sample in 0..1u64 << wires.min(14) {
                let input = if wires <= 14 {
                    sample
                } else {
                    sample.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
                };
                assert!(apply(&network, input, wires).is_sorted(), "{wires} {input:b}");
            }
        }
        assert_eq!(Network::new(MAX_NETWORK).len, MAX_COMPARATORS);
    }
}
