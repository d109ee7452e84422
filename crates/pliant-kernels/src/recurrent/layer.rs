//! A recurrent layer: its operands, and its computation by input products (inputs times weights)
//! and time steps.
//!
//! Steps are numbered in the order in which they are computed. If sequences have lengths, the
//! number of steps is the length of the longest sequence. In the steps before the start and after
//! the end of a sequence, its state does not change.
//!
//! Method: the inputs of a range of steps are multiplied by the input weights in one matrix
//! product. Then each step multiplies the states by the recurrent weights, panel by panel, and
//! computes the next states of each panel's units. For measurements, see "Recurrent layers" in
//! `docs/internals/measurements/recurrent.md`.

use std::mem::MaybeUninit;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};
use pliant_tensor::rnn_weight_layout::{Cell, INPUT_WIDTH, UNITS};

use super::lstm_gru_cells::Units;
use super::parallel_stages::{self, MAX_PIECES};
use crate::algorithm_selection::partition::MEMORY_BOUND_ROWS;
use crate::algorithm_selection::recurrent::{INPUT_BLOCK_ROWS, MAX_PIECE_ROWS, piece_rows};
use crate::matmul::PackedProduct;
use crate::matmul::work_partition::{even_part, parallel_for, unit_work};
use pliant_machine::isa::Isa;

/// Maximum number of columns of a panel of recurrent weights.
const WIDTH: usize = 64;

/// The arguments of a recurrent layer. Strides count elements. A row consists of `hidden` or
/// `input` contiguous elements.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// The kind of cell: LSTM, GRU or plain.
    pub cell: Cell,
    /// The number of steps of the longest sequence.
    pub steps: usize,
    /// The number of sequences in the batch.
    pub batch: usize,
    /// The number of elements of the input of one time step.
    pub input: usize,
    /// The number of hidden units of the layer.
    pub hidden: usize,
    /// The number of directions: 1 or 2. The second direction is backward.
    pub directions: usize,
    /// Whether the first direction is backward: it starts at the end of the sequences.
    pub reverse: bool,
    /// The address of the inputs, the stride between time steps, and the stride between sequences;
    /// both in elements.
    pub x: (*const f32, usize, usize),
    /// The input weights ([`pliant_tensor::rnn_weight_layout::pack_input`]). All weights are stored one direction after
    /// the other.
    pub w: *const f32,
    /// The recurrent weights, in the layout of [`pliant_tensor::rnn_weight_layout::pack_state`].
    pub r: *const f32,
    /// The biases, in the layout of [`pliant_tensor::rnn_weight_layout::pack_bias`].
    pub bias: *const f32,
    /// The peephole weights `[3, hidden]` of the input, output and forget gates of an LSTM, or null.
    pub peepholes: *const f32,
    /// The number of steps of each sequence, at most `steps`. Null if all sequences have `steps`
    /// steps.
    pub lengths: *const i64,
    /// The address of the output states of all steps, and the strides between steps, between directions, and between sequences, in
    /// elements. Results after the end of a sequence are zero.
    pub y: (*mut f32, usize, usize, usize),
    /// The initial output and cell states; null for zeros.
    pub first: (*const f32, *const f32),
    /// The destinations of the final output and cell states; the cell states exist only for an
    /// LSTM.
    pub last: (*mut f32, *mut f32),
    /// The strides between directions and between sequences, in the tensors of initial and final
    /// states; both in elements.
    pub state: (usize, usize),
}

/// The sizes of the parts of scratch memory, in elements.
#[derive(Clone, Copy)]
struct Sizes {
    /// The stride between the rows of a state, in elements. The field `state` is the size of a
    /// state. Each direction has four states: the previous output state, the next output state, the
    /// cell state or update gate, and the reset state.
    row: usize,
    state: usize,
    /// The number of columns of the input products (inputs times weights) of all gates. It is also
    /// their row stride.
    columns: usize,
    /// The number of time steps whose inputs one matrix product multiplies by the weights. The field `gates` is the
    /// number of elements of the results of this matrix product.
    range_steps: usize,
    gates: usize,
}

