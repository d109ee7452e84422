//! Layers of long short-term memory: one direction of one layer for a call.
//!
//! Gates are in the order input, output, forget, cell, as in ONNX.

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};

use super::{UNITS, WIDTH};
use crate::isa::Isa;
use crate::lanes::{MathLanes, for_isa};
use crate::math;
use crate::product::PackedProduct;
use crate::product::share::{UNIT, cut, part, share};
use crate::vector::wide::Wide;

/// One direction of a layer. Rows of `hidden` or `input` neighbouring elements; strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Lstm {
    /// Steps of the longest sequence.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Elements of an input.
    pub input: usize,
    /// Units.
    pub hidden: usize,
    /// Whether the last step comes first.
    pub reverse: bool,
    /// Inputs `[steps, batch, input]`, dense.
    pub x: *const f32,
    /// Panels of the input weights ([`super::pack::pack_gates`]).
    pub w: *const f32,
    /// Panels of the recurrent weights.
    pub r: *const f32,
    /// Packed sum of the biases, or null.
    pub bias: *const f32,
    /// Peepholes `[3, hidden]` of input, output and forget gate, or null.
    pub peepholes: *const f32,
    /// Steps of each sequence, at most `steps`, or null where all have them all.
    pub lengths: *const i64,
    /// Results `[steps, batch, hidden]` and their strides from step to step and sequence to sequence. Zeros beyond the end of a
    /// sequence.
    pub y: (*mut f32, isize, isize),
    /// Output state `[batch, hidden]`, dense: the initial one, replaced by the last.
    pub h: *mut f32,
    /// Cell state, likewise.
    pub c: *mut f32,
}

/// The units of one panel of one sequence at one step.
struct Cell<'a> {
    layer: &'a Lstm,
    unit: usize,
    sequence: usize,
    gates: *const f32,
    y: *mut f32,
    h: *mut f32,
}

/// Finishes the units of a panel: gates, cell state, output.
///
/// # Safety
/// The machine has the instructions, and the caller has enabled them. All addressed elements are valid.
#[inline(always)]
unsafe fn finish<L: MathLanes<Elem = f32>>(cell: &Cell<'_>) {
    let l = cell.layer;
    // SAFETY: the caller's promise of instructions.
    let mut ops = unsafe { Wide::<L>::new() };
    for lane in (0..UNITS.min(l.hidden - cell.unit)).step_by(L::N) {
        let unit = cell.unit + lane;
        let count = L::N.min(l.hidden - unit);
        // SAFETY: the caller's promise; no unit beyond the last is touched outside the padded panels.
        unsafe {
            let at = cell.sequence * l.hidden + unit;
            let old = L::load_first(l.c.add(at), count);
            let gate = |number: usize| {
                let x = L::load(cell.gates.add(number * UNITS + lane));
                if l.bias.is_null() {
                    return x;
                }
                x.add(L::load(l.bias.add(cell.unit * 4 + number * UNITS + lane)))
            };
            let peep = |number: usize, x: L, c: L| {
                if l.peepholes.is_null() {
                    return x;
                }
                L::load_first(l.peepholes.add(number * l.hidden + unit), count).mul_add(c, x)
            };
            let i = math::sigmoid(&mut ops, &peep(0, gate(0), old));
            let f = math::sigmoid(&mut ops, &peep(2, gate(2), old));
            let g = math::tanh(&mut ops, &gate(3));
            let c = f.mul_add(old, i.mul(g));
            let o = math::sigmoid(&mut ops, &peep(1, gate(1), c));
            let h = o.mul(math::tanh(&mut ops, &c));
            c.store_first(l.c.add(at), count);
            h.store_first(cell.h.add(at), count);
            h.store_first(cell.y.add(unit), count);
        }
    }
}

impl Lstm {
    fn panels(&self) -> usize {
        self.hidden.div_ceil(UNITS)
    }

    /// Elements of the gates of all steps and of the second output state.
    fn scratch(&self) -> Option<(usize, usize)> {
        let rows = self.steps.checked_mul(self.batch)?;
        rows.checked_mul(self.input)?.checked_mul(size_of::<f32>())?;
        let gates = rows.checked_mul(self.panels().checked_mul(WIDTH)?)?;
        let state = self.batch.checked_mul(self.hidden)?;
        gates.checked_add(state)?.checked_mul(size_of::<f32>())?;
        Some((gates, state))
    }

    /// Whether each sequence is as long as it may be.
    ///
    /// # Safety
    /// Lengths that are there are readable.
    unsafe fn lengths_fit(&self) -> bool {
        self.lengths.is_null()
            || (0..self.batch).all(|b| {
                // SAFETY: the caller's promise.
                let length = unsafe { *self.lengths.add(b) };
                usize::try_from(length).is_ok_and(|length| length <= self.steps)
            })
    }

