//! The checked sizes of a convolution, and the positions of inputs and results.

use std::ops::Range;

use super::{Convolution, Image};
use crate::epilogue::MOST_COLUMNS;
use crate::rules::convolution::may_share_panels;

/// Maximum number of elements, so that addresses fit a signed word.
const LIMIT: i64 = 1 << 46;

/// Consistent sizes. With padding, the input has the size `padded`.
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
    /// The padded input size, starting at the first padding element.
    pub padded: [usize; 3],
    /// Whether groups share panels of weights.
    pub shared: bool,
    /// The size of the filters in memory. `kernel` is the part from `first_tap` on.
    pub taps: [usize; 3],
    /// See [`Sizes::cropped`].
    pub first_tap: [usize; 3],
}

/// The numbers of a convolution as in the arguments ([`Convolution`]).
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Batch size.
    pub batch: i64,
    /// Channels of the input.
    pub channels: i64,
    /// Channels of the results.
    pub filters: i64,
    /// Groups of channels and of filters.
    pub groups: i64,
    /// Size of the input.
    pub input: [i64; 3],
    /// Size of the results.
    pub output: [i64; 3],
    /// Size of the filter.
    pub kernel: [i64; 3],
    /// Strides, in pixels of the input.
    pub stride: [i64; 3],
    /// Dilations.
    pub dilation: [i64; 3],
    /// Padding before the input.
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

    /// The sizes, if groups share no panels; `None` if they are inconsistent.
    pub(crate) fn sizes(&self) -> Option<Sizes> {
        let of = |d: i64| usize::try_from(d).ok();
        let all = |d: [i64; 3]| -> Option<[usize; 3]> { Some([of(d[0])?, of(d[1])?, of(d[2])?]) };
        let positive = |d: [i64; 3]| all(d).filter(|d| d.iter().all(|&d| d > 0));
        let mut s = Sizes {
            batch: of(self.batch)?,
            channels: of(self.channels)?,
            filters: of(self.filters)?,
            groups: of(self.groups).filter(|&g| g > 0)?,
            input: all(self.input)?,
            output: all(self.output)?,
            kernel: positive(self.kernel)?,
            stride: positive(self.stride)?,
            dilation: positive(self.dilation)?,
            before: all(self.before)?,
            padded: [0; 3],
            shared: false,
            taps: positive(self.kernel)?,
            first_tap: [0; 3],
        };
        for d in 0..3 {
            let reach = (s.kernel[d] - 1).checked_mul(s.dilation[d])?.checked_add(1)?;
            let last = s.output[d].saturating_sub(1).checked_mul(s.stride[d])?;
            s.padded[d] = last.checked_add(reach)?;
        }
        let even = s.channels.is_multiple_of(s.groups) && s.filters.is_multiple_of(s.groups);
        let fits = |dims: [usize; 3], channels: usize| {
            let dims = dims.into_iter().chain([channels, s.batch]);
            dims.map(|d| d.max(1) as u128)
                .try_fold(1u128, u128::checked_mul)
                .is_some_and(|all| all < LIMIT as u128)
        };
        let taps = s.kernel.map(|d| d.max(1));
        let fits = fits(s.padded, s.channels)
            && fits(s.input, s.channels)
            && fits(s.output, s.filters)
            && fits(taps, s.channels.saturating_mul(s.filters));
        (even && fits).then_some(s)
    }
}

impl Sizes {
    /// The sizes; `None` if the arguments are inconsistent.
    pub(super) fn of(c: &Convolution) -> Option<Sizes> {
        let mut s = Counts::of(c).sizes()?;
        let packed = c.width > 0 && c.width % 16 == 0 && c.width <= MOST_COLUMNS as i64;
        let may_share = may_share_panels(s.groups, s.group_channels(), s.group_filters());
        s.shared = may_share && usize::try_from(c.width) == Ok(s.group_filters());
        let packed = packed || s.shared || s.is_depthwise();
        packed.then_some(s)
    }

