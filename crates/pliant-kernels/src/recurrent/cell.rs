//! Computes the next state of a panel's units from its sums, for each kind of cell.
//!
//! The vectors of the gates of 16 units are adjacent, in the sums and in the input gates. States
//! are padded to whole vectors, so only results need special care at the last unit. Gates are
//! computed with the sequences of [`crate::math`] (2 ulp).
//!
//! Recipe: one pass over the gates of 16 units while their sums are in the nearest cache. Measured
//! as a whole: "Recurrent layers" in `docs/performance.md`; the gates were not measured separately.

use pliant_tensor::rnn_weight_layout::{Cell, StateProduct, UNITS};

use crate::lanes::{MathLanes, for_isa};
use crate::math;
use crate::vector::wide::Wide;
use pliant_machine::isa::Isa;

/// The units of one panel for some sequences at one step. Addresses refer to the panel's first unit
/// and the first sequence; strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// The kind of cell.
    pub cell: Cell,
    /// The index of the product within the step.
    pub phase: usize,
    /// The number of sequences.
    pub rows: usize,
    /// The number of groups of 16 units.
    pub groups: usize,
    /// The number of actual units.
    pub units: usize,
    /// The sums and their row stride.
    pub sums: (*const f32, usize),
    /// The input gates and their row stride.
    pub gates: (*const f32, usize),
    /// The biases.
    pub bias: *const f32,
    /// Peepholes of the input gate, and the stride between gates; null if there are none.
    pub peepholes: (*const f32, usize),
    /// The previous output state, and the row stride of all states.
    pub before: (*const f32, usize),
    /// The next output state.
    pub after: *mut f32,
    /// The cell state of an LSTM; the update gate of a GRU.
    pub c: *mut f32,
    /// The reset state of a GRU whose reset gate applies to the state.
    pub reset: *mut f32,
    /// Results and their row stride.
    pub y: (*mut f32, isize),
    /// Lengths of the sequences, or null if all include the step.
    pub lengths: *const i64,
    /// The step.
    pub step: i64,
}

impl Units {
    /// Finishes the units.
    ///
    /// # Safety
    /// The machine has `isa`. All addressed elements are valid; what is written overlaps no other
    /// operand.
    pub unsafe fn finish(&self, isa: Isa) {
        let finish = for_isa!(isa, finish(units: &Units)).0;
        // SAFETY: guaranteed by the caller.
        unsafe { finish(self) }
    }

    fn phase(&self) -> StateProduct {
        self.cell.state_products()[self.phase]
    }
}

/// One vector of units of one sequence.
struct At<'a> {
    u: &'a Units,
    /// The sums of its first gate, the input gates and the biases.
    sums: *const f32,
    gates: *const f32,
    bias: *const f32,
    /// Its index within a state, and within the panel.
    state: usize,
    unit: usize,
}

impl At<'_> {
    /// The sum of a gate, with the input product and the bias.
    ///
    /// # Safety
    /// As for [`finish`]; likewise below.
    #[inline(always)]
    unsafe fn gate<L: MathLanes<Elem = f32>>(&self, gate: usize) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { self.sum::<L>(gate).add(self.input(gate)) }
    }

    /// The sum of a gate alone.
    #[inline(always)]
    unsafe fn sum<L: MathLanes<Elem = f32>>(&self, gate: usize) -> L {
        let own = gate - self.u.phase().first;
        // SAFETY: as above.
        unsafe { L::load(self.sums.add(own * UNITS)) }
    }

    /// The input product of a gate, and the bias.
    #[inline(always)]
    unsafe fn input<L: MathLanes<Elem = f32>>(&self, gate: usize) -> L {
        // SAFETY: as above.
        unsafe { L::load(self.gates.add(gate * UNITS)).add(L::load(self.bias.add(gate * UNITS))) }
    }

    /// Adds a peephole.
    #[inline(always)]
    unsafe fn peep<L: MathLanes<Elem = f32>>(&self, gate: usize, x: L, c: L) -> L {
        let (peepholes, stride) = self.u.peepholes;
        if peepholes.is_null() || self.unit >= self.u.units {
            return x;
        }
        let count = L::N.min(self.u.units - self.unit);
        // SAFETY: as above.
        unsafe { L::load_first(peepholes.add(gate * stride + self.unit), count).mul_add(c, x) }
    }
}

/// The next output of an LSTM. Updates the cell state.
#[inline(always)]
unsafe fn lstm<L: MathLanes<Elem = f32>>(at: &At<'_>) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ops = Wide::<L>::new();
        let place = at.u.c.add(at.state);
        let old = L::load(place);
        let i = math::sigmoid(&mut ops, &at.peep(0, at.gate::<L>(0), old));
        let f = math::sigmoid(&mut ops, &at.peep(2, at.gate::<L>(2), old));
        let g = math::tanh(&mut ops, &at.gate::<L>(3));
        let c = f.mul_add(old, i.mul(g));
        c.store(place);
        let o = math::sigmoid(&mut ops, &at.peep(1, at.gate::<L>(1), c));
        o.mul(math::tanh(&mut ops, &c))
    }
}

