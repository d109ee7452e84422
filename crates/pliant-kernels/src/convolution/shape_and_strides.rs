//! The checked sizes of a convolution, and the offsets of inputs and results in memory.

use std::ops::Range;

use super::{Convolution, Image};
use crate::algorithm_selection::convolution::may_share_panels;
use crate::epilogue::MAX_TILE_COLUMNS;

/// Maximum number of elements of an operand, so that byte offsets fit in a signed 64-bit integer.
const LIMIT: i64 = 1 << 46;

/// The checked sizes of a convolution. The fields without comment are described in [`Counts`].
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub channels: usize,
    pub filters: usize,
    pub groups: usize,
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
    pub before: [usize; 3],
    /// The size of the input with padding in each dim, up to the last pixel that any result depends
    /// on.
    pub padded: [usize; 3],
    /// Whether groups share panels of weights.
    pub shared: bool,
    /// The size of the filter in memory, in each dim. The kernel uses only the taps
    /// `first_tap..first_tap + kernel`.
    pub taps: [usize; 3],
    /// The first used filter tap in each dim; earlier taps read only padding
    /// ([`Sizes::without_padding_taps`]).
    pub first_tap: [usize; 3],
}

/// The sizes of a convolution ([`Convolution`]) before they are checked.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Batch size (number of images).
    pub batch: i64,
    /// Number of channels of the input.
    pub channels: i64,
    /// Number of filters, which is the number of channels of the results.
    pub filters: i64,
    /// Number of groups into which channels and filters are divided.
    pub groups: i64,
    /// The size of the input in each dim.
    pub input: [i64; 3],
    /// The size of the results in each dim.
    pub output: [i64; 3],
    /// The size of the filter in each dim.
    pub kernel: [i64; 3],
    /// The stride in each dim, in pixels of the input.
    pub stride: [i64; 3],
    /// The dilation of the filter in each dim.
    pub dilation: [i64; 3],
    /// The padding before the input, in each dim.
    pub before: [i64; 3],
}

impl Counts {
    fn of(c: &Convolution) -> Counts {
        Counts {
            batch: c.batch,
            channels: c.channels,
            filters: c.filters,
            groups: c.groups,
            input: c.input,
            output: c.output,
            kernel: c.kernel,
            stride: c.stride,
            dilation: c.dilation,
            before: c.before,
        }
    }

    /// Checks and converts the sizes of a convolution whose groups do not share weight panels.
    /// Returns `None` if a size is negative or too large, or if sizes are inconsistent.
    pub(crate) fn sizes(&self) -> Option<Sizes> {
        let size = |d: i64| usize::try_from(d).ok();
        let sizes =
            |d: [i64; 3]| -> Option<[usize; 3]> { Some([size(d[0])?, size(d[1])?, size(d[2])?]) };
        let positive = |d: [i64; 3]| sizes(d).filter(|d| d.iter().all(|&d| d > 0));
        let mut s = Sizes {
            batch: size(self.batch)?,
            channels: size(self.channels)?,
            filters: size(self.filters)?,
            groups: size(self.groups).filter(|&g| g > 0)?,
            input: sizes(self.input)?,
            output: sizes(self.output)?,
            kernel: positive(self.kernel)?,
            stride: positive(self.stride)?,
            dilation: positive(self.dilation)?,
            before: sizes(self.before)?,
            padded: [0; 3],
            shared: false,
            taps: positive(self.kernel)?,
            first_tap: [0; 3],
        };
        for d in 0..3 {
            let filter_span = (s.kernel[d] - 1).checked_mul(s.dilation[d])?.checked_add(1)?;
            let last = s.output[d].saturating_sub(1).checked_mul(s.stride[d])?;
            s.padded[d] = last.checked_add(filter_span)?;
        }
        let groups_divide =
            s.channels.is_multiple_of(s.groups) && s.filters.is_multiple_of(s.groups);
        let is_addressable = |dims: [usize; 3], channels: usize| {
            let dims = dims.into_iter().chain([channels, s.batch]);
            dims.map(|d| d.max(1) as u128)
                .try_fold(1u128, u128::checked_mul)
                .is_some_and(|all| all < LIMIT as u128)
        };
        let taps = s.kernel.map(|d| d.max(1));
        let all_addressable = is_addressable(s.padded, s.channels)
            && is_addressable(s.input, s.channels)
            && is_addressable(s.output, s.filters)
            && is_addressable(taps, s.channels.saturating_mul(s.filters));
        (groups_divide && all_addressable).then_some(s)
    }
}

impl Sizes {
    /// Checks the arguments of a convolution and returns its sizes; `None` if the arguments are
    /// inconsistent.
    pub(super) fn of(c: &Convolution) -> Option<Sizes> {
        let mut s = Counts::of(c).sizes()?;
        let has_valid_panels =
            c.width > 0 && c.width % 16 == 0 && c.width <= MAX_TILE_COLUMNS as i64;
        let may_share = may_share_panels(s.groups, s.group_channels(), s.group_filters());
        s.shared = may_share && usize::try_from(c.width) == Ok(s.group_filters());
        (has_valid_panels || s.shared || s.is_depthwise()).then_some(s)
    }

