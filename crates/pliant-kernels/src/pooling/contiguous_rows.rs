//! Pooling of images with contiguous rows, such as images with channels first.
//!
//! Method: windows are reduced one dim after the other. A strip of input columns is reduced over
//! the planes and rows of the windows, and then over their columns. Between the two steps, if the
//! windows have a stride, the columns are reordered by their position modulo the stride (phase), so
//! that vectors load adjacent elements in both steps. Several short rows are processed together,
//! because a load from memory that was just stored must wait for the stores.

use std::mem::MaybeUninit;

use pliant_exec::abi::{STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::kernels::pooling::{MAX_WINDOW_COLUMNS, MAX_WINDOW_SPAN};
use pliant_machine::isa::isa;

use super::{Max, Mean, Reduction, WIDEST, Windows, strided_addresses};
use crate::algorithm_selection::partition::copied_unit;
use crate::matmul::work_partition::parallel_for;
use crate::simd::{MathLanes, for_isa};

/// Maximum number of input columns of a strip (adjacent columns that are reduced together). A strip
/// of this size takes 16 KB. Its copy, in which columns are reordered by their position modulo the
/// stride, takes another 16 KB.
const STRIP_COLUMNS: usize = 4096;
/// Maximum number of output rows whose strips (the columns under adjacent windows) are processed
/// together.
const MAX_LINES: usize = 16;
const _: () = assert!(2 * (MAX_WINDOW_SPAN as usize + 1) <= STRIP_COLUMNS);

/// The division of the output rows into strips, which are processed one after the other.
struct Strips {
    /// Maximum number of results of a strip in one output row.
    results: usize,
    /// Maximum number of output rows whose strips are processed together.
    lines: usize,
    /// The stride of the windows along an image row. It is also the number of phases (classes of
    /// columns with the same position modulo the stride).
    stride: usize,
    /// The number of columns of a strip in each phase (class of columns with the same position
    /// modulo the stride).
    phase_columns: usize,
    /// For each column of a window, the index of its input for the first result. The index refers
    /// to the strip after its columns are reordered by their position modulo the stride.
    taps: [u16; MAX_WINDOW_COLUMNS as usize],
}

impl Strips {
    fn of(w: &Windows<'_>) -> Strips {
        let (columns, stride, dilation) = (w.kernel[2], w.stride[2], w.dilation[2]);
        // The declaration limits the span.
        let span = (columns - 1) * dilation + 1;
        let results = ((STRIP_COLUMNS - span) / stride + 1).min(w.output[2]);
        let stride = if results > 1 { stride } else { 1 };
        let phase_columns = ((results - 1) * stride + span).div_ceil(stride);
        let lines = (STRIP_COLUMNS / (stride * phase_columns)).clamp(1, MAX_LINES);
        let mut taps = [0; MAX_WINDOW_COLUMNS as usize];
        for (t, tap) in taps.iter_mut().take(columns).enumerate() {
            let position = t * dilation;
            *tap = (position % stride * (lines * phase_columns) + position / stride) as u16;
        }
        Strips { results, lines, stride, phase_columns, taps }
    }
}

/// A range of output rows of pooling. Output rows are numbered in row-major order of batch,
/// channel, depth and height.
struct Lines {
    first: usize,
    count: usize,
}

/// Computes all output rows, on the worker team. Returns a kernel status: 0 on success.
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
    // Combining an element takes about half as long as copying it.
    let unit = 2 * copied_unit();
    let lines_per_piece = (16 * unit / work).clamp(1, lines);
    let piece = |index: usize| {
        let first = index * lines_per_piece;
        // SAFETY: guaranteed by the caller. Each line is in one piece.
        unsafe { run(w, &strips, &Lines { first, count: lines_per_piece.min(lines - first) }) };
        if w.runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
    };
    let units = work.saturating_mul(lines_per_piece) / unit;
    // SAFETY: the runtime is valid, and the kernels do not unwind.
    unsafe { parallel_for(w.runtime, lines.div_ceil(lines_per_piece), units, &piece) }
}