    /// The sizes without the taps at the borders of the filter that read only padding for every
    /// result, and the first pixel of the input that the other taps read. Large dilations on small
    /// images have many such taps.
    pub(super) fn cropped(mut self) -> (Sizes, [usize; 3]) {
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

    /// The row of weights of a tap and the first channel.
    pub(super) fn weight_row(&self, tap: [usize; 3]) -> usize {
        let [z, y, x] = [0, 1, 2].map(|d| tap[d] + self.first_tap[d]);
        ((z * self.taps[1] + y) * self.taps[2] + x) * self.group_channels()
    }

    /// For a filter of one tap with stride 1: the pixels as one line.
    pub(super) fn flat(mut self, c: &Convolution) -> Sizes {
        let one = |d: [usize; 3]| d == [1; 3];
        let dense = |p: [i64; 3], size: [usize; 3]| {
            p[1] == p[2] * size[2] as i64 && p[0] == p[1] * size[1] as i64
        };
        let whole = one(self.kernel)
            && one(self.stride)
            && self.before == [0; 3]
            && self.input == self.output
            && dense(c.x.pixel, self.input)
            && dense(c.out.pixel, self.output);
        if whole {
            let all = [1, 1, self.pixels()];
            (self.input, self.output, self.padded) = (all, all, all);
        }
        self
    }

    /// Results of an image and a filter.
    pub fn pixels(&self) -> usize {
        self.output.iter().product()
    }

    /// Input channels of a filter.
    pub fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    /// Filters of a group.
    pub fn group_filters(&self) -> usize {
        self.filters / self.groups
    }

    /// Whether each channel has its own filter.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// The taps of a dim whose inputs exist, for result `at`.
    pub(crate) fn taps(&self, d: usize, at: usize) -> Range<usize> {
        let first = at * self.stride[d];
        let low = self.before[d].saturating_sub(first).div_ceil(self.dilation[d]);
        let high = (self.input[d] + self.before[d]).saturating_sub(first);
        let high = high.div_ceil(self.dilation[d]).min(self.kernel[d]);
        low.min(high)..high
    }

    /// The end of the results from `x` on, at most `limit`, that have the same taps of a row as `x`, which are `taps`.
    pub(super) fn same_taps_end(&self, x: usize, taps: &Range<usize>, limit: usize) -> usize {
        let mut end = x + 1;
        if *taps == (0..self.kernel[2]) {
            // The last result all of whose taps are inside.
            let inside = self.input[2] + self.before[2] - (self.kernel[2] - 1) * self.dilation[2];
            end = inside.div_ceil(self.stride[2]).min(limit);
        } else {
            while end < limit && self.taps(2, end) == *taps {
                end += 1;
            }
        }
        end.max(x + 1)
    }

    /// Whether the input can be read in place: channels last.
    pub(super) fn in_place(&self, c: &Convolution) -> bool {
        c.x.channel == 1 || self.channels == 1
    }

    /// The number of elements of all padded images; `None` if it is too large.
    pub(super) fn padded_elements(&self) -> Option<usize> {
        let dims = self.padded.into_iter().chain([self.channels, self.batch]);
        let all = dims.into_iter().try_fold(1usize, usize::checked_mul)?;
        (all <= isize::MAX as usize / size_of::<f32>()).then_some(all)
    }

    /// Padded images at an address, channels last.
    pub(super) fn padded(&self, data: *mut f32) -> Image<*const f32> {
        let [depth, height, width] = self.padded.map(|d| d as i64);
        let x = self.channels as i64;
        let (y, z) = (x * width, x * width * height);
        Image { data: data.cast_const(), batch: z * depth, channel: 1, pixel: [z, y, x] }
    }
}

impl<P> Image<P> {
    /// The offset of a pixel's first channel.
    pub(super) fn offset(&self, batch: usize, pixel: [usize; 3]) -> isize {
        let dims: i64 = pixel.iter().zip(self.pixel).map(|(&p, stride)| p as i64 * stride).sum();
        (batch as i64 * self.batch + dims) as isize
    }
}
