//! Windows of images with contiguous rows, such as those with channels first.
//!
//! Recipe: windows are combined one dim after the other. A strip of input columns is combined over the planes and rows of the
//! windows, then over their columns. With a stride, the strip is split into phases between these steps, so that vectors load
//! adjacent elements in both. Short lines take these steps together, since a load waits for the stores that it overlaps.

use std::mem::MaybeUninit;

use pliant_exec::abi::{STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::kernels::pool::{MAX_WINDOW_COLUMNS, MAX_WINDOW_SPAN};
use pliant_machine::isa::isa;

use super::{Combine, Max, Mean, WIDEST, Windows, strided};
use crate::lanes::{MathLanes, for_isa};
use crate::product::parallel::parallel_for;
use crate::rules::convolution::copied_unit;

/// Maximum number of columns of a strip that has several results: 16 KB, beside as many in phases.
const STRIP: usize = 4096;
/// Maximum number of lines whose strips are combined at a time.
const LINES: usize = 16;
const _: () = assert!(2 * (MAX_WINDOW_SPAN as usize + 1) <= STRIP);

/// How lines are cut into strips, and how many lines share the buffer.
struct Strips {
    /// Maximum number of results of a strip.
    results: usize,
    /// Maximum number of lines whose strips are combined at a time.
    lines: usize,
    /// The number of phases.
    stride: usize,
    /// The number of columns of a strip in each phase.
    each: usize,
    /// For each column of a window, the position in the phases of the element for the first result.
    taps: [u16; MAX_WINDOW_COLUMNS as usize],
}

impl Strips {
    fn of(w: &Windows<'_>) -> Strips {
        let (columns, stride, dilation) = (w.kernel[2], w.stride[2], w.dilation[2]);
        // The declaration limits the span.
        let span = (columns - 1) * dilation + 1;
        let results = ((STRIP - span) / stride + 1).min(w.output[2]);
        let stride = if results > 1 { stride } else { 1 };
        let each = ((results - 1) * stride + span).div_ceil(stride);
        let lines = (STRIP / (stride * each)).clamp(1, LINES);
        let mut taps = [0; MAX_WINDOW_COLUMNS as usize];
        for (t, tap) in taps.iter_mut().take(columns).enumerate() {
            let position = t * dilation;
            *tap = (position % stride * (lines * each) + position / stride) as u16;
        }
        Strips { results, lines, stride, each, taps }
    }
}

/// Lines of results, from one on. They are numbered in row-major order of (batch, channel, depth, height).
struct Lines {
    first: usize,
    count: usize,
}

/// All lines of results, in parallel. Returns a kernel status.
///
/// # Safety
/// The operands have the elements of the windows and share no memory. Their rows are contiguous.
pub(super) unsafe fn run(w: &Windows<'_>, mean: bool) -> i64 {
    let run = match mean {
        false => for_isa!(isa(), max_lines(w: &Windows<'_>, strips: &Strips, lines: &Lines)).0,
        true => for_isa!(isa(), mean_lines(w: &Windows<'_>, strips: &Strips, lines: &Lines)).0,
    };
    let strips = Strips::of(w);
    let lines = w.batch * w.channels * w.output[0] * w.output[1];
    let reads = w.kernel[0].saturating_mul(w.kernel[1]).saturating_add(w.kernel[2] + 2);
    let columns = w.output[2].saturating_mul(w.stride[2]).min(w.input[2]).max(w.output[2]);
    let work = reads.saturating_mul(columns).max(1);
    // A multiply-add reads an element of a row, as an iteration here does.
    let unit = 2 * copied_unit();
    let each = (16 * unit / work).clamp(1, lines);
    let piece = |index: usize| {
        let first = index * each;
        // SAFETY: guaranteed by the caller. Each line is in one piece.
        unsafe { run(w, &strips, &Lines { first, count: each.min(lines - first) }) };
        if w.runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
    };
    let units = work.saturating_mul(each) / unit;
    // SAFETY: the runtime is valid, and the kernels do not unwind.
    unsafe { parallel_for(w.runtime, lines.div_ceil(each), units, &piece) }
}

/// # Safety
/// The machine has the instructions, and the caller has enabled them. All elements are valid.
#[inline(always)]
unsafe fn max_lines<L: MathLanes<Elem = f32>>(w: &Windows<'_>, strips: &Strips, lines: &Lines) {
    // SAFETY: guaranteed by the caller.
    unsafe { compute::<L, Max>(w, strips, lines) }
}

/// # Safety
/// As for [`max_lines`].
#[inline(always)]
unsafe fn mean_lines<L: MathLanes<Elem = f32>>(w: &Windows<'_>, strips: &Strips, lines: &Lines) {
    // SAFETY: guaranteed by the caller.
    unsafe { compute::<L, Mean>(w, strips, lines) }
}

/// # Safety
/// As for [`max_lines`].
#[inline(always)]
unsafe fn compute<L: MathLanes<Elem = f32>, C: Combine<L>>(
    w: &Windows<'_>,
    strips: &Strips,
    lines: &Lines,
) {
    let mut memory = [MaybeUninit::uninit(); MEMORY];
    let mut buffer = Buffer::new(&mut memory, strips);
    for first in (0..w.output[2]).step_by(strips.results) {
        let count = strips.results.min(w.output[2] - first);
        if C::COUNTS {
            for (at, own) in buffer.counts.iter_mut().take(count).enumerate() {
                *own = w.elements(2, first + at).1 as f32;
            }
        }
        for start in (0..lines.count).step_by(strips.lines) {
            if w.runtime.is_interrupted() {
                return;
            }
            let group = strips.lines.min(lines.count - start);
            let mut outs = [(std::ptr::null_mut(), 0.0); LINES];
            let mut at = Line::of(w, lines.first + start);
            for (index, out) in outs.iter_mut().take(group).enumerate() {
                let stack = at.stack(w);
                *out = (at.results(w, first), stack.rows() as f32);
                // SAFETY: guaranteed by the caller; the rows exist.
                unsafe { buffer.combine_rows::<L, C>(w, strips, &stack, (index, first)) };
                at.advance(w);
            }
            // SAFETY: guaranteed by the caller; the results exist.
            unsafe {
                buffer.split_phases(strips, group);
                for (index, &(out, rows)) in outs.iter().take(group).enumerate() {
                    buffer.combine_columns::<L, C>(w, strips, (index, rows), count, out);
                }
            }
        }
    }
}

/// A line of results.
struct Line {
    batch: usize,
    channel: usize,
    z: usize,
    y: usize,
}

impl Line {
    fn of(w: &Windows<'_>, line: usize) -> Line {
        let (image, y) = (line / w.output[1], line % w.output[1]);
        let (image, z) = (image / w.output[0], image % w.output[0]);
        Line { batch: image / w.channels, channel: image % w.channels, z, y }
    }

    /// Moves to the next line.
    #[inline(always)]
    fn advance(&mut self, w: &Windows<'_>) {
        self.y += 1;
        if self.y == w.output[1] {
            (self.y, self.z) = (0, self.z + 1);
        }
        if self.z == w.output[0] {
            (self.z, self.channel) = (0, self.channel + 1);
        }
        if self.channel == w.channels {
            (self.channel, self.batch) = (0, self.batch + 1);
        }
    }

    #[inline(always)]
    fn stack(&self, w: &Windows<'_>) -> Stack {
        let (planes, rows) = (w.elements(0, self.z), w.elements(1, self.y));
        let from = w.x.1.of([self.batch, self.channel, planes.0, rows.0, 0]);
        let step = |d: usize| (w.dilation[d] as isize).wrapping_mul(w.x.1.0[2 + d]);
        Stack {
            from: w.x.0.wrapping_offset(from),
            counts: [planes.1, rows.1],
            steps: [step(0), step(1)],
        }
    }

    /// The address of result `first`.
    #[inline(always)]
    fn results(&self, w: &Windows<'_>, first: usize) -> *mut f32 {
        w.out.0.wrapping_offset(w.out.1.of([self.batch, self.channel, self.z, self.y, first]))
    }
}

/// The rows of the windows of a line: the address of the first one, and their counts and strides in both outer dims.
struct Stack {
    from: *const f32,
    counts: [usize; 2],
    steps: [isize; 2],
}

impl Stack {
    fn rows(&self) -> usize {
        self.counts[0] * self.counts[1]
    }
}

/// The strips of some lines, combined over rows, and their phases.
struct Buffer<'a> {
    strips: &'a mut [f32],
    /// Empty without a stride.
    phases: &'a mut [f32],
    /// The number of columns of each window that exist.
    counts: &'a mut [f32],
}

/// Maximum number of elements of a buffer.
const MEMORY: usize = 2 * (2 * STRIP + WIDEST) + STRIP + WIDEST;

impl<'a> Buffer<'a> {
    /// A buffer of zeros. Only what the strips need is written.
    #[inline(always)]
    fn new(memory: &'a mut [MaybeUninit<f32>; MEMORY], strips: &Strips) -> Buffer<'a> {
        let columns = strips.lines * strips.stride * strips.each + WIDEST;
        let phases = if strips.stride > 1 { columns } else { 0 };
        let counts = strips.results + WIDEST;
        let used = &mut memory[..columns + phases + counts];
        used.fill(MaybeUninit::new(0.0));
        // SAFETY: the elements were just written.
        let used =
            unsafe { std::slice::from_raw_parts_mut(used.as_mut_ptr().cast::<f32>(), used.len()) };
        let (strips, rest) = used.split_at_mut(columns);
        let (phases, counts) = rest.split_at_mut(phases);
        Buffer { strips, phases, counts }
    }

    /// Combines the rows of the strip of line `index` that starts with the window of result `first`.
    ///
    /// # Safety
    /// As for [`max_lines`]; the rows exist.
    #[inline(always)]
    unsafe fn combine_rows<L: MathLanes<Elem = f32>, C: Combine<L>>(
        &mut self,
        w: &Windows<'_>,
        strips: &Strips,
        stack: &Stack,
        (index, first): (usize, usize),
    ) {
        let len = strips.stride * strips.each;
        let start = first.saturating_mul(w.stride[2]);
        // The columns of the strip that exist.
        let low = w.before[2].saturating_sub(start).min(len);
        let high = (w.input[2] + w.before[2]).saturating_sub(start).clamp(low, len);
        // SAFETY: guaranteed by the caller. Vectors may end in the next strip, which is written later, or after the last one.
        unsafe {
            let to = self.strips.as_mut_ptr().add(index * len);
            for at in (0..low).step_by(L::N) {
                C::start().store(to.add(at));
            }
            let column = (start + low).wrapping_sub(w.before[2]);
            combine::<L, C>(stack, column, to.add(low), high - low);
            for at in (high..len).step_by(L::N) {
                C::start().store(to.add(at));
            }
        }
    }

    /// Splits the strips of `lines` lines into phases.
    ///
    /// # Safety
    /// The strips are written.
    #[inline(always)]
    unsafe fn split_phases(&mut self, strips: &Strips, lines: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match strips.stride {
                1 => {}
                2 => self.split::<2>(strips, lines),
                3 => self.split::<3>(strips, lines),
                4 => self.split::<4>(strips, lines),
                _ => self.split::<0>(strips, lines),
            }
        }
    }

    /// As [`Self::split_phases`]. `S` is the number of phases, or 0 if it is not constant.
    ///
    /// # Safety
    /// The strips are written.
    #[inline(always)]
    unsafe fn split<const S: usize>(&mut self, strips: &Strips, lines: usize) {
        let (from, to) = (&*self.strips, &mut *self.phases);
        let (stride, all) = (if S > 0 { S } else { strips.stride }, strips.lines * strips.each);
        for q in 0..lines * strips.each {
            for r in 0..stride {
                // SAFETY: guaranteed by the caller; both have `stride * all` elements.
                unsafe { *to.get_unchecked_mut(r * all + q) = *from.get_unchecked(q * stride + r) };
            }
        }
    }

    /// Combines the columns of `count` windows of line `index`, which have `rows` rows.
    ///
    /// # Safety
    /// As for [`max_lines`]; the results exist.
    #[inline(always)]
    unsafe fn combine_columns<L: MathLanes<Elem = f32>, C: Combine<L>>(
        &self,
        w: &Windows<'_>,
        strips: &Strips,
        (index, rows): (usize, f32),
        count: usize,
        out: *mut f32,
    ) {
        let all = if strips.stride > 1 { &*self.phases } else { &*self.strips };
        let taps = &strips.taps[..w.kernel[2]];
        let mut at = 0;
        // SAFETY: guaranteed by the caller; a vector from the last result on ends inside of the buffers.
        unsafe {
            let (from, counts) = (all.as_ptr().add(index * strips.each), self.counts.as_ptr());
            while at + 4 * L::N <= count {
                let positions = [at, at + L::N, at + 2 * L::N, at + 3 * L::N];
                let values = columns_at::<L, C, 4>(taps, from, positions, (rows, counts));
                for v in 0..4 {
                    values[v].store(out.add(positions[v]));
                }
                at += 4 * L::N;
            }
            while at + L::N < count {
                let [a, b] = columns_at::<L, C, 2>(taps, from, [at, at + L::N], (rows, counts));
                a.store(out.add(at));
                b.store_first(out.add(at + L::N), L::N.min(count - at - L::N));
                at += 2 * L::N;
            }
            if at < count {
                let [value] = columns_at::<L, C, 1>(taps, from, [at], (rows, counts));
                value.store_first(out.add(at), count - at);
            }
        }
    }
}

/// The results of windows at the given positions, which have `rows` rows and the given numbers of columns.
///
/// # Safety
/// As for [`max_lines`]; the columns exist.
#[inline(always)]
unsafe fn columns_at<L: MathLanes<Elem = f32>, C: Combine<L>, const V: usize>(
    taps: &[u16],
    from: *const f32,
    at: [usize; V],
    (rows, counts): (f32, *const f32),
) -> [L; V] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut values = [C::start(); V];
        for &tap in taps {
            for v in 0..V {
                values[v] = C::add(values[v], L::load(from.add(tap as usize + at[v])));
            }
        }
        for v in 0..V {
            values[v] = C::finish_each(values[v], rows, counts.add(at[v]));
        }
        values
    }
}

/// Combines `count` columns of a stack of rows from `column` on.
///
/// # Safety
/// As for [`max_lines`]; the columns exist.
#[inline(always)]
unsafe fn combine<L: MathLanes<Elem = f32>, C: Combine<L>>(
    stack: &Stack,
    column: usize,
    to: *mut f32,
    count: usize,
) {
    let mut at = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while at + 4 * L::N <= count {
            let positions = [at, at + L::N, at + 2 * L::N, at + 3 * L::N];
            combine_at::<L, C, 4>(stack, column, to, positions);
            at += 4 * L::N;
        }
        while at + 2 * L::N <= count {
            combine_at::<L, C, 2>(stack, column, to, [at, at + L::N]);
            at += 2 * L::N;
        }
        // The last vector overlaps the one before it, or is loaded in part. Partial stores would delay the loads that follow.
        match count - at {
            0 => {}
            rest if rest > L::N => combine_at::<L, C, 2>(stack, column, to, [at, count - L::N]),
            _ if count >= L::N => combine_at::<L, C, 1>(stack, column, to, [count - L::N]),
            rest => {
                let mut value = C::start();
                for plane in strided(stack.from, stack.counts[0], stack.steps[0]) {
                    for row in strided(plane, stack.counts[1], stack.steps[1]) {
                        value = C::add(value, L::load_first(row.add(column), rest));
                    }
                }
                value.store(to);
            }
        }
    }
}

/// Combines vectors of a stack of rows at the given positions from `column` on.
///
/// # Safety
/// As for [`max_lines`]; the columns exist.
#[inline(always)]
unsafe fn combine_at<L: MathLanes<Elem = f32>, C: Combine<L>, const V: usize>(
    stack: &Stack,
    column: usize,
    to: *mut f32,
    at: [usize; V],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut values = [C::start(); V];
        for plane in strided(stack.from, stack.counts[0], stack.steps[0]) {
            for row in strided(plane, stack.counts[1], stack.steps[1]) {
                for v in 0..V {
                    values[v] = C::add(values[v], L::load(row.add(column + at[v])));
                }
            }
        }
        for v in 0..V {
            values[v].store(to.add(at[v]));
        }
    }
}
