//! Computes the next states of LSTM, GRU and plain recurrent cells from the products of states and
//! weights.
//!
//! For each group of 16 units, the vectors of all gates are adjacent, both in the products of
//! states and weights and in the products of inputs and weights. States are padded to whole
//! vectors, so only the stores of results handle an incomplete last vector. Gates use the
//! elementary functions of [`crate::math`], which have errors of up to 2 ulp.
//!
//! Method: one pass over the gates of 16 units while their sums are in the nearest cache. For
//! measurements of the whole layer, see "Recurrent layers" in
//! `docs/internals/measurements/recurrent.md`.

use pliant_tensor::rnn_weight_layout::{Cell, StateProduct, UNITS};

use crate::math;
use crate::simd::{MathLanes, for_isa};
use crate::vector_math::vector_math_ops::Wide;
use pliant_machine::isa::Isa;

/// The arguments for computing the next state: the hidden units of one panel, for some sequences at one step. Addresses
/// refer to the panel's first unit and the first sequence; strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Units {
    /// The kind of cell: LSTM, GRU or plain.
    pub cell: Cell,
    /// The index, within the step, of the matrix product in `sums`: 0, or 1 for the second matrix
    /// product of a GRU step.
    pub phase: usize,
    /// The number of sequences (rows of states).
    pub rows: usize,
    /// The number of groups of 16 units in the panel.
    pub groups: usize,
    /// The number of units in the panel, without padding.
    pub units: usize,
    /// The address of the matrix product of state and recurrent weights, and the stride between its rows in elements.
    pub sums: (*const f32, usize),
    /// The address of the matrix product of input and input weights for all gates, and the stride between its rows in elements.
    pub gates: (*const f32, usize),
    /// The address of the biases of all gates.
    pub bias: *const f32,
    /// The peephole weights of the input gate, and the stride between gates in elements. The
    /// address is null without peepholes.
    pub peepholes: (*const f32, usize),
    /// The previous output state, and the stride between its rows in elements. All states have this
    /// stride.
    pub before: (*const f32, usize),
    /// The address to which the next output state is written.
    pub after: *mut f32,
    /// The address of the cell state of an LSTM, or of the update gate of a GRU.
    pub c: *mut f32,
    /// The destination of the product of the reset gate and the state. Used only for a GRU whose
    /// reset gate applies to the state.
    pub reset: *mut f32,
    /// The results of the step, and the stride between their rows, in elements.
    pub y: (*mut f32, isize),
    /// The lengths of the sequences; null if all sequences include the step.
    pub lengths: *const i64,
    /// The index of the current time step.
    pub step: i64,
}

impl Units {
    /// Computes the next states and the results of the hidden units.
    ///
    /// # Safety
    /// The machine has `isa`. All addressed elements are valid; written elements overlap no other
    /// operand.
    pub unsafe fn finish(&self, isa: Isa) {
        let finish = for_isa!(isa, finish(units: &Units)).0;
        // SAFETY: guaranteed by the caller.
        unsafe { finish(self) }
    }

    fn state_product(&self) -> StateProduct {
        self.cell.state_products()[self.phase]
    }
}

/// A group of adjacent hidden units of one sequence that fill one SIMD vector: the addresses and indices from which the next states
/// of these units are computed.
struct UnitVector<'a> {
    u: &'a Units,
    /// The address of the products of state and weights for these hidden units, at their first
    /// gate. The fields `gates` and `bias` are the addresses of the products of input and weights
    /// and of the biases.
    sums: *const f32,
    gates: *const f32,
    bias: *const f32,
    /// The index of the first hidden unit within a state. The field `unit` is its index within the
    /// panel.
    state: usize,
    unit: usize,
}

impl UnitVector<'_> {
    /// Returns the argument of a gate: the products of state and input with the gate's weights,
    /// plus the bias.
    ///
    /// # Safety
    /// The conditions of [`finish`] hold. The other methods have the same conditions.
    #[inline(always)]
    unsafe fn gate<L: MathLanes<Elem = f32>>(&self, gate: usize) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe { self.sum::<L>(gate).add(self.input(gate)) }
    }

    /// Returns the product of state and weights for a gate.
    #[inline(always)]
    unsafe fn sum<L: MathLanes<Elem = f32>>(&self, gate: usize) -> L {
        let index = gate - self.u.state_product().first;
        // SAFETY: as above.
        unsafe { L::load(self.sums.add(index * UNITS)) }
    }

    /// Returns the product of input and weights for a gate, plus the bias.
    #[inline(always)]
    unsafe fn input<L: MathLanes<Elem = f32>>(&self, gate: usize) -> L {
        // SAFETY: as above.
        unsafe { L::load(self.gates.add(gate * UNITS)).add(L::load(self.bias.add(gate * UNITS))) }
    }

    /// Returns `x` plus `c` times the peephole weight of a gate, if there are peepholes.
    #[inline(always)]
    unsafe fn add_peephole<L: MathLanes<Elem = f32>>(&self, gate: usize, x: L, c: L) -> L {
        let (peepholes, stride) = self.u.peepholes;
        if peepholes.is_null() || self.unit >= self.u.units {
            return x;
        }
        let count = L::N.min(self.u.units - self.unit);
        // SAFETY: as above.
        unsafe { L::load_first(peepholes.add(gate * stride + self.unit), count).mul_add(c, x) }
    }
}

