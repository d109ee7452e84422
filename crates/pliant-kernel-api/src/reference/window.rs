//! The windows of a convolution or a pooling.

use super::Args;

/// The sizes of images, results and filters.
pub(crate) struct Windows {
    pub batch: i64,
    pub input: [i64; 3],
    pub output: [i64; 3],
    pub kernel: [i64; 3],
    stride: [i64; 3],
    dilation: [i64; 3],
    before: [i64; 3],
    pub filters: i64,
    /// The channels and filters of a group.
    pub group: (i64, i64),
}

impl Windows {
    /// The windows of a convolution.
    pub fn of_conv(args: &Args<'_>) -> Windows {
        let (groups, filters) = (args.call.int("groups"), args.sizes.get("filters"));
        let group = (args.sizes.get("channels") / groups, filters / groups);
        Windows { filters, group, ..Windows::of_pool(args) }
    }

    /// The windows of a pooling: one filter for each channel.
    pub fn of_pool(args: &Args<'_>) -> Windows {
        let size = |name: &str| args.sizes.get(name);
        let three = |name: &str| args.call.ints(name).try_into().unwrap_or([1; 3]);
        Windows {
            batch: size("batch"),
            input: ["in_depth", "in_height", "in_width"].map(size),
            output: ["out_depth", "out_height", "out_width"].map(size),
            kernel: three("kernel_shape"),
            stride: three("strides"),
            dilation: three("dilations"),
            before: three("padding"),
            filters: size("channels"),
            group: (1, 1),
        }
    }

    /// The input position of a tap for a result; `None` for padding.
    pub fn position(&self, at: [i64; 3], tap: [i64; 3]) -> Option<[i64; 3]> {
        let position = [0, 1, 2].map(|d| {
            let first = at[d].saturating_mul(self.stride[d]);
            let within = tap[d].saturating_mul(self.dilation[d]);
            first.saturating_add(within).saturating_sub(self.before[d])
        });
        (0..3).all(|d| (0..self.input[d]).contains(&position[d])).then_some(position)
    }

    /// The first channel of the group of a filter.
    pub fn first_channel(&self, filter: i64) -> i64 {
        filter / self.group.1.max(1) * self.group.0
    }
}