/// Interpolates between the hidden value and the previous state by the update gate.
#[inline(always)]
unsafe fn between<L: MathLanes<Elem = f32>>(at: &At<'_>, update: L, hidden: L) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let old = L::load(at.u.before.0.add(at.state));
        let rest = L::constant(1.0).sub(update);
        update.mul_add(old, rest.mul(hidden))
    }
}

/// The next output of a GRU whose reset gate applies to the product.
#[inline(always)]
unsafe fn linear_gru<L: MathLanes<Elem = f32>>(at: &At<'_>) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ops = Wide::<L>::new();
        let update = math::sigmoid(&mut ops, &at.gate::<L>(0));
        let reset = math::sigmoid(&mut ops, &at.gate::<L>(1));
        let product = at.sum::<L>(2).add(L::load(at.bias.add(3 * UNITS)));
        let hidden = math::tanh(&mut ops, &reset.mul_add(product, at.input(2)));
        between(at, update, hidden)
    }
}

/// The first product of a GRU: stores the update gate and the reset state.
#[inline(always)]
unsafe fn gru_gates<L: MathLanes<Elem = f32>>(at: &At<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ops = Wide::<L>::new();
        let update: L = math::sigmoid(&mut ops, &at.gate::<L>(0));
        let reset = math::sigmoid(&mut ops, &at.gate::<L>(1));
        update.store(at.u.c.add(at.state));
        reset.mul(L::load(at.u.before.0.add(at.state))).store(at.u.reset.add(at.state));
    }
}

/// The second product of a GRU.
#[inline(always)]
unsafe fn gru<L: MathLanes<Elem = f32>>(at: &At<'_>) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let hidden = math::tanh(&mut Wide::<L>::new(), &at.gate::<L>(2));
        between(at, L::load(at.u.c.add(at.state)), hidden)
    }
}

/// The kinds of results of a panel.
const LSTM: u8 = 0;
const GRU_GATES: u8 = 1;
const GRU: u8 = 2;
const LINEAR_GRU: u8 = 3;
const RNN: u8 = 4;

/// # Safety
/// As for [`Units::finish`]; the caller has enabled the instructions.
#[inline(always)]
unsafe fn finish<L: MathLanes<Elem = f32>>(u: &Units) {
    // SAFETY: guaranteed by the caller; likewise below.
    unsafe {
        match (u.cell, u.phase) {
            (Cell::Lstm, _) => all::<L, LSTM>(u),
            (Cell::Gru, 0) => all::<L, GRU_GATES>(u),
            (Cell::Gru, _) => all::<L, GRU>(u),
            (Cell::LinearGru, _) => all::<L, LINEAR_GRU>(u),
            (Cell::Rnn, _) => all::<L, RNN>(u),
        }
    }
}

/// The next output of one vector of units; `None` if another product of the step follows.
#[inline(always)]
unsafe fn next<L: MathLanes<Elem = f32>, const KIND: u8>(at: &At<'_>) -> Option<L> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match KIND {
            LSTM => Some(lstm(at)),
            GRU_GATES => {
                gru_gates::<L>(at);
                None
            }
            GRU => Some(gru(at)),
            LINEAR_GRU => Some(linear_gru(at)),
            _ => Some(math::tanh(&mut Wide::<L>::new(), &at.gate::<L>(0))),
        }
    }
}

/// Computes all vectors, and writes the next outputs.
#[inline(always)]
unsafe fn all<L: MathLanes<Elem = f32>, const KIND: u8>(u: &Units) {
    let own = u.phase().gates * UNITS;
    let (gates, biases) = (u.cell.gates() * UNITS, u.cell.biases() * UNITS);
    for row in 0..u.rows {
        // SAFETY: guaranteed by the caller; a sequence that has ended keeps its state.
        unsafe {
            let y = u.y.0.offset(row as isize * u.y.1);
            let state = row * u.before.1;
            if !u.lengths.is_null() && u.step >= *u.lengths.add(row) {
                let (from, to) = (u.before.0.add(state), u.after.add(state));
                std::ptr::copy_nonoverlapping(from, to, u.groups * UNITS);
                y.write_bytes(0, u.units);
                continue;
            }
            for lane in (0..u.groups * UNITS).step_by(L::N) {
                let (group, rest) = (lane / UNITS, lane % UNITS);
                let at = At {
                    u,
                    sums: u.sums.0.add(row * u.sums.1 + group * own + rest),
                    gates: u.gates.0.add(row * u.gates.1 + group * gates + rest),
                    bias: u.bias.add(group * biases + rest),
                    state: state + lane,
                    unit: lane,
                };
                if let Some(h) = next::<L, KIND>(&at) {
                    h.store(u.after.add(at.state));
                    if lane < u.units {
                        h.store_first(y.add(lane), L::N.min(u.units - lane));
                    }
                }
            }
        }
    }
}