/// The number of states of each direction: previous output, next output, cell state or update gate,
/// and reset state.
const STATES: usize = 4;

/// Memory for the products of states and weights of a piece of work, aligned to cache lines.
#[repr(C, align(64))]
struct Sums([MaybeUninit<f32>; MAX_PIECE_ROWS * WIDTH]);

/// Scratch memory: the states, and the input products (inputs times weights) of a range of steps.
#[derive(Clone, Copy)]
struct Scratch {
    states: *mut f32,
    gates: *mut f32,
}

/// A range of time steps, and the total number of steps.
#[derive(Clone, Copy)]
struct StepRange {
    begin: usize,
    end: usize,
    steps: usize,
}

impl Layer {
    /// Computes the sizes of scratch memory; `None` on overflow.
    fn sizes(&self) -> Option<Sizes> {
        let row = self.hidden.checked_next_multiple_of(UNITS)?;
        let state = row.checked_mul(self.batch)?;
        let columns = row.checked_mul(self.cell.gates())?;
        let ranges = self
            .steps
            .checked_mul(self.batch)?
            .div_ceil(INPUT_BLOCK_ROWS)
            .clamp(1, self.steps.max(1));
        let range_steps = self.steps.div_ceil(ranges);
        let gates = range_steps.checked_mul(self.batch)?.checked_mul(columns)?;
        // Sizes of inputs and panels must not overflow either.
        self.steps.checked_mul(self.batch)?.checked_mul(self.input.max(self.hidden))?;
        self.cell.state_columns(self.hidden)?.checked_mul(self.hidden.max(self.input))?;
        Some(Sizes { row, state, columns, range_steps, gates })
    }

    /// Returns the total number of elements of scratch memory; `None` on overflow.
    fn scratch_elements(&self, s: &Sizes) -> Option<usize> {
        let elements =
            s.state.checked_mul(STATES)?.checked_add(s.gates)?.checked_mul(self.directions)?;
        elements.checked_mul(size_of::<f32>())?;
        isize::try_from(elements.checked_mul(size_of::<f32>())?).ok()?;
        Some(elements)
    }

    /// Returns the number of steps of the longest sequence; `None` if a length is invalid.
    ///
    /// # Safety
    /// The lengths, if any, are readable.
    unsafe fn longest_sequence(&self) -> Option<usize> {
        if self.lengths.is_null() {
            return Some(self.steps);
        }
        let mut longest = 0;
        for b in 0..self.batch {
            // SAFETY: guaranteed by the caller.
            let length = usize::try_from(unsafe { *self.lengths.add(b) }).ok()?;
            longest = longest.max(length);
        }
        (longest <= self.steps).then_some(longest)
    }

    fn is_backward(&self, direction: usize) -> bool {
        direction == 1 || self.reverse
    }

    /// Returns the sequence position of step `index` in the order of computation of a direction. A
    /// backward direction starts at the last position.
    fn position(&self, direction: usize, index: usize, steps: usize) -> usize {
        if self.is_backward(direction) { steps - 1 - index } else { index }
    }

    /// Returns the smallest sequence position in a range of steps.
    fn first_position(&self, direction: usize, range: StepRange) -> usize {
        if self.is_backward(direction) { range.steps - range.end } else { range.begin }
    }

