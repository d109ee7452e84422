//! Computes attention for a range of query rows: loops over blocks of rows, and for each block of
//! rows over blocks of keys.
//!
//! Method: the matmul kernel computes scores from packed keys, softmax runs in place, and the
//! matmul kernel multiplies the weights by the values. Several blocks of keys are processed as in
//! FlashAttention (Dao et al., 2022). For measurements, see "Attention" in
//! `docs/internals/measurements/attention.md`.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null;

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};

use super::block_sizes::{Blocking, Scratch};
use super::pv_matmul::Block;
use super::score_dot_products::Dots;
use super::score_softmax::{Row, ScoreBlock};
use super::{Attention, FullyMasked, Ops, Scores, Sizes};
use crate::algorithm_selection::attention::MAX_ROWS;
use crate::matmul::micro_kernel::{KSegment, Prefetch, Tile};
use crate::matmul::row_tiling::slivers;

/// A range of query rows of one work item (all queries that share a key head), which one thread
/// computes.
pub struct Piece<'a> {
    pub a: &'a Attention,
    pub s: Sizes,
    pub ops: &'a Ops,
    pub batch: usize,
    pub kv_head: usize,
    /// The range of rows. The rows of a work item are the queries of all query heads that share the
    /// key head, one head after the other.
    pub rows: Range<usize>,
}

