//! The packed memory layout of constant weights of recurrent layers, which kernels read sequentially.
//!
//! The rows of the weights in ONNX are ordered by gate, then by unit. As columns of a right operand they are
//! interleaved: for each group of [`UNITS`] units, the columns of the first gate, then those of the next gate, and so
//! on. Columns are split into panels as in [`crate::pack_panels`]. A panel of the recurrent weights contains whole
//! groups of units, so the matrix product with one panel computes all gates of its units. The last group is padded with
//! zeros.

/// Number of units of the recurrent layer in a group, which is the number of lanes of the widest vector.
pub const UNITS: usize = 16;
/// Number of columns of a panel (a block of adjacent columns that is stored contiguously) of the packed input weights.
pub const INPUT_WIDTH: usize = 64;

/// The type of cell of a recurrent layer. The gates are listed in ONNX order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// LSTM, with the gates input, output, forget, cell.
    Lstm,
    /// GRU, with the gates update, reset, hidden. The reset gate is applied to the state before the matrix product with
    /// the recurrent weights.
    Gru,
    /// GRU with `linear_before_reset`: the reset gate is applied to the matrix product of the state with the recurrent
    /// weights.
    LinearGru,
    /// Elman RNN: the new state is the hyperbolic tangent of the sums.
    Rnn,
}

/// One matrix product of the state with recurrent weights in a time step, which computes one or more gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateProduct {
    /// The index of the first gate that the matrix product computes.
    pub first: usize,
    /// The number of gates that the matrix product computes.
    pub gates: usize,
    /// The number of columns of a panel of the recurrent weights in this matrix product.
    pub width: usize,
}

const fn state_product(first: usize, gates: usize) -> StateProduct {
    StateProduct { first, gates, width: 64 / (UNITS * gates) * UNITS * gates }
}

impl Cell {
    /// All types of cells, in order of their numbers.
    pub const ALL: [Cell; 4] = [Cell::Lstm, Cell::Gru, Cell::LinearGru, Cell::Rnn];

    /// Returns the number that identifies the type of cell in programs.
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Returns the type of cell with the given number; `None` if there is none.
    pub fn from_number(number: i64) -> Option<Cell> {
        Cell::ALL.into_iter().find(|c| c.number() == number)
    }

    /// Returns the number of gates of the cell in the weights.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru | Cell::LinearGru => 3,
            Cell::Rnn => 1,
        }
    }

    /// Returns the number of packed biases per unit. The input bias and the recurrent bias of a
    /// gate are summed, except for the hidden gate of [`Cell::LinearGru`], where the reset gate is
    /// applied between them.
    pub fn biases(self) -> usize {
        if self == Cell::LinearGru { 4 } else { self.gates() }
    }

    /// Returns the matrix products of the state with recurrent weights in one time step.
    pub fn state_products(self) -> &'static [StateProduct] {
        const LSTM: [StateProduct; 1] = [state_product(0, 4)];
        const GRU: [StateProduct; 2] = [state_product(0, 2), state_product(2, 1)];
        const LINEAR_GRU: [StateProduct; 1] = [state_product(0, 3)];
        const RNN: [StateProduct; 1] = [state_product(0, 1)];
        match self {
            Cell::Lstm => &LSTM,
            Cell::Gru => &GRU,
            Cell::LinearGru => &LINEAR_GRU,
            Cell::Rnn => &RNN,
        }
    }

    /// Returns the number of columns of the packed input weights for `hidden` units; `None` on
    /// overflow.
    pub fn input_columns(self, hidden: usize) -> Option<usize> {
        columns(hidden, self.gates(), INPUT_WIDTH)
    }

    /// Returns the number of columns of the packed recurrent weights of all matrix products, for `hidden` units; `None`
    /// on overflow.
    pub fn state_columns(self, hidden: usize) -> Option<usize> {
        let each = self.state_products().iter().map(|p| columns(hidden, p.gates, p.width));
        each.sum()
    }

    /// Returns the number of packed biases for `hidden` units; `None` on overflow.
    pub fn bias_columns(self, hidden: usize) -> Option<usize> {
        columns(hidden, self.biases(), UNITS)
    }
}

/// Returns the number of columns of the packed weights of `gates` gates for `hidden` units, rounded up to whole panels; `None` on
/// overflow.
fn columns(hidden: usize, gates: usize, width: usize) -> Option<usize> {
    let columns = hidden.checked_next_multiple_of(UNITS)?.checked_mul(gates)?;
    columns.checked_next_multiple_of(width)
}

/// Packs the gates `first .. first + gates` of weights with `hidden` rows of `k` elements per gate into panels of `width` columns,
/// and appends the panels to `to`. `None` if the weights have too few elements or a size overflows.
fn pack(
    weights: &[f32],
    (hidden, k): (usize, usize),
    (first, gates, width): (usize, usize, usize),
    to: &mut Vec<f32>,
) -> Option<()> {
    let start = to.len();
    to.resize(start.checked_add(columns(hidden, gates, width)?.checked_mul(k)?)?, 0.0);
    let to = &mut to[start..];
    for gate in 0..gates {
        for unit in 0..hidden {
            let column = (unit / UNITS * gates + gate) * UNITS + unit % UNITS;
            let at = column / width * k * width + column % width;
            let row = weights.get(((first + gate) * hidden + unit) * k..)?.get(..k)?;
            for (step, &weight) in row.iter().enumerate() {
                to[at + step * width] = weight;
            }
        }
    }
    Some(())
}