/// Computes an LSTM cell: updates the cell state and returns the next output.
#[inline(always)]
unsafe fn lstm<L: MathLanes<Elem = f32>>(v: &UnitVector<'_>) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ops = Wide::<L>::new();
        let cell_state = v.u.c.add(v.state);
        let old = L::load(cell_state);
        let i = math::sigmoid(&mut ops, &v.add_peephole(0, v.gate::<L>(0), old));
        let f = math::sigmoid(&mut ops, &v.add_peephole(2, v.gate::<L>(2), old));
        let g = math::tanh(&mut ops, &v.gate::<L>(3));
        let c = f.mul_add(old, i.mul(g));
        c.store(cell_state);
        let o = math::sigmoid(&mut ops, &v.add_peephole(1, v.gate::<L>(1), c));
        o.mul(math::tanh(&mut ops, &c))
    }
}

/// Returns the next state of a GRU: interpolates between `hidden` and the previous state by the
/// update gate.
#[inline(always)]
unsafe fn interpolate<L: MathLanes<Elem = f32>>(v: &UnitVector<'_>, update: L, hidden: L) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let old = L::load(v.u.before.0.add(v.state));
        let rest = L::constant(1.0).sub(update);
        update.mul_add(old, rest.mul(hidden))
    }
}

/// Returns the next output of a GRU whose reset gate applies to the product of state and weights.
#[inline(always)]
unsafe fn linear_gru<L: MathLanes<Elem = f32>>(v: &UnitVector<'_>) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ops = Wide::<L>::new();
        let update = math::sigmoid(&mut ops, &v.gate::<L>(0));
        let reset = math::sigmoid(&mut ops, &v.gate::<L>(1));
        let product = v.sum::<L>(2).add(L::load(v.bias.add(3 * UNITS)));
        let hidden = math::tanh(&mut ops, &reset.mul_add(product, v.input(2)));
        interpolate(v, update, hidden)
    }
}

/// Computes the gates of a GRU after the first matrix product of a step. Stores the update gate,
/// and the product of reset gate and state.
#[inline(always)]
unsafe fn gru_gates<L: MathLanes<Elem = f32>>(v: &UnitVector<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut ops = Wide::<L>::new();
        let update: L = math::sigmoid(&mut ops, &v.gate::<L>(0));
        let reset = math::sigmoid(&mut ops, &v.gate::<L>(1));
        update.store(v.u.c.add(v.state));
        reset.mul(L::load(v.u.before.0.add(v.state))).store(v.u.reset.add(v.state));
    }
}

/// Returns the next output of a GRU after the second matrix product of a step.
#[inline(always)]
unsafe fn gru<L: MathLanes<Elem = f32>>(v: &UnitVector<'_>) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let hidden = math::tanh(&mut Wide::<L>::new(), &v.gate::<L>(2));
        interpolate(v, L::load(v.u.c.add(v.state)), hidden)
    }
}

/// A value of the const parameter `KIND`, which selects what is computed after a matrix product of state and weights: here, all
/// gates and the next output of an LSTM. The following constants are the other values of `KIND`.
const LSTM: u8 = 0;
const GRU_GATES: u8 = 1;
const GRU: u8 = 2;
const LINEAR_GRU: u8 = 3;
const RNN: u8 = 4;

/// Computes the next states of all units of the panel.
///
/// # Safety
/// The conditions of [`Units::finish`] hold; the caller has enabled the instructions of `L`.
#[inline(always)]
unsafe fn finish<L: MathLanes<Elem = f32>>(u: &Units) {
    // SAFETY: guaranteed by the caller; likewise below.
    unsafe {
        match (u.cell, u.phase) {
            (Cell::Lstm, _) => finish_all::<L, LSTM>(u),
            (Cell::Gru, 0) => finish_all::<L, GRU_GATES>(u),
            (Cell::Gru, _) => finish_all::<L, GRU>(u),
            (Cell::LinearGru, _) => finish_all::<L, LINEAR_GRU>(u),
            (Cell::Rnn, _) => finish_all::<L, RNN>(u),
        }
    }
}

/// Returns the next output of one vector of units. Returns `None` if the step needs a second matrix
/// product first, as in a GRU whose reset gate applies to the state.
#[inline(always)]
unsafe fn next_output<L: MathLanes<Elem = f32>, const KIND: u8>(v: &UnitVector<'_>) -> Option<L> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match KIND {
            LSTM => Some(lstm(v)),
            GRU_GATES => {
                gru_gates::<L>(v);
                None
            }
            GRU => Some(gru(v)),
            LINEAR_GRU => Some(linear_gru(v)),
            _ => Some(math::tanh(&mut Wide::<L>::new(), &v.gate::<L>(0))),
        }
    }
}

/// Computes the next outputs of all hidden units of the panel for all sequences, and writes them to the states and the results.
#[inline(always)]
unsafe fn finish_all<L: MathLanes<Elem = f32>, const KIND: u8>(u: &Units) {
    let group_sums = u.state_product().gates * UNITS;
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
                let v = UnitVector {
                    u,
                    sums: u.sums.0.add(row * u.sums.1 + group * group_sums + rest),
                    gates: u.gates.0.add(row * u.gates.1 + group * gates + rest),
                    bias: u.bias.add(group * biases + rest),
                    state: state + lane,
                    unit: lane,
                };
                if let Some(h) = next_output::<L, KIND>(&v) {
                    h.store(u.after.add(v.state));
                    if lane < u.units {
                        h.store_first(y.add(lane), L::N.min(u.units - lane));
                    }
                }
            }
        }
    }
}