/// Computes a range of output rows of maximum pooling.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
unsafe fn max_lines<L: MathLanes<Elem = f32>>(w: &Windows<'_>, strips: &Strips, lines: &Lines) {
    // SAFETY: guaranteed by the caller.
    unsafe { compute::<L, Max>(w, strips, lines) }
}

/// Computes a range of output rows of mean pooling.
///
/// # Safety
/// The conditions of [`max_lines`] hold.
#[inline(always)]
unsafe fn mean_lines<L: MathLanes<Elem = f32>>(w: &Windows<'_>, strips: &Strips, lines: &Lines) {
    // SAFETY: guaranteed by the caller.
    unsafe { compute::<L, Mean>(w, strips, lines) }
}

/// Computes a range of output rows with the reduction `C` (maximum or mean).
///
/// # Safety
/// The conditions of [`max_lines`] hold.
#[inline(always)]
unsafe fn compute<L: MathLanes<Elem = f32>, C: Reduction<L>>(
    w: &Windows<'_>,
    strips: &Strips,
    lines: &Lines,
) {
    let mut memory = [MaybeUninit::uninit(); BUFFER_ELEMENTS];
    let mut buffer = Buffer::new(&mut memory, strips);
    for first in (0..w.output[2]).step_by(strips.results) {
        let count = strips.results.min(w.output[2] - first);
        if C::COUNTS {
            for (at, count_of_window) in buffer.counts.iter_mut().take(count).enumerate() {
                *count_of_window = w.elements(2, first + at).1 as f32;
            }
        }
        for start in (0..lines.count).step_by(strips.lines) {
            if w.runtime.is_interrupted() {
                return;
            }
            let group = strips.lines.min(lines.count - start);
            let mut outs = [(std::ptr::null_mut(), 0.0); MAX_LINES];
            let mut line = Line::of(w, lines.first + start);
            for (index, out) in outs.iter_mut().take(group).enumerate() {
                let window_rows = line.window_rows(w);
                *out = (line.results(w, first), window_rows.rows() as f32);
                // SAFETY: guaranteed by the caller; the rows are inside of the image.
                unsafe { buffer.reduce_rows::<L, C>(w, strips, &window_rows, (index, first)) };
                line.advance(w);
            }
            // SAFETY: guaranteed by the caller; the results exist.
            unsafe {
                buffer.split_phases(strips, group);
                for (index, &(out, rows)) in outs.iter().take(group).enumerate() {
                    buffer.reduce_columns::<L, C>(w, strips, (index, rows), count, out);
                }
            }
        }
    }
}

/// The indices (batch, channel, depth, height) of an output row.
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

    /// Advances to the next output row in row-major order.
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
    fn window_rows(&self, w: &Windows<'_>) -> WindowRows {
        let (planes, rows) = (w.elements(0, self.z), w.elements(1, self.y));
        let from = w.x.1.of([self.batch, self.channel, planes.0, rows.0, 0]);
        let step = |d: usize| (w.dilation[d] as isize).wrapping_mul(w.x.1.0[2 + d]);
        WindowRows {
            from: w.x.0.wrapping_offset(from),
            counts: [planes.1, rows.1],
            steps: [step(0), step(1)],
        }
    }

    /// The address of the result with index `first` in the output row.
    #[inline(always)]
    fn results(&self, w: &Windows<'_>, first: usize) -> *mut f32 {
        w.out.0.wrapping_offset(w.out.1.of([self.batch, self.channel, self.z, self.y, first]))
    }
}

/// The input rows under the windows of an output row: the address of the first row, and the counts
/// and strides of rows in the dims depth and height.
struct WindowRows {
    from: *const f32,
    counts: [usize; 2],
    steps: [isize; 2],
}

impl WindowRows {
    fn rows(&self) -> usize {
        self.counts[0] * self.counts[1]
    }
}

