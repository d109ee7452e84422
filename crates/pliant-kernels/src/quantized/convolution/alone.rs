//! Depthwise convolution: the sums of a few results along a line by a few adjacent channels stay in
//! registers over all taps.
//!
//! Recipe: direct convolution, channels in lanes, plain code that the compiler vectorises for
//! each instruction set. Taps outside the input are skipped, which is equivalent to reading the
//! zero point.

use std::slice::from_raw_parts;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};

use super::Convolution;
use crate::convolution::shape::Sizes;
use crate::epilogue::{EpilogueTile, MAX_TILE_COLUMNS, Position};
use crate::lanes::{Lanes, for_isa};
use crate::product::parallel::parallel_for;
use crate::rules::quantized::depthwise_unit;
use pliant_machine::isa::Isa;

/// Number of results that share each weight.
const STEP: usize = 4;
/// Channels of a vector.
const CHANNELS: usize = 16;

/// Some results along a line, of some channels.
struct Few<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    zero: i32,
    batch: usize,
    /// The first result.
    at: [usize; 3],
    /// The number of results, at most [`STEP`].
    results: usize,
    /// The first channel, and the number of channels, at most [`CHANNELS`].
    channels: (usize, usize),
    /// The destination of their sums, and the stride between results.
    to: (*mut i32, usize),
}

/// The convolution.
///
/// # Safety
/// As for [`super::run`].
pub(super) unsafe fn run(
    isa: Isa,
    runtime: &KernelRuntime,
    (c, s): (&Convolution, &Sizes),
    zero: i32,
) -> i64 {
    let lines = s.output[0] * s.output[1];
    let sums = match c.signed {
        true => for_isa!(isa, signed(p: &Few<'_>)).0,
        false => for_isa!(isa, unsigned(p: &Few<'_>)).0,
    };
    let piece = |index: usize| {
        let (batch, line) = (index / lines, index % lines);
        let at = [line / s.output[1], line % s.output[1], 0];
        let first = Few {
            c,
            s,
            zero,
            batch,
            at,
            results: 0,
            channels: (0, 0),
            to: (std::ptr::null_mut(), 0),
        };
        // SAFETY: guaranteed by the caller; each line is one piece's.
        unsafe { whole_line(isa, &first, sums) };
        STATUS_OK
    };
    let taps: usize = s.kernel.iter().product();
    let units = taps.saturating_mul(s.output[2]).saturating_mul(s.channels) / depthwise_unit();
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, s.batch * lines, units, &piece) }
}

/// The results of the line that contains `first`.
///
/// # Safety
/// As for [`super::run`]; the machine has the instructions of `sums`.
unsafe fn whole_line(isa: Isa, first: &Few<'_>, sums: unsafe fn(&Few<'_>)) {
    let (c, s) = (first.c, first.s);
    let mut scratch = [0i32; STEP * MAX_TILE_COLUMNS];
    let row = (first.at[0] * s.output[1] + first.at[1]) * s.output[2];
    let row = first.batch * s.pixels() + row;
    for channel in (0..s.channels).step_by(MAX_TILE_COLUMNS) {
        let columns = MAX_TILE_COLUMNS.min(s.channels - channel);
        for x in (0..s.output[2]).step_by(STEP) {
            let results = STEP.min(s.output[2] - x);
            let (to, apart) = match c.out.is_null() {
                true => (scratch.as_mut_ptr(), MAX_TILE_COLUMNS),
                false => (c.out.wrapping_add((row + x) * s.channels + channel), s.channels),
            };
            for from in (0..columns).step_by(CHANNELS) {
                let place = Few {
                    at: [first.at[0], first.at[1], x],
                    results,
                    channels: (channel + from, CHANNELS.min(columns - from)),
                    to: (to.wrapping_add(from), apart),
                    ..*first
                };
                // SAFETY: guaranteed by the caller.
                unsafe { sums(&place) };
            }
            let Some(epilogue) = &c.epilogue else { continue };
            let tile = EpilogueTile {
                data: to.cast(),
                row_stride: apart as isize,
                rows: results,
                columns,
                position: Position { batch: 0, row: row + x, column: channel },
            };
            // SAFETY: the sums are complete; guaranteed by the caller.
            unsafe { epilogue.finish(isa, &tile) };
        }
    }
}

/// The sums of signed bytes.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them; as for [`super::run`].
#[inline(always)]
unsafe fn signed<L: Lanes<Elem = f32>>(p: &Few<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { sums::<L>(p, |x| i32::from(x.cast_signed())) }
}

/// The sums of unsigned bytes.
///
/// # Safety
/// As for [`signed`].
#[inline(always)]
unsafe fn unsigned<L: Lanes<Elem = f32>>(p: &Few<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe { sums::<L>(p, i32::from) }
}

/// # Safety
/// As for [`signed`].
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "says which instructions the compiler may use"
)]
#[inline(always)]
unsafe fn sums<L: Lanes<Elem = f32>>(p: &Few<'_>, value: impl Fn(u8) -> i32) {
    let s = p.s;
    let first = p.at[2] * s.stride[2];
    let last = first + (STEP - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2];
    let inside = first >= s.before[2] && last < s.before[2] + s.input[2];
    // SAFETY: guaranteed by the caller.
    unsafe {
        if inside && p.results == STEP && p.channels.1 == CHANNELS {
            sums_of::<true>(p, value);
        } else {
            sums_of::<false>(p, value);
        }
    }
}

/// The sums of some results. `WHOLE` states that there are [`STEP`] results and [`CHANNELS`] channels, and that all taps along a
/// line lie inside the input: the loops then have no branches, and the sums stay in registers.
///
/// # Safety
/// As for [`signed`].
#[inline(always)]
unsafe fn sums_of<const WHOLE: bool>(p: &Few<'_>, value: impl Fn(u8) -> i32) {
    let (s, (channel, count)) = (p.s, p.channels);
    let (results, count) = if WHOLE { (STEP, CHANNELS) } else { (p.results, count) };
    let inside = |at: usize, d: usize| at.checked_sub(s.before[d]).filter(|&i| i < s.input[d]);
    let mut zeros = [0i32; CHANNELS];
    if !p.c.w_zeros.is_null() {
        // SAFETY: guaranteed by the caller.
        let own = unsafe { from_raw_parts(p.c.w_zeros.add(channel), count) };
        zeros[..count].copy_from_slice(own);
    }
    let mut sums = [[0i32; CHANNELS]; STEP];
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
                    let at = if WHOLE { Some(at - s.before[2]) } else { inside(at, 2) };
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

/// Loads `count` bytes of adjacent channels, padded with zeros.
///
/// # Safety
/// That many bytes are readable.
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
