//! Depthwise convolution of 8-bit integers. A tile covers a few results along an output row and
//! adjacent channels. Its sums stay in registers over all taps.
//!
//! Method: direct convolution with channels in lanes. Machines with AVX-512 VNNI use
//! [`depthwise_vnni`](super::depthwise_vnni). For others, and for weights with zero points, the
//! compiler vectorizes the loops of this file. Taps outside of the input are skipped, which is
//! equivalent to reading the zero point.

use std::mem::MaybeUninit;
use std::slice::from_raw_parts;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::Convolution;
#[cfg(target_arch = "x86_64")]
use super::depthwise_vnni::{self, TapWeights};
use crate::algorithm_selection::quantized::depthwise_unit;
use crate::convolution::shape_and_strides::Sizes;
use crate::epilogue::{EpilogueTile, MAX_TILE_COLUMNS, Position};
use crate::matmul::work_partition::parallel_for;
use crate::simd::{Lanes, for_isa};
use pliant_machine::isa::Isa;

/// Number of results along an output row for which the loops of this file share each loaded weight.
const MAX_RESULTS: usize = 4;
/// Maximum number of results along an output row whose sums are kept before the epilogue is applied to them.
const MAX_LINE: usize = 4 * MAX_RESULTS;
/// Maximum number of channels of a tile.
const CHANNELS: usize = 16;

/// The arguments for computing one tile: adjacent results along an output row, for adjacent
/// channels.
pub(super) struct DepthwiseTile<'a> {
    pub c: &'a Convolution,
    pub s: &'a Sizes,
    /// The zero point of the input.
    pub zero: i32,
    batch: usize,
    /// The position of the first result in the output.
    pub at: [usize; 3],
    /// The number of adjacent results along the output row that the tile computes.
    pub results: usize,
    /// The first channel, and the number of channels.
    channels: (usize, usize),
    /// The address to which the sums are written, and the stride between adjacent results, in
    /// elements.
    pub to: (*mut i32, usize),
}

impl DepthwiseTile<'_> {
    /// Returns the index of the input row that the filter row `(z, y)` reads, among the rows of all images; `None` if the row is
    /// outside of the input.
    pub fn input_line(&self, z: usize, y: usize) -> Option<usize> {
        let s = self.s;
        let inside = |d: usize, tap: usize| {
            let at = self.at[d] * s.stride[d] + tap * s.dilation[d];
            at.checked_sub(s.before[d]).filter(|&at| at < s.input[d])
        };
        Some((self.batch * s.input[0] + inside(0, z)?) * s.input[1] + inside(1, y)?)
    }
}

