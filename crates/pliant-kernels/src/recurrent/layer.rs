//! A layer: its operands, and how its work is cut into input products and steps.
//!
//! Steps are numbered in the order in which they are computed. Where sequences have lengths, the last is that of the longest;
//! the others keep their states while they have ended, or have not begun.
//!
//! Recipe: the input products of a stretch of steps as one packed product, then its steps, each a packed product whose
//! panels finish their units. Measured: "Recurrent layers" in `docs/performance.md`.

use std::mem::MaybeUninit;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};
use pliant_tensor::gates::{Cell, INPUT_WIDTH, UNITS};

use super::cell::Units;
use super::stages::{self, MOST};
use crate::epilogue::Place;
use crate::isa::Isa;
use crate::product::PackedProduct;
use crate::product::share::{UNIT, part, share};
use crate::rules::recurrent::{ROWS, STRETCH};
use crate::rules::share::READ_ROWS;

/// Columns of the widest panel of a step.
const WIDTH: usize = 64;

/// A layer. Strides count elements; `hidden` or `input` neighbouring elements are a row.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    /// The kind of cell.
    pub cell: Cell,
    /// Steps of the longest sequence.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Elements of an input.
    pub input: usize,
    /// Units.
    pub hidden: usize,
    /// Directions: 1 or 2, of which the second begins at the end.
    pub directions: usize,
    /// Whether the first begins at the end.
    pub reverse: bool,
    /// Inputs, and their strides from step to step and sequence to sequence.
    pub x: (*const f32, usize, usize),
    /// Input weights ([`pliant_tensor::gates::pack_input`]), direction after direction, as below.
    pub w: *const f32,
    /// Weights of the state ([`pliant_tensor::gates::pack_state`]).
    pub r: *const f32,
    /// Biases ([`pliant_tensor::gates::pack_bias`]).
    pub bias: *const f32,
    /// Peepholes `[3, hidden]` of the input, output and forget gates of an LSTM, or null.
    pub peepholes: *const f32,
    /// Steps of each sequence, at most `steps`, or null where all have them all.
    pub lengths: *const i64,
    /// Results, and their strides from step to step, direction to direction and sequence to sequence. Zeros after the end of a
    /// sequence.
    pub y: (*mut f32, usize, usize, usize),
    /// Output and cell states at the beginning, or null for zeros.
    pub first: (*const f32, *const f32),
    /// Output and cell states at the end; the latter of an LSTM only.
    pub last: (*mut f32, *mut f32),
    /// Strides of these states from direction to direction and sequence to sequence.
    pub state: (usize, usize),
}

/// Sizes of a layer in scratch memory, in elements.
#[derive(Clone, Copy)]
struct Sizes {
    /// From row to row of the states, of which each direction has four: output states before and after, the cell state
    /// or update gate, the reset state.
    row: usize,
    state: usize,
    /// Columns of the input gates, that is of their rows.
    columns: usize,
    /// Steps of a stretch, and its input gates.
    stretch: usize,
    gates: usize,
}

/// States of each direction.
const STATES: usize = 4;

/// Sums of a piece, in lines of their own.
#[repr(C, align(64))]
struct Sums([MaybeUninit<f32>; ROWS * WIDTH]);

/// Scratch memory.
#[derive(Clone, Copy)]
struct Scratch {
    states: *mut f32,
    gates: *mut f32,
}

/// Some consecutive steps: which, and how many steps there are in all.
#[derive(Clone, Copy)]
struct Stretch {
    begin: usize,
    end: usize,
    steps: usize,
}