fn fits(weights: &[f32], rows: usize, hidden: usize, k: usize) -> Option<()> {
    (weights.len() == rows.checked_mul(hidden)?.checked_mul(k)?).then_some(())
}

/// Packs the input weights `[gates * hidden, k]` of one direction into panels `[panels, k, 64]`, where `k` is the input size.
/// `None` if the sizes do not match.
pub fn pack_input(cell: Cell, weights: &[f32], hidden: usize, k: usize) -> Option<Vec<f32>> {
    let mut out = Vec::new();
    fits(weights, cell.gates(), hidden, k)?;
    pack(weights, (hidden, k), (0, cell.gates(), INPUT_WIDTH), &mut out)?;
    Some(out)
}

/// Packs the recurrent weights `[gates * hidden, hidden]` of one direction into the panels of all matrix products of a
/// time step. `None` if the sizes do not match.
pub fn pack_state(cell: Cell, weights: &[f32], hidden: usize) -> Option<Vec<f32>> {
    let mut out = Vec::new();
    fits(weights, cell.gates(), hidden, hidden)?;
    for p in cell.state_products() {
        pack(weights, (hidden, hidden), (p.first, p.gates, p.width), &mut out)?;
    }
    Some(out)
}

/// Packs the biases `[2 * gates * hidden]` of one direction, input biases first. Without biases the result is zeros. `None` if the
/// sizes do not match.
pub fn pack_bias(cell: Cell, biases: Option<&[f32]>, hidden: usize) -> Option<Vec<f32>> {
    let gates = cell.gates();
    let mut rows = vec![0f32; cell.biases().checked_mul(hidden)?];
    if let Some(biases) = biases {
        fits(biases, 2 * gates, hidden, 1)?;
        let (input, state) = biases.split_at(gates * hidden);
        rows[..gates * hidden].copy_from_slice(input);
        // The bias that the reset gate scales stays separate.
        let separate_from = if cell == Cell::LinearGru { 2 * hidden } else { gates * hidden };
        rows[..separate_from].iter_mut().zip(state).for_each(|(sum, x)| *sum += x);
        if cell == Cell::LinearGru {
            rows[3 * hidden..].copy_from_slice(&state[separate_from..]);
        }
    }
    let mut out = Vec::new();
    pack(&rows, (hidden, 1), (0, cell.biases(), UNITS), &mut out)?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_is_packed_and_the_padding_is_zero() {
        for cell in Cell::ALL {
            assert_eq!(Cell::from_number(cell.number()), Some(cell));
            for (hidden, k) in [(1, 1), (17, 3), (70, 2), (0, 3), (16, 0)] {
                let weights: Vec<f32> = (1..=cell.gates() * hidden * k).map(|i| i as f32).collect();
                let packed = pack_input(cell, &weights, hidden, k).unwrap();
                assert_eq!(packed.len(), cell.input_columns(hidden).unwrap() * k);
                let mut seen = 0;
                for (at, &x) in packed.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                    let (step, column) = (
                        at / INPUT_WIDTH % k,
                        at / (INPUT_WIDTH * k) * INPUT_WIDTH + at % INPUT_WIDTH,
                    );
                    let (group, gate) =
                        (column / UNITS / cell.gates(), column / UNITS % cell.gates());
                    let row = gate * hidden + group * UNITS + column % UNITS;
                    assert_eq!(x, weights[row * k + step]);
                    seen += 1;
                }
                assert_eq!(seen, weights.len());
            }
        }
    }

    #[test]
    fn panels_contain_whole_groups_of_units() {
        for cell in Cell::ALL {
            let weights: Vec<f32> = (1..=cell.gates() * 20 * 20).map(|i| i as f32).collect();
            let packed = pack_state(cell, &weights, 20).unwrap();
            assert_eq!(packed.len(), cell.state_columns(20).unwrap() * 20);
            let mut sorted: Vec<f32> = packed.into_iter().filter(|&x| x != 0.0).collect();
            sorted.sort_by(f32::total_cmp);
            assert_eq!(sorted, weights);
            for p in cell.state_products() {
                assert_eq!(p.width % (UNITS * p.gates), 0);
            }
        }
        assert!(pack_state(Cell::Rnn, &[0.0; 5], 2).is_none());
    }

    #[test]
    fn biases_are_summed_except_for_the_reset_hidden_gate() {
        let biases: Vec<f32> = (1..=6).map(|i| i as f32).collect();
        let first = |packed: Vec<f32>| packed.chunks(UNITS).map(|c| c[0]).collect::<Vec<_>>();
        let of = |cell| first(pack_bias(cell, Some(&biases), 1).unwrap());
        assert_eq!(of(Cell::Gru), [5.0, 7.0, 9.0]);
        assert_eq!(of(Cell::LinearGru), [5.0, 7.0, 3.0, 6.0]);
        assert_eq!(first(pack_bias(Cell::Rnn, None, 17).unwrap()), [0.0, 0.0]);
        assert!(pack_bias(Cell::Rnn, Some(&biases), 2).is_none());
    }
}