    /// Removes the taps at the borders of the filter that read only padding for every result. Large
    /// dilations on small images have many such taps. Returns the reduced sizes, and the index of
    /// the first input pixel in each dim that the remaining taps may read.
    pub(super) fn without_padding_taps(mut self) -> (Sizes, [usize; 3]) {
        let mut first_pixel = [0; 3];
        if self.input.contains(&0) {
            return (self, first_pixel);
        }
        for (d, first_pixel) in first_pixel.iter_mut().enumerate() {
            let last = self.output[d].saturating_sub(1) * self.stride[d];
            let low = self.before[d].saturating_sub(last).div_ceil(self.dilation[d]);
            let high = (self.input[d] + self.before[d]).div_ceil(self.dilation[d]);
            let high = high.min(self.kernel[d]);
            if low >= high {
                continue;
            }
            self.first_tap[d] = low;
            self.kernel[d] = high - low;
            let skipped = low * self.dilation[d];
            *first_pixel = skipped.saturating_sub(self.before[d]);
            self.input[d] -= *first_pixel;
            self.before[d] = self.before[d].saturating_sub(skipped);
            self.padded[d] = last + (self.kernel[d] - 1) * self.dilation[d] + 1;
        }
        (self, first_pixel)
    }

    /// Returns the index of the weight row for a filter tap and the first channel.
    pub(super) fn weight_row(&self, tap: [usize; 3]) -> usize {
        let [z, y, x] = [0, 1, 2].map(|d| tap[d] + self.first_tap[d]);
        ((z * self.taps[1] + y) * self.taps[2] + x) * self.group_channels()
    }

    /// For a 1 x 1 filter with stride 1 and images without gaps, returns sizes in which all pixels
    /// of an image form one row. Otherwise returns the sizes unchanged.
    pub(super) fn flattened(mut self, c: &Convolution) -> Sizes {
        let is_dense = |p: [i64; 3], size: [usize; 3]| {
            p[1] == p[2] * size[2] as i64 && p[0] == p[1] * size[1] as i64
        };
        let is_pointwise = self.kernel == [1; 3]
            && self.stride == [1; 3]
            && self.before == [0; 3]
            && self.input == self.output
            && is_dense(c.x.pixel, self.input)
            && is_dense(c.out.pixel, self.output);
        if is_pointwise {
            let line = [1, 1, self.pixels()];
            (self.input, self.output, self.padded) = (line, line, line);
        }
        self
    }

    /// The number of results of one image and one filter.
    pub fn pixels(&self) -> usize {
        self.output.iter().product()
    }

    /// Number of input channels of a group.
    pub fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    /// Number of filters of a group.
    pub fn group_filters(&self) -> usize {
        self.filters / self.groups
    }

    /// Whether the convolution is depthwise: several groups, each with one channel and one filter.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// Returns the range of filter taps along dim `d` that are inside the input, for the result at
    /// `position`.
    pub(crate) fn taps(&self, d: usize, position: usize) -> Range<usize> {
        let first = position * self.stride[d];
        let low = self.before[d].saturating_sub(first).div_ceil(self.dilation[d]);
        let high = (self.input[d] + self.before[d]).saturating_sub(first);
        let high = high.div_ceil(self.dilation[d]).min(self.kernel[d]);
        low.min(high)..high
    }

    /// Returns the end of the longest range of results along an output row, starting at `x`, for
    /// which the same filter taps `taps` are inside the input. The end is at least `x + 1` and at
    /// most `limit`.
    pub(super) fn same_taps_end(&self, x: usize, taps: &Range<usize>, limit: usize) -> usize {
        let mut end = x + 1;
        if *taps == (0..self.kernel[2]) {
            // The end of the results whose taps are all inside the input.
            let inner_end =
                self.input[2] + self.before[2] - (self.kernel[2] - 1) * self.dilation[2];
            end = inner_end.div_ceil(self.stride[2]).min(limit);
        } else {
            while end < limit && self.taps(2, end) == *taps {
                end += 1;
            }
        }
        end.max(x + 1)
    }

    /// Whether the input has channels last, so that it can be read in place.
    pub(super) fn has_channels_last(&self, c: &Convolution) -> bool {
        c.x.channel == 1 || self.channels == 1
    }

    /// The number of elements of all padded images. Returns `None` if their size in bytes exceeds `isize::MAX`.
    pub(super) fn padded_elements(&self) -> Option<usize> {
        let dims = self.padded.into_iter().chain([self.channels, self.batch]);
        let count = dims.into_iter().try_fold(1usize, usize::checked_mul)?;
        (count <= isize::MAX as usize / size_of::<f32>()).then_some(count)
    }

    /// Returns the padded images in the memory at `data`, as images without gaps and with channels
    /// last.
    pub(super) fn padded(&self, data: *mut f32) -> Image<*const f32> {
        let [depth, height, width] = self.padded.map(|d| d as i64);
        let x = self.channels as i64;
        let (y, z) = (x * width, x * width * height);
        Image { data: data.cast_const(), batch: z * depth, channel: 1, pixel: [z, y, x] }
    }
}

impl<P> Image<P> {
    /// The offset of a pixel's first channel from the start of the images, in elements.
    #[inline]
    pub(super) fn offset(&self, batch: usize, [z, y, x]: [usize; 3]) -> isize {
        let [plane, line, pixel] = &self.pixel;
        let dims = z as i64 * plane + y as i64 * line + x as i64 * pixel;
        (batch as i64 * self.batch + dims) as isize
    }
}