impl Layer {
    /// None where the sizes cannot be counted.
    fn sizes(&self) -> Option<Sizes> {
        let row = self.hidden.checked_next_multiple_of(UNITS)?;
        let state = row.checked_mul(self.batch)?;
        let columns = row.checked_mul(self.cell.gates())?;
        let stretches =
            self.steps.checked_mul(self.batch)?.div_ceil(STRETCH).clamp(1, self.steps.max(1));
        let stretch = self.steps.div_ceil(stretches);
        let gates = stretch.checked_mul(self.batch)?.checked_mul(columns)?;
        // What is read and what panels have must be countable, too.
        self.steps.checked_mul(self.batch)?.checked_mul(self.input.max(self.hidden))?;
        self.cell.state_columns(self.hidden)?.checked_mul(self.hidden.max(self.input))?;
        Some(Sizes { row, state, columns, stretch, gates })
    }

    /// Elements of scratch memory.
    fn scratch(&self, s: &Sizes) -> Option<usize> {
        let all =
            s.state.checked_mul(STATES)?.checked_add(s.gates)?.checked_mul(self.directions)?;
        all.checked_mul(size_of::<f32>())?;
        isize::try_from(all.checked_mul(size_of::<f32>())?).ok()?;
        Some(all)
    }

    /// Steps that some sequence has; none where a length makes no sense.
    ///
    /// # Safety
    /// Lengths that are there are readable.
    unsafe fn longest(&self) -> Option<usize> {
        if self.lengths.is_null() {
            return Some(self.steps);
        }
        let mut longest = 0;
        for b in 0..self.batch {
            // SAFETY: the caller's promise.
            let length = usize::try_from(unsafe { *self.lengths.add(b) }).ok()?;
            longest = longest.max(length);
        }
        (longest <= self.steps).then_some(longest)
    }

    fn backwards(&self, direction: usize) -> bool {
        direction == 1 || self.reverse
    }

    /// The step of the sequences that a direction computes at place `index`.
    fn step(&self, direction: usize, index: usize, steps: usize) -> usize {
        if self.backwards(direction) { steps - 1 - index } else { index }
    }

    /// The first of the steps of a stretch, in the order of the sequences.
    fn begin(&self, direction: usize, stretch: Stretch) -> usize {
        if self.backwards(direction) { stretch.steps - stretch.end } else { stretch.begin }
    }

    /// The input products of a stretch.
    ///
    /// # Safety
    /// As for [`run`]; scratch memory is as large as the sizes say.
    unsafe fn inputs(
        &self,
        (isa, runtime): (Isa, &KernelRuntime),
        s: &Sizes,
        gates: *mut f32,
        stretch: Stretch,
    ) -> i64 {
        let count = stretch.end - stretch.begin;
        let (x, x_step, x_row) = self.x;
        // One product where rows follow one another evenly, else one for each sequence.
        let whole = count == 1 || self.batch == 1 || x_step == self.batch * x_row;
        let (products, m) = if whole { (1, count * self.batch) } else { (self.batch, count) };
        let a_row = if whole && self.batch > 1 { x_row } else { x_step };
        let c_row = if whole { s.columns } else { self.batch * s.columns };
        let blocks = m.div_ceil(ROWS);
        let panels = s.columns.div_ceil(INPUT_WIDTH);
        let work = (m / blocks)
            .max(READ_ROWS)
            .saturating_mul(INPUT_WIDTH)
            .saturating_mul(self.input.max(1));
        // A piece is some panels of a block of rows: about a microsecond's work at least.
        let parts = panels.div_ceil((UNIT / work).max(1));
        let work = work.saturating_mul(panels / parts);
        let piece = |index: usize| {
            let (panels_here, rest) = (part(panels, 1, index % parts, parts), index / parts);
            let (rows, rest) = (part(m, 6, rest % blocks, blocks), rest / blocks);
            let (sequence, direction) = (rest % products, rest / products);
            // SAFETY: the caller's promise; pieces write disjoint blocks.
            unsafe {
                let first = self.begin(direction, stretch) * x_step + sequence * x_row;
                let w = direction * panels * INPUT_WIDTH * self.input;
                let c = direction * s.gates + sequence * s.columns;
                let p = PackedProduct {
                    m,
                    n: s.columns,
                    k: self.input,
                    // Where inputs have no elements, their strides may lead anywhere.
                    a: (x.wrapping_add(first), a_row as isize, 1),
                    b: self.w.add(w),
                    width: INPUT_WIDTH,
                    fed: false,
                    c: (gates.add(c), c_row as isize),
                    accumulate: false,
                    epilogue: None,
                    at: Place::default(),
                };
                p.block(isa, rows, panels_here)
            }
        };
        let pieces = self.directions * products * blocks * parts;
        // SAFETY: the caller's promise.
        unsafe { share(runtime, pieces, work / UNIT, &piece) }
    }