    fn product(&self, m: usize, k: usize, a: *const f32, b: *const f32) -> PackedProduct<f32> {
        let n = self.panels() * WIDTH;
        PackedProduct {
            m,
            n,
            k,
            a: (a, k as isize, 1),
            b,
            width: WIDTH,
            c: (std::ptr::null_mut(), n as isize),
            accumulate: false,
            epilogue: None,
            batch: 0,
        }
    }

    /// The input products of all steps.
    ///
    /// # Safety
    /// As for [`run`]; `gates` has room for them.
    unsafe fn inputs(&self, isa: Isa, runtime: &KernelRuntime, gates: *mut f32) -> i64 {
        let m = self.steps * self.batch;
        let mut p = self.product(m, self.input, self.x, self.w);
        p.c.0 = gates;
        let cut = cut(m, p.n, p.k, p.panels());
        let piece = |index: usize| {
            let rows = part(m, 6, index / cut.panels, cut.rows);
            let panels = part(p.panels(), 1, index % cut.panels, cut.panels);
            // SAFETY: the caller's promise; pieces write disjoint blocks.
            unsafe { p.block(isa, rows, panels) }
        };
        // SAFETY: the caller's promise.
        unsafe { share(runtime, cut.rows * cut.panels, cut.units, &piece) }
    }

    /// One step: from the output state `h.0` to `h.1`.
    ///
    /// # Safety
    /// As for [`run`]; the gates hold the input products of the step.
    unsafe fn step(
        &self,
        isa: Isa,
        runtime: &KernelRuntime,
        step: usize,
        gates: *mut f32,
        (before, after): (*const f32, *mut f32),
    ) -> i64 {
        let mut p = self.product(self.batch, self.hidden, before, self.r);
        (p.c.0, p.accumulate) = (gates, true);
        let finish = for_isa!(isa, finish(cell: &Cell<'_>)).0;
        let work = self.batch.max(4).saturating_mul(self.hidden).saturating_mul(WIDTH);
        let piece = |panel: usize| {
            // SAFETY: the caller's promise; panels write disjoint units.
            unsafe {
                let status = p.block(isa, 0..self.batch, panel..panel + 1);
                let unit = panel * UNITS;
                for sequence in 0..self.batch {
                    let y = self.y.0.offset(step as isize * self.y.1);
                    let y = y.offset(sequence as isize * self.y.2);
                    let gates = gates.add(sequence * p.n + panel * WIDTH);
                    if self.lengths.is_null() || (step as i64) < *self.lengths.add(sequence) {
                        finish(&Cell { layer: self, unit, sequence, gates, y, h: after });
                        continue;
                    }
                    let (at, count) =
                        (sequence * self.hidden + unit, UNITS.min(self.hidden - unit));
                    std::ptr::copy_nonoverlapping(before.add(at), after.add(at), count);
                    y.add(unit).write_bytes(0, count);
                }
                status
            }
        };
        // SAFETY: the caller's promise.
        unsafe { share(runtime, self.panels(), work / UNIT, &piece) }
    }

    /// All steps, with scratch memory.
    ///
    /// # Safety
    /// As for [`run`]; the scratch memory is as large as [`Lstm::scratch`] says.
    unsafe fn all(
        &self,
        isa: Isa,
        runtime: &KernelRuntime,
        gates: *mut f32,
        state: (*mut f32, usize),
    ) -> i64 {
        // SAFETY: the caller's promise.
        let mut status = unsafe { self.inputs(isa, runtime, gates) };
        let mut h = (self.h, state.0);
        for index in 0..self.steps {
            if status != STATUS_OK {
                return status;
            }
            let step = if self.reverse { self.steps - 1 - index } else { index };
            // SAFETY: the caller's promise.
            status = unsafe {
                let gates = gates.add(step * self.batch * self.panels() * WIDTH);
                self.step(isa, runtime, step, gates, (h.0.cast_const(), h.1))
            };
            h = (h.1, h.0);
        }
        if h.0 != self.h {
            // SAFETY: both hold a state.
            unsafe { std::ptr::copy_nonoverlapping(h.0, self.h, state.1) };
        }
        status
    }
}

/// Computes a layer with these instructions. Returns a kernel status.
///
/// # Safety
/// The machine has `isa`. The runtime lives; all addressed elements are valid, and nothing that is written overlaps another
/// operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, layer: &Lstm) -> i64 {
    let Some((gates, state)) = layer.scratch() else { return STATUS_NO_MEMORY };
    // SAFETY: the caller's promise.
    if !unsafe { layer.lengths_fit() } {
        return STATUS_BAD_ARGUMENTS;
    }
    if state == 0 || layer.steps == 0 {
        return STATUS_OK;
    }
    let bytes = (gates + state) * size_of::<f32>();
    // SAFETY: the runtime lives; the block is given back below, on this thread.
    let block = unsafe { (runtime.alloc_workspace)(bytes as u64) }.cast::<f32>();
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    // SAFETY: the caller's promise; the block has both parts.
    unsafe {
        let status = layer.all(isa, runtime, block, (block.add(gates), state));
        (runtime.free_workspace)(block.cast());
        status
    }
}