    /// Multiplies the inputs of a range of steps by the input weights.
    ///
    /// # Safety
    /// The conditions of [`run`] hold; scratch memory has the computed sizes.
    unsafe fn compute_input_products(
        &self,
        (isa, runtime): (Isa, &KernelRuntime),
        s: &Sizes,
        gates: *mut f32,
        range: StepRange,
    ) -> i64 {
        let count = range.end - range.begin;
        let (x, x_step, x_row) = self.x;
        // One product if rows have a uniform stride, otherwise one for each sequence.
        let is_one_product = count == 1 || self.batch == 1 || x_step == self.batch * x_row;
        let (products, m) =
            if is_one_product { (1, count * self.batch) } else { (self.batch, count) };
        let a_row = if is_one_product && self.batch > 1 { x_row } else { x_step };
        let c_row = if is_one_product { s.columns } else { self.batch * s.columns };
        let blocks = m.div_ceil(piece_rows());
        let panels = s.columns.div_ceil(INPUT_WIDTH);
        let work = (m / blocks)
            .max(MEMORY_BOUND_ROWS)
            .saturating_mul(INPUT_WIDTH)
            .saturating_mul(self.input.max(1));
        // A piece is a range of panels of a block of rows, with at least about a microsecond of work.
        let parts = panels.div_ceil((unit_work() / work).max(1));
        let work = work.saturating_mul(panels / parts);
        let piece = |index: usize| {
            let (panels_here, rest) = (even_part(panels, 1, index % parts, parts), index / parts);
            let (rows, rest) = (even_part(m, 6, rest % blocks, blocks), rest / blocks);
            let (sequence, direction) = (rest % products, rest / products);
            // SAFETY: guaranteed by the caller; pieces write disjoint blocks.
            unsafe {
                let first = self.first_position(direction, range) * x_step + sequence * x_row;
                let w = direction * panels * INPUT_WIDTH * self.input;
                let c = direction * s.gates + sequence * s.columns;
                let p = PackedProduct {
                    m,
                    n: s.columns,
                    k: self.input,
                    // Inputs without elements may have any strides, so the address may be out of bounds.
                    a: (x.wrapping_add(first), a_row as isize, 1),
                    b: self.w.add(w),
                    width: INPUT_WIDTH,
                    b_in_memory: false,
                    c: (gates.add(c), c_row as isize),
                    accumulate: false,
                };
                p.compute_block(isa, rows, panels_here)
            }
        };
        let pieces = self.directions * products * blocks * parts;
        // SAFETY: guaranteed by the caller.
        unsafe { parallel_for(runtime, pieces, work / unit_work(), &piece) }
    }

    /// Computes the states and results of a range of steps.
    ///
    /// # Safety
    /// The conditions of [`run`] hold; the products of inputs and weights of the range are
    /// computed.
    unsafe fn compute_steps(
        &self,
        (isa, runtime): (Isa, &KernelRuntime),
        s: &Sizes,
        scratch: Scratch,
        range: StepRange,
    ) -> i64 {
        let phases = self.cell.state_products();
        let panels: Vec<usize> =
            phases.iter().map(|p| (s.row * p.gates).div_ceil(p.width)).collect();
        let counts: Vec<usize> =
            panels.iter().map(|n| (n * self.directions).min(MAX_PIECES)).collect();
        let piece = |stage: usize, index: usize| {
            let (index_of_step, phase) = (range.begin + stage / phases.len(), stage % phases.len());
            let panel_count = panels[phase] * self.directions;
            for panel in even_part(panel_count, 1, index, counts[phase]) {
                let position = (panel / panels[phase], phase, panel % panels[phase]);
                for first in (0..self.batch).step_by(piece_rows()) {
                    let rows = piece_rows().min(self.batch - first);
                    // SAFETY: guaranteed by the caller; panels write disjoint units.
                    unsafe {
                        self.panel(isa, s, scratch, (range, index_of_step), position, (first, rows))
                    };
                }
            }
        };
        let pieces: usize = counts.iter().sum();
        let columns = self.cell.state_columns(self.hidden).unwrap_or(0) * self.directions;
        let work = self.batch.max(MEMORY_BOUND_ROWS) as f64 * self.hidden as f64 * columns as f64;
        let micros = work / unit_work() as f64 / pieces.max(1) as f64;
        // SAFETY: guaranteed by the caller; counts are at most `MAX_PIECES`.
        unsafe { parallel_stages::run(runtime, range.end - range.begin, &counts, micros, &piece) }
    }