    /// The steps of a stretch.
    ///
    /// # Safety
    /// As for [`run`]; the input products of the stretch are there.
    unsafe fn steps(
        &self,
        (isa, runtime): (Isa, &KernelRuntime),
        s: &Sizes,
        scratch: Scratch,
        stretch: Stretch,
    ) -> i64 {
        let phases = self.cell.phases();
        let panels: Vec<usize> =
            phases.iter().map(|p| (s.row * p.gates).div_ceil(p.width)).collect();
        let counts: Vec<usize> = panels.iter().map(|n| (n * self.directions).min(MOST)).collect();
        let piece = |stage: usize, index: usize| {
            let (index_of_step, phase) =
                (stretch.begin + stage / phases.len(), stage % phases.len());
            let all = panels[phase] * self.directions;
            for panel in part(all, 1, index, counts[phase]) {
                let place = (panel / panels[phase], phase, panel % panels[phase]);
                for first in (0..self.batch).step_by(ROWS) {
                    let rows = ROWS.min(self.batch - first);
                    // SAFETY: the caller's promise; panels write disjoint units.
                    unsafe {
                        self.panel(isa, s, scratch, (stretch, index_of_step), place, (first, rows))
                    };
                }
            }
        };
        let pieces: usize = counts.iter().sum();
        let columns = self.cell.state_columns(self.hidden).unwrap_or(0) * self.directions;
        let work = self.batch.max(READ_ROWS) as f64 * self.hidden as f64 * columns as f64;
        let micros = work / UNIT as f64 / pieces.max(1) as f64;
        // SAFETY: the caller's promise; the counts are limited.
        unsafe { stages::run(runtime, stretch.end - stretch.begin, &counts, micros, &piece) }
    }