/// The scratch memory for a group of output rows: the strips after the reduction over rows, and
/// their copies with columns reordered by their position modulo the stride (phase).
struct Buffer<'a> {
    strips: &'a mut [f32],
    /// The strips with columns reordered by their position modulo the stride (phase); empty if the
    /// stride is 1.
    phases: &'a mut [f32],
    /// The number of columns of each window that are inside of the image.
    counts: &'a mut [f32],
}

/// Maximum number of elements of the memory of a [`Buffer`].
const BUFFER_ELEMENTS: usize = 2 * (2 * STRIP_COLUMNS + WIDEST) + STRIP_COLUMNS + WIDEST;

impl<'a> Buffer<'a> {
    /// Creates a buffer filled with zeros in `memory`. Only as much memory as the strips need is initialized.
    #[inline(always)]
    fn new(memory: &'a mut [MaybeUninit<f32>; BUFFER_ELEMENTS], strips: &Strips) -> Buffer<'a> {
        let columns = strips.lines * strips.stride * strips.phase_columns + WIDEST;
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

    /// Reduces the input rows under the windows of output row `index`, for the strip that starts at
    /// result `first`.
    ///
    /// # Safety
    /// The conditions of [`max_lines`] hold; the rows are inside of the image.
    #[inline(always)]
    unsafe fn reduce_rows<L: MathLanes<Elem = f32>, C: Reduction<L>>(
        &mut self,
        w: &Windows<'_>,
        strips: &Strips,
        window_rows: &WindowRows,
        (index, first): (usize, usize),
    ) {
        let len = strips.stride * strips.phase_columns;
        let start = first.saturating_mul(w.stride[2]);
        // The columns of the strip that are inside of the image.
        let low = w.before[2].saturating_sub(start).min(len);
        let high = (w.input[2] + w.before[2]).saturating_sub(start).clamp(low, len);
        // SAFETY: guaranteed by the caller. Vectors may end in the next strip, which is written later, or after the
        // last one.
        unsafe {
            let to = self.strips.as_mut_ptr().add(index * len);
            for at in (0..low).step_by(L::N) {
                C::start().store(to.add(at));
            }
            let column = (start + low).wrapping_sub(w.before[2]);
            reduce::<L, C>(window_rows, column, to.add(low), high - low);
            for at in (high..len).step_by(L::N) {
                C::start().store(to.add(at));
            }
        }
    }

    /// Reorders the columns of the strips of `lines` output rows by their position modulo the
    /// stride (phase), if the stride is not 1.
    ///
    /// # Safety
    /// [`Self::reduce_rows`] has written the strips.
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

    /// Implements [`Self::split_phases`] for a stride of `S`, or for any stride if `S` is 0.
    ///
    /// # Safety
    /// [`Self::reduce_rows`] has written the strips.
    #[inline(always)]
    unsafe fn split<const S: usize>(&mut self, strips: &Strips, lines: usize) {
        let (from, to) = (&*self.strips, &mut *self.phases);
        let (stride, phase_len) =
            (if S > 0 { S } else { strips.stride }, strips.lines * strips.phase_columns);
        for q in 0..lines * strips.phase_columns {
            for r in 0..stride {
                // SAFETY: guaranteed by the caller; both have `stride * phase_len` elements.
                unsafe {
                    *to.get_unchecked_mut(r * phase_len + q) = *from.get_unchecked(q * stride + r)
                };
            }
        }
    }

    /// Reduces the columns of `count` windows of output row `index`, and stores the results. The
    /// windows contain `rows` rows of the image.
    ///
    /// # Safety
    /// The conditions of [`max_lines`] hold; the results are inside of the output.
    #[inline(always)]
    unsafe fn reduce_columns<L: MathLanes<Elem = f32>, C: Reduction<L>>(
        &self,
        w: &Windows<'_>,
        strips: &Strips,
        (index, rows): (usize, f32),
        count: usize,
        out: *mut f32,
    ) {
        let columns = if strips.stride > 1 { &*self.phases } else { &*self.strips };
        let taps = &strips.taps[..w.kernel[2]];
        let mut at = 0;
        // SAFETY: guaranteed by the caller; a vector that starts at the last result ends inside of the buffers.
        unsafe {
            let (from, counts) =
                (columns.as_ptr().add(index * strips.phase_columns), self.counts.as_ptr());
            while at + 4 * L::N <= count {
                let positions = [at, at + L::N, at + 2 * L::N, at + 3 * L::N];
                let values = window_results::<L, C, 4>(taps, from, positions, (rows, counts));
                for v in 0..4 {
                    values[v].store(out.add(positions[v]));
                }
                at += 4 * L::N;
            }
            while at + L::N < count {
                let [a, b] = window_results::<L, C, 2>(taps, from, [at, at + L::N], (rows, counts));
                a.store(out.add(at));
                b.store_first(out.add(at + L::N), L::N.min(count - at - L::N));
                at += 2 * L::N;
            }
            if at < count {
                let [value] = window_results::<L, C, 1>(taps, from, [at], (rows, counts));
                value.store_first(out.add(at), count - at);
            }
        }
    }
}

/// Computes the pooling results of `V` vectors of adjacent windows, which start at the positions `at` in the strip. The windows
/// contain `rows` rows of the image, and `counts` points to the number of columns of each window.
///
/// # Safety
/// The conditions of [`max_lines`] hold; the columns are inside of the image.
#[inline(always)]
unsafe fn window_results<L: MathLanes<Elem = f32>, C: Reduction<L>, const V: usize>(
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

/// Reduces `count` columns, from `column` on, over the rows under the windows.
///
/// # Safety
/// The conditions of [`max_lines`] hold; the columns are inside of the image.
#[inline(always)]
unsafe fn reduce<L: MathLanes<Elem = f32>, C: Reduction<L>>(
    window_rows: &WindowRows,
    column: usize,
    to: *mut f32,
    count: usize,
) {
    let mut at = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while at + 4 * L::N <= count {
            let positions = [at, at + L::N, at + 2 * L::N, at + 3 * L::N];
            reduce_at::<L, C, 4>(window_rows, column, to, positions);
            at += 4 * L::N;
        }
        while at + 2 * L::N <= count {
            reduce_at::<L, C, 2>(window_rows, column, to, [at, at + L::N]);
            at += 2 * L::N;
        }
        // The last vector overlaps the previous one, or is loaded in part. Partial stores would delay the loads that
        // follow.
        match count - at {
            0 => {}
            rest if rest > L::N => {
                reduce_at::<L, C, 2>(window_rows, column, to, [at, count - L::N])
            }
            _ if count >= L::N => reduce_at::<L, C, 1>(window_rows, column, to, [count - L::N]),
            rest => {
                let mut value = C::start();
                for plane in
                    strided_addresses(window_rows.from, window_rows.counts[0], window_rows.steps[0])
                {
                    for row in strided_addresses(plane, window_rows.counts[1], window_rows.steps[1])
                    {
                        value = C::add(value, L::load_first(row.add(column), rest));
                    }
                }
                value.store(to);
            }
        }
    }
}

/// Reduces `V` vectors of columns over the rows under the windows. Vector `v` starts at column
/// `column + at[v]`.
///
/// # Safety
/// The conditions of [`max_lines`] hold; the columns are inside of the image.
#[inline(always)]
unsafe fn reduce_at<L: MathLanes<Elem = f32>, C: Reduction<L>, const V: usize>(
    window_rows: &WindowRows,
    column: usize,
    to: *mut f32,
    at: [usize; V],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut values = [C::start(); V];
        for plane in
            strided_addresses(window_rows.from, window_rows.counts[0], window_rows.steps[0])
        {
            for row in strided_addresses(plane, window_rows.counts[1], window_rows.steps[1]) {
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