/// The implementations of the sums of a tile.
#[derive(Clone, Copy)]
enum SumsOfTile {
    /// The loops of this file, compiled for an instruction set.
    Loops(unsafe fn(&DepthwiseTile<'_>)),
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl SumsOfTile {
    fn of(isa: Isa, c: &Convolution, s: &Sizes) -> SumsOfTile {
        #[cfg(target_arch = "x86_64")]
        if depthwise_vnni::applies(isa, c, s) {
            return SumsOfTile::Vnni;
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = s;
        SumsOfTile::Loops(match c.signed {
            true => for_isa!(isa, signed(p: &DepthwiseTile<'_>)).0,
            false => for_isa!(isa, unsigned(p: &DepthwiseTile<'_>)).0,
        })
    }
}

/// Computes a depthwise convolution of 8-bit integers on the worker team. `zero` is the zero point
/// of the input. Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`super::run`] hold.
pub(super) unsafe fn run(
    isa: Isa,
    runtime: &KernelRuntime,
    (c, s): (&Convolution, &Sizes),
    zero: i32,
) -> i64 {
    let lines = s.output[0] * s.output[1];
    let sums = SumsOfTile::of(isa, c, s);
    let piece = |index: usize| {
        let (batch, line) = (index / lines, index % lines);
        let at = [line / s.output[1], line % s.output[1], 0];
        let first = DepthwiseTile {
            c,
            s,
            zero,
            batch,
            at,
            results: 0,
            channels: (0, 0),
            to: (std::ptr::null_mut(), 0),
        };
        // SAFETY: guaranteed by the caller; pieces write different lines.
        unsafe { compute_line(isa, &first, sums) };
        STATUS_OK
    };
    let taps: usize = s.kernel.iter().product();
    let units = taps.saturating_mul(s.output[2]).saturating_mul(s.channels) / depthwise_unit();
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, s.batch * lines, units, &piece) }
}

/// Computes an output row, and applies the epilogue. `first` is the first tile of the output row.
///
/// # Safety
/// The conditions of [`super::run`] hold; the machine has the instructions of `sums`.
unsafe fn compute_line(isa: Isa, first: &DepthwiseTile<'_>, sums: SumsOfTile) {
    for channel in (0..first.s.channels).step_by(MAX_TILE_COLUMNS) {
        let columns = MAX_TILE_COLUMNS.min(first.s.channels - channel);
        let channels = (channel, columns);
        match sums {
            SumsOfTile::Loops(sums) => {
                // SAFETY: guaranteed by the caller.
                let sums = |tile: &DepthwiseTile<'_>| unsafe { compute_parts(tile, sums) };
                // SAFETY: guaranteed by the caller.
                unsafe { line_of_channels(isa, first, channels, sums) };
            }
            #[cfg(target_arch = "x86_64")]
            SumsOfTile::Vnni => {
                // SAFETY: guaranteed by the caller.
                let weights = unsafe { TapWeights::load(first, channel, columns) };
                // SAFETY: guaranteed by the caller.
                let sums = |tile: &DepthwiseTile<'_>| unsafe { weights.sums(tile) };
                // SAFETY: guaranteed by the caller.
                unsafe { line_of_channels(isa, first, channels, sums) };
            }
        }
    }
}

/// Computes an output row for some channels, tile by tile, and applies the epilogue. `sums` writes the sums of a tile.
///
/// # Safety
/// The conditions of [`compute_line`] hold.
unsafe fn line_of_channels(
    isa: Isa,
    first: &DepthwiseTile<'_>,
    channels: (usize, usize),
    sums: impl Fn(&DepthwiseTile<'_>),
) {
    let (c, s) = (first.c, first.s);
    let mut scratch = [MaybeUninit::<i32>::uninit(); MAX_LINE * MAX_TILE_COLUMNS];
    let row = (first.at[0] * s.output[1] + first.at[1]) * s.output[2];
    let row = first.batch * s.pixels() + row;
    for x in (0..s.output[2]).step_by(MAX_LINE) {
        let results = MAX_LINE.min(s.output[2] - x);
        let (to, result_stride) = match c.out.is_null() {
            true => (scratch.as_mut_ptr().cast(), MAX_TILE_COLUMNS),
            false => (c.out.wrapping_add((row + x) * s.channels + channels.0), s.channels),
        };
        let at = [first.at[0], first.at[1], x];
        sums(&DepthwiseTile { at, results, channels, to: (to, result_stride), ..*first });
        let Some(epilogue) = &c.epilogue else { continue };
        let finished = EpilogueTile {
            data: to.cast(),
            row_stride: result_stride as isize,
            rows: results,
            columns: channels.1,
            position: Position { batch: 0, row: row + x, column: channels.0 },
        };
        // SAFETY: the sums are complete; guaranteed by the caller.
        unsafe { epilogue.finish(isa, &finished) };
    }
}

/// Computes the sums of a tile with a function for up to [`MAX_RESULTS`] results and [`CHANNELS`] channels.
///
/// # Safety
/// The conditions of [`compute_line`] hold. The sums of the tile are writable.
unsafe fn compute_parts(tile: &DepthwiseTile<'_>, sums: unsafe fn(&DepthwiseTile<'_>)) {
    let (channel, columns) = tile.channels;
    for i in (0..tile.results).step_by(MAX_RESULTS) {
        for from in (0..columns).step_by(CHANNELS) {
            let part = DepthwiseTile {
                at: [tile.at[0], tile.at[1], tile.at[2] + i],
                results: MAX_RESULTS.min(tile.results - i),
                channels: (channel + from, CHANNELS.min(columns - from)),
                to: (tile.to.0.wrapping_add(i * tile.to.1 + from), tile.to.1),
                ..*tile
            };
            // SAFETY: guaranteed by the caller.
            unsafe { sums(&part) };
        }
    }
}

/// Computes the sums of a tile with int8 inputs.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. The conditions of
/// [`super::run`] hold.
#[inline(always)]
unsafe fn signed<L: Lanes<Elem = f32>>(p: &DepthwiseTile<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { sums::<L>(p, |x| i32::from(x.cast_signed())) }
}

/// Computes the sums of a tile with uint8 inputs.
///
/// # Safety
/// The conditions of [`signed`] hold.
#[inline(always)]
unsafe fn unsigned<L: Lanes<Elem = f32>>(p: &DepthwiseTile<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { sums::<L>(p, i32::from) }
}

/// Computes the sums of a tile. `value` converts an input byte to its integer.
///
/// # Safety
/// The conditions of [`signed`] hold.
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
#[inline(always)]
unsafe fn sums<L: Lanes<Elem = f32>>(p: &DepthwiseTile<'_>, value: impl Fn(u8) -> i32) {
    let s = p.s;
    let first = p.at[2] * s.stride[2];
    let last = first + (MAX_RESULTS - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2];
    let is_inside = first >= s.before[2] && last < s.before[2] + s.input[2];
    // SAFETY: guaranteed by the caller.
    unsafe {
        if is_inside && p.results == MAX_RESULTS && p.channels.1 == CHANNELS {
            compute_sums::<true>(p, value);
        } else {
            compute_sums::<false>(p, value);
        }
    }
}

/// Computes the sums of a tile. If `WHOLE` is set, the tile has [`MAX_RESULTS`] results and
/// [`CHANNELS`] channels, and all taps along the output row are inside of the input. Then the loops
/// have no branches, and the sums stay in registers.
///
/// # Safety
/// The conditions of [`signed`] hold.
#[inline(always)]
unsafe fn compute_sums<const WHOLE: bool>(p: &DepthwiseTile<'_>, value: impl Fn(u8) -> i32) {
    let (s, (channel, count)) = (p.s, p.channels);
    let (results, count) = if WHOLE { (MAX_RESULTS, CHANNELS) } else { (p.results, count) };
    let input_index = |at: usize, d: usize| at.checked_sub(s.before[d]).filter(|&i| i < s.input[d]);
    let mut zeros = [0i32; CHANNELS];
    if !p.c.w_zeros.is_null() {
        // SAFETY: guaranteed by the caller.
        let filter_zeros = unsafe { from_raw_parts(p.c.w_zeros.add(channel), count) };
        zeros[..count].copy_from_slice(filter_zeros);
    }
    let mut sums = [[0i32; CHANNELS]; MAX_RESULTS];
    for z in s.taps(0, p.at[0]) {
        let plane = p.at[0] * s.stride[0] + z * s.dilation[0] - s.before[0];
        for y in s.taps(1, p.at[1]) {
            let line = p.at[1] * s.stride[1] + y * s.dilation[1] - s.before[1];
            let line = (p.batch * s.input[0] + plane) * s.input[1] + line;
            for x in 0..s.kernel[2] {
                let tap = (z * s.kernel[1] + y) * s.kernel[2] + x;
                // SAFETY: guaranteed by the caller.
                let bytes = unsafe {
                    load(p.c.weights.cast::<u8>().add(tap * s.channels + channel), count)
                };
                let mut weights = [0i32; CHANNELS];
                for lane in 0..CHANNELS {
                    let byte = bytes[lane].cast_signed();
                    weights[lane] = i32::from(byte).wrapping_sub(zeros[lane]);
                }
                for (i, sums) in sums.iter_mut().enumerate().take(results) {
                    let at = (p.at[2] + i) * s.stride[2] + x * s.dilation[2];
                    let at = if WHOLE { Some(at - s.before[2]) } else { input_index(at, 2) };
                    let Some(at) = at else { continue };
                    let from = (line * s.input[2] + at) * s.channels + channel;
                    // SAFETY: guaranteed by the caller; the tap lies inside the input.
                    let bytes = unsafe { load(p.c.x.add(from), count) };
                    for lane in 0..CHANNELS {
                        let x = value(bytes[lane]).wrapping_sub(p.zero);
                        sums[lane] = sums[lane].wrapping_add(x.wrapping_mul(weights[lane]));
                    }
                }
            }
        }
    }
    for (i, sums) in sums.iter().enumerate().take(results) {
        // SAFETY: guaranteed by the caller.
        unsafe { p.to.0.add(i * p.to.1).copy_from_nonoverlapping(sums.as_ptr(), count) };
    }
}

/// Loads `count` bytes of adjacent channels, and pads them with zeros.
///
/// # Safety
/// `count` bytes are readable.
#[inline(always)]
unsafe fn load(from: *const u8, count: usize) -> [u8; CHANNELS] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if count == CHANNELS {
            return from.cast::<[u8; CHANNELS]>().read_unaligned();
        }
        let mut bytes = [0; CHANNELS];
        bytes[..count].copy_from_slice(from_raw_parts(from, count));
        bytes
    }
}