    /// One panel of one product of one step, for some sequences.
    ///
    /// # Safety
    /// As for [`Layer::steps`].
    unsafe fn panel(
        &self,
        isa: Isa,
        s: &Sizes,
        scratch: Scratch,
        (stretch, index): (Stretch, usize),
        (direction, phase, panel): (usize, usize, usize),
        (first, rows): (usize, usize),
    ) {
        let cell = self.cell;
        let p = cell.phases()[phase];
        let groups = p.width / (p.gates * UNITS);
        let (unit, groups) = (panel * groups * UNITS, groups.min(s.row / UNITS - panel * groups));
        let step = self.step(direction, index, stretch.steps);
        let mut sums = Sums([const { MaybeUninit::uninit() }; ROWS * WIDTH]);
        let sums = sums.0.as_mut_ptr().cast::<f32>();
        // SAFETY: the caller's promise; the offsets stay inside the operands and scratch memory.
        unsafe {
            let state = |which: usize| {
                scratch.states.add((direction * STATES + which) * s.state + first * s.row)
            };
            let (before, after) = (state(index % 2), state(1 - index % 2));
            // The second product of a GRU is that of the reset state.
            let a = if phase == 0 { before } else { state(3) };
            let product = self.product(s, (a, rows), (direction, phase, panel), groups, sums);
            // There is no epilogue that could fail.
            product.block(isa, 0..rows, 0..1);
            let row = (step - self.begin(direction, stretch)) * self.batch + first;
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

    /// The product of states with one panel.
    ///
    /// # Safety
    /// As for [`Layer::panel`].
    unsafe fn product(
        &self,
        s: &Sizes,
        (a, rows): (*const f32, usize),
        (direction, phase, panel): (usize, usize, usize),
        groups: usize,
        sums: *mut f32,
    ) -> PackedProduct<f32> {
        let phases = self.cell.phases();
        let p = phases[phase];
        let columns = |p: &pliant_tensor::gates::Phase| (s.row * p.gates).next_multiple_of(p.width);
        let (all, before): (usize, usize) =
            (phases.iter().map(columns).sum(), phases[..phase].iter().map(columns).sum());
        // SAFETY: the panels of a direction have so many columns.
        let b = unsafe { self.r.add((direction * all + before + panel * p.width) * self.hidden) };
        PackedProduct {
            m: rows,
            n: groups * p.gates * UNITS,
            k: self.hidden,
            a: (a, s.row as isize, 1),
            b,
            width: p.width,
            fed: false,
            c: (sums, p.width as isize),
            accumulate: false,
            epilogue: None,
            at: Place::default(),
        }
    }

    /// States at the beginning.
    ///
    /// # Safety
    /// As for [`Layer::steps`].
    unsafe fn load(&self, s: &Sizes, states: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            states.write_bytes(0, self.directions * STATES * s.state);
            self.each_row(s, |place, row, direction| {
                for (which, from) in [(0, self.first.0), (2, self.first.1)] {
                    if !from.is_null() && (which == 0 || self.cell == Cell::Lstm) {
                        let to = states.add((direction * STATES + which) * s.state + row);
                        std::ptr::copy_nonoverlapping(from.add(place), to, self.hidden);
                    }
                }
            });
        }
    }

    /// States at the end, after so many steps.
    ///
    /// # Safety
    /// As for [`Layer::steps`].
    unsafe fn store(&self, s: &Sizes, states: *const f32, steps: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.each_row(s, |place, row, direction| {
                for (which, to) in [(steps % 2, self.last.0), (2, self.last.1)] {
                    if which != 2 || self.cell == Cell::Lstm {
                        let from = states.add((direction * STATES + which) * s.state + row);
                        std::ptr::copy_nonoverlapping(from, to.add(place), self.hidden);
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

    /// Where each row of the states lies: outside, in scratch memory, and of which direction.
    fn each_row(&self, s: &Sizes, f: impl Fn(usize, usize, usize)) {
        for direction in 0..self.directions {
            for b in 0..self.batch {
                f(direction * self.state.0 + b * self.state.1, b * s.row, direction);
            }
        }
    }
}

/// Computes a layer with these instructions. Returns a kernel status.
///
/// # Safety
/// The machine has `isa`. The runtime lives; all addressed elements are valid, and nothing that is written overlaps another
/// operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, layer: &Layer) -> i64 {
    let Some(s) = layer.sizes() else { return STATUS_NO_MEMORY };
    let Some(room) = layer.scratch(&s) else { return STATUS_NO_MEMORY };
    // SAFETY: the caller's promise.
    let Some(steps) = (unsafe { layer.longest() }) else { return STATUS_BAD_ARGUMENTS };
    if s.state == 0 || layer.directions == 0 {
        return STATUS_OK;
    }
    // SAFETY: the runtime lives; the block is given back below, on this thread.
    let block =
        unsafe { (runtime.alloc_workspace)((room * size_of::<f32>()) as u64) }.cast::<f32>();
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    let mut status = STATUS_OK;
    // SAFETY: the caller's promise; the block has both parts.
    unsafe {
        let scratch =
            Scratch { states: block, gates: block.add(layer.directions * STATES * s.state) };
        layer.load(&s, scratch.states);
        let mut begin = 0;
        while begin < steps && status == STATUS_OK {
            let end = steps.min(begin + s.stretch);
            let stretch = Stretch { begin, end, steps };
            status = layer.inputs((isa, runtime), &s, scratch.gates, stretch);
            if status == STATUS_OK {
                status = layer.steps((isa, runtime), &s, scratch, stretch);
            }
            begin = end;
        }
        if status == STATUS_OK {
            layer.store(&s, scratch.states, steps);
        }
        (runtime.free_workspace)(block.cast());
    }
    status
}