impl Piece<'_> {
    /// Computes attention for the query rows of this piece of work. Returns a kernel status: 0 on
    /// success.
    ///
    /// # Safety
    /// The machine has the instructions of `ops`. All addressed elements are valid; the results
    /// overlap no operand.
    pub unsafe fn run(&self, runtime: &KernelRuntime) -> i64 {
        let seen = self.rows.clone().map(|r| self.visible(r)).filter(|v| !v.is_empty());
        let span = seen.reduce(|x, y| x.start.min(y.start)..x.end.max(y.end));
        let Some(span) = span else {
            // SAFETY: guaranteed by the caller.
            unsafe { self.fill_fully_masked(self.rows.clone()) };
            return STATUS_OK;
        };
        let blocking = Blocking::new(self, span);
        let Some((sizes, stride)) = blocking.sizes(self) else { return STATUS_NO_MEMORY };
        // SAFETY: the runtime is valid; the block is freed below, on this thread.
        let block = unsafe {
            (runtime.alloc_workspace)((sizes.iter().sum::<usize>() * size_of::<f32>()) as u64)
        };
        if block.is_null() {
            return STATUS_NO_MEMORY;
        }
        let mut scratch = Scratch::new(block.cast(), sizes, stride);
        let mut row = self.rows.start;
        while row < self.rows.end {
            let rows = row..self.block_end(row, blocking.rows);
            row = rows.end;
            // SAFETY: guaranteed by the caller; the parts of the scratch memory are large enough.
            unsafe { self.block(rows, &blocking, &mut scratch) };
        }
        // SAFETY: as above.
        unsafe { (runtime.free_workspace)(block) };
        STATUS_OK
    }

    /// Whether all rows of a work item have a uniform stride in memory, including rows of different heads.
    fn has_uniform_rows(&self) -> bool {
        let queries = self.s.queries as i64;
        let is_uniform = |head: i64, row: i64| queries.checked_mul(row) == Some(head);
        queries == 1
            || is_uniform(self.a.q.head, self.a.q.row)
                && is_uniform(self.a.out.head, self.a.out.row)
    }

    /// Returns the end of the block of at most `max_rows` rows that starts at `row`. A block stays
    /// within a head unless all rows have a uniform stride.
    fn block_end(&self, row: usize, max_rows: usize) -> usize {
        let head_end = (row / self.s.queries + 1) * self.s.queries;
        let end = self.rows.end.min(row + max_rows);
        if self.has_uniform_rows() { end } else { end.min(head_end) }
    }

    /// Returns the query head and the query to which a row of the work item belongs.
    fn head_and_query(&self, row: usize) -> (i64, i64) {
        let head = self.kv_head * self.s.group + row / self.s.queries;
        (head as i64, (row % self.s.queries) as i64)
    }

    /// Returns the range of keys to which a row attends, according to the causal mask.
    fn visible(&self, row: usize) -> Range<usize> {
        let a = self.a;
        if !a.causal {
            return 0..self.s.keys;
        }
        let visible_end = self.head_and_query(row).1.saturating_add(a.offset).saturating_add(1);
        let end = visible_end.clamp(0, self.s.keys as i64);
        let start =
            if a.window > 0 { visible_end.saturating_sub(a.window).clamp(0, end) } else { 0 };
        start as usize..end as usize
    }

    /// Returns the address of the attention result of a query row of the work item.
    fn out(&self, row: usize) -> *mut f32 {
        let (head, query) = self.head_and_query(row);
        let o = &self.a.out;
        let offset = self.batch as i64 * o.batch + head * o.head + query * o.row;
        o.data.wrapping_offset(offset as isize)
    }

    /// Returns the stride between adjacent query rows of a block, in elements. If each head has only one query, adjacent rows
    /// belong to adjacent heads, and the result is the head stride `head`. Otherwise, the result is `row`.
    fn row_stride(&self, head: i64, row: i64) -> isize {
        (if self.s.queries == 1 { head } else { row }) as isize
    }

    /// Returns the result of a row that attends to no key. If there are no keys at all, the result
    /// is the empty sum, 0.
    fn fully_masked(&self) -> f32 {
        if self.a.fully_masked == FullyMasked::Nan && self.s.keys > 0 { f32::NAN } else { 0.0 }
    }

    /// Writes the results of rows that attend to no key.
    ///
    /// # Safety
    /// The conditions of [`Piece::run`] hold.
    unsafe fn fill_fully_masked(&self, rows: Range<usize>) {
        for row in rows {
            let out = self.out(row);
            // SAFETY: guaranteed by the caller. Elements need not be aligned.
            (0..self.s.value_size)
                .for_each(|at| unsafe { out.add(at).write_unaligned(self.fully_masked()) });
        }
    }

    /// Computes the results of a block of rows, one block of keys after the other.
    ///
    /// # Safety
    /// The conditions of [`Piece::run`] hold.
    unsafe fn block(&self, rows: Range<usize>, blocking: &Blocking, scratch: &mut Scratch) {
        let mut states = [const { MaybeUninit::uninit() }; MAX_ROWS];
        let states = &mut states[..rows.len()];
        // SAFETY: each is written here.
        let states = unsafe {
            states.iter_mut().for_each(|row| {
                row.write(Row::NEW);
            });
            &mut *(std::ptr::from_mut(states) as *mut [Row])
        };
        let mut score_block = self.score_block(scratch, states);
        let seen = rows.clone().map(|r| self.visible(r)).filter(|v| !v.is_empty());
        let Some(seen) = seen.reduce(|x, y| x.start.min(y.start)..x.end.max(y.end)) else {
            // SAFETY: guaranteed by the caller.
            unsafe { self.fill_fully_masked(rows) };
            return;
        };
        let panel = self.ops.kernels.columns();
        let out = (self.out(rows.start), self.row_stride(self.a.out.head, self.a.out.row));
        let mut key = seen.start / panel * panel;
        let mut first = true;
        while key < seen.end {
            let keys = key..seen.end.min(key + blocking.key_step);
            key = keys.end;
            // SAFETY: guaranteed by the caller.
            unsafe {
                self.pack(&keys, blocking, scratch);
                self.scores(rows.clone(), &keys, blocking, scratch);
                self.set_visible(rows.clone(), &keys, &mut score_block);
                (self.ops.softmax)(&mut score_block);
                if !first {
                    (self.ops.finish)(&score_block, out.0, out.1, self.s.value_size, false);
                }
                self.multiply_values(score_block.rows, &keys, (blocking, scratch), out, !first);
            }
            first = false;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { (self.ops.finish)(&score_block, out.0, out.1, self.s.value_size, true) };
    }

    /// Creates the block of scores for `rows`, in the state before the first block of keys.
    fn score_block<'r>(&self, scratch: &Scratch, rows: &'r mut [Row]) -> ScoreBlock<'r> {
        ScoreBlock {
            scores: scratch.scores,
            stride: scratch.stride,
            width: 0,
            scale: self.a.scale as f32,
            cap: self.a.cap as f32,
            bias_stride: self.a.bias.map_or(0, |bias| bias.column as isize),
            bias_hides: self.a.fully_masked == FullyMasked::Zeros,
            mask_stride: self.a.mask.map_or(0, |mask| mask.column as isize),
            masked_score: self.a.masked_score as f32,
            mask_before_bias: self.a.mask_before_bias,
            fully_masked: self.fully_masked(),
            nan_is_fully_masked: self.a.fully_masked == FullyMasked::ZerosForNan,
            rows,
        }
    }

    /// Sets for each row the range of visible keys (to which the row attends), the bias and the
    /// mask in the block of keys `keys`.
    fn set_visible(&self, rows: Range<usize>, keys: &Range<usize>, block: &mut ScoreBlock<'_>) {
        block.width = keys.len().next_multiple_of(self.ops.kernels.lanes);
        for (row, to) in rows.zip(block.rows.iter_mut()) {
            let seen = self.visible(row);
            to.low = seen.start.clamp(keys.start, keys.end) - keys.start;
            to.high = seen.end.clamp(keys.start, keys.end) - keys.start;
            to.bias = self.score(self.a.bias, row, keys.start);
            to.mask = self.score(self.a.mask, row, keys.start);
        }
    }

    /// The address of the element of a bias or mask for a row and a key; null if the operand is absent.
    fn score<T>(&self, s: Option<Scores<T>>, row: usize, key: usize) -> *const T {
        let Some(s) = s else { return null() };
        let (head, query) = self.head_and_query(row);
        let offset =
            self.batch as i64 * s.batch + head * s.head + query * s.row + key as i64 * s.column;
        s.data.wrapping_offset(offset as isize)
    }

    /// Packs a range of keys and their values, unless they are already packed or are read in place.
    ///
    /// # Safety
    /// The conditions of [`Piece::run`] hold.
    unsafe fn pack(&self, keys: &Range<usize>, blocking: &Blocking, scratch: &mut Scratch) {
        let whole = blocking.span.len() <= blocking.key_step;
        let range = if whole { blocking.span.clone() } else { keys.clone() };
        if scratch.packed == range {
            return;
        }
        let (batch, head) = (self.batch as i64, self.kv_head as i64);
        let from = |h: &super::Heads<*const f32>| {
            let row = range.start as i64 * h.row;
            (
                h.data.wrapping_offset((batch * h.batch + head * h.head + row) as isize),
                h.row as isize,
            )
        };
        let (lanes, panel) = (self.ops.kernels.lanes, self.ops.kernels.columns());
        // SAFETY: guaranteed by the caller; the scratch memory has room for a block.
        unsafe {
            if blocking.pack_keys {
                let (k, k_row) = from(&self.a.k);
                for first in (0..range.len()).step_by(panel) {
                    let count = panel.min(range.len() - first);
                    let to = scratch.keys.add(first * self.s.size);
                    if count % lanes != 0 {
                        // The padding keys are 0. Their scores are computed, but not used.
                        let rest = count / lanes * lanes;
                        for p in 0..self.s.size {
                            to.add(p * panel + rest).write_bytes(0, lanes);
                        }
                    }
                    let k = k.wrapping_offset(first as isize * k_row);
                    self.ops.kernels.transpose(
                        (k, k_row),
                        (to, panel as isize),
                        count,
                        self.s.size,
                    );
                }
            }
            if blocking.pack_values {
                let (v, v_row) = from(&self.a.v);
                let width = self.s.value_size.next_multiple_of(lanes);
                for at in 0..range.len() {
                    let to = scratch.values.add(at * width);
                    let v = v.wrapping_offset(at as isize * v_row);
                    std::ptr::copy_nonoverlapping(v, to, self.s.value_size);
                    to.add(self.s.value_size).write_bytes(0, width - self.s.value_size);
                }
            }
        }
        scratch.packed = range;
    }

    /// Computes the scores of a block of rows and a block of keys.
    ///
    /// # Safety
    /// The conditions of [`Piece::run`] hold; if `blocking` requires packed keys, the keys are
    /// packed.
    unsafe fn scores(
        &self,
        rows: Range<usize>,
        keys: &Range<usize>,
        blocking: &Blocking,
        scratch: &Scratch,
    ) {
        let (head, query) = self.head_and_query(rows.start);
        let h = &self.a.q;
        let offset = self.batch as i64 * h.batch + head * h.head + query * h.row;
        let (q, q_row) = (h.data.wrapping_offset(offset as isize), self.row_stride(h.head, h.row));
        if !blocking.pack_keys {
            let k = &self.a.k;
            let offset = self.batch as i64 * k.batch
                + self.kv_head as i64 * k.head
                + keys.start as i64 * k.row;
            let dots = Dots {
                q,
                q_row,
                rows: rows.len(),
                k: k.data.wrapping_offset(offset as isize),
                k_row: k.row as isize,
                keys: keys.len(),
                size: self.s.size,
                scores: scratch.scores,
                stride: scratch.stride,
            };
            // SAFETY: guaranteed by the caller.
            unsafe { (self.ops.dots)(&dots) };
            return;
        }
        let (lanes, panel) = (self.ops.kernels.lanes, self.ops.kernels.columns());
        for column in (0..keys.len()).step_by(panel) {
            let columns = panel.min(keys.len() - column).next_multiple_of(lanes);
            let first = keys.start + column - scratch.packed.start;
            for (row, height) in slivers(rows.len()) {
                // SAFETY: guaranteed by the caller; rows of scores have room for whole panels.
                unsafe {
                    let mut tile = Tile {
                        segments: &[KSegment::leading(self.s.size)],
                        a: q.wrapping_offset(row as isize * q_row),
                        a_row: q_row,
                        a_col: 1,
                        b: scratch.keys.add(first * self.s.size),
                        b_row: panel as isize,
                        c: scratch.scores.add(row * scratch.stride + column),
                        c_row: scratch.stride as isize,
                        accumulate: false,
                        tail_lanes: 0,
                        prefetch: Prefetch::NONE,
                        epilogue: None,
                    };
                    self.ops.kernels.run(height, columns, &mut tile);
                }
            }
        }
    }

    /// Multiplies the softmax weights of a block by the values, and adds the result to the output.
    ///
    /// # Safety
    /// The conditions of [`Piece::run`] hold; if the blocking requires packed values, the values
    /// are packed.
    unsafe fn multiply_values(
        &self,
        rows: &[Row],
        keys: &Range<usize>,
        (blocking, scratch): (&Blocking, &Scratch),
        (out, out_row): (*mut f32, isize),
        accumulate: bool,
    ) {
        let (values, v_row) = if !blocking.pack_values {
            let h = &self.a.v;
            let offset = self.batch as i64 * h.batch
                + self.kv_head as i64 * h.head
                + keys.start as i64 * h.row;
            (h.data.wrapping_offset(offset as isize), h.row as isize)
        } else {
            let width = self.s.value_size.next_multiple_of(self.ops.kernels.lanes);
            let first = keys.start - scratch.packed.start;
            (scratch.values.wrapping_add(first * width).cast_const(), width as isize)
        };
        let block = Block {
            rows,
            weights: scratch.scores,
            stride: scratch.stride as isize,
            values,
            v_row,
            size: self.s.value_size,
            out,
            out_row,
            accumulate,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { block.run(self.ops) };
    }
}
