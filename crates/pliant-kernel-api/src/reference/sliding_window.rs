//! The windows of a convolution or pooling: the input elements that each result depends on.

use super::Args;

/// The sizes of images, results and windows. Arrays contain one size for each of depth, height and width.
pub(crate) struct Windows {
    pub batch: i64,
    pub input: [i64; 3],
    pub output: [i64; 3],
    /// The sizes of a filter or of a pooling window in depth, height and width.
    pub kernel: [i64; 3],
    stride: [i64; 3],
    dilation: [i64; 3],
    /// The number of padding elements before the first element of the input, in each dim.
    before: [i64; 3],
    pub filters: i64,
    /// The number of channels per group and the number of filters per group.
    pub group: (i64, i64),
}

impl Windows {
    /// Returns the windows of a convolution.
    pub fn of_conv(args: &Args<'_>) -> Windows {
        let (groups, filters) = (args.call.int("groups"), args.sizes.get("filters"));
        let group = (args.sizes.get("channels") / groups, filters / groups);
        Windows { filters, group, ..Windows::of_pool(args) }
    }

    /// Returns the windows of a pooling operation. Each channel is a group of its own, with one filter.
    pub fn of_pool(args: &Args<'_>) -> Windows {
        let size = |name: &str| args.sizes.get(name);
        let three_dims = |name: &str| args.call.ints(name).try_into().unwrap_or([1; 3]);
        Windows {
            batch: size("batch"),
            input: ["in_depth", "in_height", "in_width"].map(size),
            output: ["out_depth", "out_height", "out_width"].map(size),
            kernel: three_dims("kernel_shape"),
            stride: three_dims("strides"),
            dilation: three_dims("dilations"),
            before: three_dims("padding"),
            filters: size("channels"),
            group: (1, 1),
        }
    }

    /// Returns the input position that the window element `tap` of the result `at` reads; `None` if
    /// the position is in the padding.
    pub fn position(&self, at: [i64; 3], tap: [i64; 3]) -> Option<[i64; 3]> {
        let position = [0, 1, 2].map(|d| {
            let window_start = at[d].saturating_mul(self.stride[d]);
            let tap_offset = tap[d].saturating_mul(self.dilation[d]);
            window_start.saturating_add(tap_offset).saturating_sub(self.before[d])
        });
        (0..3).all(|d| (0..self.input[d]).contains(&position[d])).then_some(position)
    }

    /// Returns the index of the first channel of the group that contains filter `filter`.
    pub fn first_channel(&self, filter: i64) -> i64 {
        filter / self.group.1.max(1) * self.group.0
    }
}