    /// Multiplies the states by one panel of recurrent weights, for some sequences at one step, and
    /// then computes the next states of the panel's units.
    ///
    /// # Safety
    /// The conditions of [`Layer::compute_steps`] hold.
    unsafe fn panel(
        &self,
        isa: Isa,
        s: &Sizes,
        scratch: Scratch,
        (range, index): (StepRange, usize),
        (direction, phase, panel): (usize, usize, usize),
        (first, rows): (usize, usize),
    ) {
        let cell = self.cell;
        let p = cell.state_products()[phase];
        let groups = p.width / (p.gates * UNITS);
        let (unit, groups) = (panel * groups * UNITS, groups.min(s.row / UNITS - panel * groups));
        let step = self.position(direction, index, range.steps);
        let mut sums = Sums([const { MaybeUninit::uninit() }; MAX_PIECE_ROWS * WIDTH]);
        let sums = sums.0.as_mut_ptr().cast::<f32>();
        // SAFETY: guaranteed by the caller; the offsets stay inside the operands and scratch memory.
        unsafe {
            let state = |which: usize| {
                scratch.states.add((direction * STATES + which) * s.state + first * s.row)
            };
            let (before, after) = (state(index % 2), state(1 - index % 2));
            // The second product of a GRU uses the reset state.
            let a = if phase == 0 { before } else { state(3) };
            let product = self.product(s, (a, rows), (direction, phase, panel), groups, sums);
            // A product of a single panel does not copy rows.
            product.compute_block(isa, 0..rows, 0..1);
            let row = (step - self.first_position(direction, range)) * self.batch + first;
            let gates =
                scratch.gates.add(direction * s.gates + row * s.columns + unit * cell.gates());
            let (y, y_step, y_direction, y_row) = self.y;
            let bias = direction * s.row * cell.biases() + unit * cell.biases();
            let peepholes = match self.peepholes.is_null() {
                true => self.peepholes,
                false => self.peepholes.add(direction * 3 * self.hidden + unit),
            };
            let units = Units {
                cell,
                phase,
                rows,
                groups,
                units: (groups * UNITS).min(self.hidden - unit),
                sums: (sums, p.width),
                gates: (gates, s.columns),
                bias: self.bias.add(bias),
                peepholes: (peepholes, self.hidden),
                before: (before.add(unit), s.row),
                after: after.add(unit),
                c: state(2).add(unit),
                reset: state(3).add(unit),
                y: (
                    y.add(step * y_step + direction * y_direction + first * y_row + unit),
                    y_row as isize,
                ),
                lengths: if self.lengths.is_null() {
                    self.lengths
                } else {
                    self.lengths.add(first)
                },
                step: step as i64,
            };
            units.finish(isa);
        }
    }

    /// Returns the arguments of the matrix product of the states and one panel of recurrent
    /// weights.
    ///
    /// # Safety
    /// The conditions of [`Layer::panel`] hold.
    unsafe fn product(
        &self,
        s: &Sizes,
        (a, rows): (*const f32, usize),
        (direction, phase, panel): (usize, usize, usize),
        groups: usize,
        sums: *mut f32,
    ) -> PackedProduct<f32> {
        let phases = self.cell.state_products();
        let p = phases[phase];
        let columns = |p: &pliant_tensor::rnn_weight_layout::StateProduct| {
            (s.row * p.gates).next_multiple_of(p.width)
        };
        let (all, before): (usize, usize) =
            (phases.iter().map(columns).sum(), phases[..phase].iter().map(columns).sum());
        // SAFETY: the panels of a direction have that many columns.
        let b = unsafe { self.r.add((direction * all + before + panel * p.width) * self.hidden) };
        PackedProduct {
            m: rows,
            n: groups * p.gates * UNITS,
            k: self.hidden,
            a: (a, s.row as isize, 1),
            b,
            width: p.width,
            b_in_memory: false,
            c: (sums, p.width as isize),
            accumulate: false,
        }
    }

    /// Copies the initial states to scratch memory.
    ///
    /// # Safety
    /// The conditions of [`Layer::compute_steps`] hold.
    unsafe fn load_states(&self, s: &Sizes, states: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            states.write_bytes(0, self.directions * STATES * s.state);
            self.for_each_state(s, |offset, row, direction| {
                for (which, from) in [(0, self.first.0), (2, self.first.1)] {
                    if !from.is_null() && (which == 0 || self.cell == Cell::Lstm) {
                        let to = states.add((direction * STATES + which) * s.state + row);
                        std::ptr::copy_nonoverlapping(from.add(offset), to, self.hidden);
                    }
                }
            });
        }
    }

    /// Copies the final states, after `steps` steps, to their operands, and sets the results of
    /// later steps to zero.
    ///
    /// # Safety
    /// The conditions of [`Layer::compute_steps`] hold.
    unsafe fn store_states(&self, s: &Sizes, states: *const f32, steps: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.for_each_state(s, |offset, row, direction| {
                for (which, to) in [(steps % 2, self.last.0), (2, self.last.1)] {
                    if which != 2 || self.cell == Cell::Lstm {
                        let from = states.add((direction * STATES + which) * s.state + row);
                        std::ptr::copy_nonoverlapping(from, to.add(offset), self.hidden);
                    }
                }
            });
            let (y, y_step, y_direction, y_row) = self.y;
            for step in steps..self.steps {
                for direction in 0..self.directions {
                    for b in 0..self.batch {
                        let at = step * y_step + direction * y_direction + b * y_row;
                        y.add(at).write_bytes(0, self.hidden);
                    }
                }
            }
        }
    }

    /// Calls `f` for each direction and sequence, with the offset of its state in the operand, the offset of its state
    /// in scratch memory, and the direction.
    fn for_each_state(&self, s: &Sizes, f: impl Fn(usize, usize, usize)) {
        for direction in 0..self.directions {
            for b in 0..self.batch {
                f(direction * self.state.0 + b * self.state.1, b * s.row, direction);
            }
        }
    }
}

/// Computes a recurrent layer with the given instruction set. Returns a kernel status: 0 on
/// success.
///
/// # Safety
/// The machine has `isa`. The runtime is valid; all addressed elements are valid, and written
/// elements overlap no other operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, layer: &Layer) -> i64 {
    let Some(s) = layer.sizes() else { return STATUS_NO_MEMORY };
    let Some(elements) = layer.scratch_elements(&s) else { return STATUS_NO_MEMORY };
    // SAFETY: guaranteed by the caller.
    let Some(steps) = (unsafe { layer.longest_sequence() }) else { return STATUS_BAD_ARGUMENTS };
    if s.state == 0 || layer.directions == 0 {
        return STATUS_OK;
    }
    // SAFETY: the runtime is valid; the block is freed below, on this thread.
    let block =
        unsafe { (runtime.alloc_workspace)((elements * size_of::<f32>()) as u64) }.cast::<f32>();
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    let mut status = STATUS_OK;
    // SAFETY: guaranteed by the caller; the block has both parts.
    unsafe {
        let scratch =
            Scratch { states: block, gates: block.add(layer.directions * STATES * s.state) };
        layer.load_states(&s, scratch.states);
        let mut begin = 0;
        while begin < steps && status == STATUS_OK {
            let end = steps.min(begin + s.range_steps);
            let range = StepRange { begin, end, steps };
            status = layer.compute_input_products((isa, runtime), &s, scratch.gates, range);
            if status == STATUS_OK {
                status = layer.compute_steps((isa, runtime), &s, scratch, range);
            }
            begin = end;
        }
        if status == STATUS_OK {
            layer.store_states(&s, scratch.states, steps);
        }
        (runtime.free_workspace)(block.cast());
    }
    status
}
