//! The declaration of the kernel `recurrent`: LSTM, GRU and plain recurrent layers.

use pliant_tensor::DType::{Float32, Int64};
use pliant_tensor::rnn_weight_layout::{Cell, INPUT_WIDTH, UNITS};

use crate::reference::{Args, Result, indices, round_f32};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// The names of the cell kinds, in the order of [`Cell::number`].
const CELLS: &[&str] = &["lstm", "gru", "linear_gru", "rnn"];
/// The choices of the attribute `layout`: whether the time steps or the sequences of the batch are
/// the first dim.
pub const LAYOUTS: &[&str] = &["steps_first", "batch_first"];

const X: Dims = Dims::ByLayout(&[&["steps", "batch", "input"], &["batch", "steps", "input"]]);
const Y: Dims = Dims::ByLayout(&[
    &["steps", "directions", "batch", "hidden"],
    &["batch", "steps", "directions", "hidden"],
]);
const STATE: Dims =
    Dims::ByLayout(&[&["directions", "batch", "hidden"], &["batch", "directions", "hidden"]]);

/// The declaration of the kernel `recurrent`: LSTM, GRU and plain recurrent layers.
pub static KERNEL: Kernel = Kernel {
    name: "recurrent",
    doc: "An LSTM, GRU or plain recurrent layer, in one or both directions (ONNX `LSTM`, `GRU`, `RNN`). Weights are packed: \
          the gates of 16 units are adjacent (`pliant_tensor::rnn_weight_layout`).",
    operands: &[
        Operand::input("x", Float32, X, "inputs").strided_rows(),
        Operand::input("w", Float32, Dims::Fixed(&["input_weights"]), "packed input weights"),
        Operand::input("r", Float32, Dims::Fixed(&["state_weights"]), "packed recurrence weights"),
        Operand::input("bias", Float32, Dims::Fixed(&["biases"]), "packed biases"),
        Operand::input(
            "peepholes",
            Float32,
            Dims::Fixed(&["directions", "peephole_weights"]),
            "peephole weights of the input, output and forget gates of an LSTM; 0 if omitted",
        )
        .optional(),
        Operand::input(
            "lengths",
            Int64,
            Dims::Fixed(&["batch"]),
            "the number of steps of each sequence, 0 to `steps`; `steps` if omitted",
        )
        .optional(),
        Operand::input(
            "initial_h",
            Float32,
            STATE,
            "hidden states before the first step; 0 if omitted",
        )
        .optional(),
        Operand::input(
            "initial_c",
            Float32,
            STATE,
            "cell states of an LSTM before the first step; 0 if omitted",
        )
        .optional(),
        Operand::output(
            "y",
            Float32,
            Y,
            "hidden states after each step; 0 after the end of a sequence",
        ),
        Operand::output("last_h", Float32, STATE, "hidden states after the last step"),
        Operand::output("last_c", Float32, STATE, "cell states of an LSTM after the last step")
            .optional(),
    ],
    attrs: &[
        Attr::new(
            "cell",
            AttrType::Choice(CELLS),
            AttrDefault::Required,
            "the kind of cell; `linear_gru` applies the reset gate after the recurrence product",
        ),
        Attr::new(
            "layout",
            AttrType::Choice(LAYOUTS),
            AttrDefault::Number(0),
            "the order of the dims of inputs, results and states",
        ),
        Attr::new(
            "reverse",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether the first direction starts at the last step",
        ),
    ],
    derived: &[
        ("input_weights", |c, s| packed_len(c, s, Cell::input_columns, s.get("input"))),
        ("state_weights", |c, s| packed_len(c, s, Cell::state_columns, s.get("hidden"))),
        ("biases", |c, s| packed_len(c, s, Cell::bias_columns, 1)),
        ("peephole_weights", |_, s| s.get("hidden").checked_mul(3)),
    ],
    relations,
    flops,
    reference,
};

/// Returns the name of a cell kind, as in the attribute `cell`.
pub fn cell_name(cell: Cell) -> &'static str {
    CELLS[cell.number() as usize]
}

/// Returns the cell kind of a call. The attributes of the call must have been checked.
pub fn cell(call: &Call) -> Cell {
    Cell::from_number(call.int("cell")).expect("the attribute is in range")
}

/// Returns the number of elements of a packed operand, for all directions. Each direction has `rows` rows. The function
/// `columns` computes the row length from the cell kind and the number of hidden units. Returns `None` on overflow.
fn packed_len(
    call: &Call,
    sizes: &Sizes,
    columns: fn(Cell, usize) -> Option<usize>,
    rows: i64,
) -> Option<i64> {
    let size = |name: &str| usize::try_from(sizes.get(name)).ok();
    let columns = columns(cell(call), size("hidden")?)?;
    let per_direction = columns.checked_mul(usize::try_from(rows).ok()?)?;
    i64::try_from(per_direction.checked_mul(size("directions")?)?).ok()
}

fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    let directions = sizes.get("directions");
    if !(1..=2).contains(&directions) {
        return Err(format!("operand 'y' has {directions} directions, expected 1 or 2"));
    }
    let is_lstm = cell(call) == Cell::Lstm;
    for name in ["peepholes", "initial_c", "last_c"] {
        if call.operand(name).is_some() && !is_lstm {
            return Err(format!("operand '{name}' is only allowed for an LSTM"));
        }
    }
    if is_lstm && call.operand("last_c").is_none() {
        return Err("operand 'last_c' is missing, which is required for an LSTM".to_string());
    }
    Ok(())
}

fn flops(call: &Call, sizes: &Sizes) -> f64 {
    let gates = cell(call).gates() as f64;
    let size = |name: &str| sizes.get(name) as f64;
    let rows = size("steps") * size("batch") * size("directions");
    2.0 * rows * gates * size("hidden") * (size("input") + size("hidden"))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the index of a weight in the packed weights of one direction. The weight belongs to the hidden unit `unit`,
/// the gate `gate` of `gates`, and the row `k` of `rows`. Panels have `width` columns.
fn packed_position(unit: i64, (gate, gates): (i64, i64), (k, rows): (i64, i64), width: i64) -> i64 {
    let units = UNITS as i64;
    let column = (unit / units * gates + gate) * units + unit % units;
    (column / width * rows + k) * width + column % width
}

/// The operands and sizes of a recurrent layer, for the reference implementation.
struct Layer<'a, 'b> {
    args: &'a mut Args<'b>,
    cell: Cell,
    /// The number of input elements of one time step.
    input: i64,
    /// The number of hidden units of the layer.
    hidden: i64,
}

impl Layer<'_, '_> {
    /// Reads one element of the packed operand `name`. `position` is the index of the element within direction `d`.
    fn packed(&self, name: &str, d: i64, position: i64) -> Result<f64> {
        let len: i64 = self.args.view(name)?.shape().iter().product();
        let directions = self.args.sizes.get("directions");
        self.args.get_at(name, &[len / directions * d + position])
    }

    /// Returns the dot product of the input at step `t` of sequence `b` and the input weights of
    /// one gate of one hidden unit, plus the bias.
    fn input_product(&self, d: i64, (gate, unit): (i64, i64), (t, b): (i64, i64)) -> Result<f64> {
        let (gates, biases) = (self.cell.gates() as i64, self.cell.biases() as i64);
        let mut sum = self.bias(d, gate, biases, unit)?;
        for k in 0..self.input {
            let at = packed_position(unit, (gate, gates), (k, self.input), INPUT_WIDTH as i64);
            let x = self.args.get("x", &[("steps", t), ("batch", b), ("input", k)])?;
            sum += x * self.packed("w", d, at)?;
        }
        Ok(sum)
    }

    /// Returns the bias of gate `gate` of hidden unit `unit` in direction `d`. `biases` is the number of packed biases per unit.
    fn bias(&self, d: i64, gate: i64, biases: i64, unit: i64) -> Result<f64> {
        self.packed("bias", d, packed_position(unit, (gate, biases), (0, 1), UNITS as i64))
    }

    /// Returns the dot product of a hidden state and the recurrence weights of one gate of one
    /// hidden unit.
    fn state_product(&self, d: i64, (gate, unit): (i64, i64), state: &[f64]) -> Result<f64> {
        let mut first_column = 0;
        for p in self.cell.state_products() {
            let (local_gate, gates, width) =
                (gate - p.first as i64, p.gates as i64, p.width as i64);
            if local_gate < gates {
                let mut sum = 0.0;
                for (k, h) in (0..).zip(state) {
                    let at = packed_position(unit, (local_gate, gates), (k, self.hidden), width);
                    sum += h * self.packed("r", d, first_column * self.hidden + at)?;
                }
                return Ok(sum);
            }
            let columns = (self.hidden as usize).next_multiple_of(UNITS) * p.gates;
            first_column += columns.next_multiple_of(p.width) as i64;
        }
        Err(format!("internal error: no product of state and weights computes gate {gate}").into())
    }

    /// Returns the peephole weight of gate `gate` of hidden unit `unit` in direction `d`; 0 if the call omits peephole weights.
    fn peephole(&self, d: i64, gate: i64, unit: i64) -> Result<f64> {
        self.args.get_or("peepholes", &[d, gate * self.hidden + unit], 0.0)
    }

    /// Computes one time step of one sequence: updates the hidden state `h` and the cell state `c`. `at` is (index of
    /// the step, index of the sequence).
    fn step(&self, d: i64, at: (i64, i64), h: &mut [f64], c: &mut [f64]) -> Result<()> {
        let before = h.to_vec();
        let sum = |gate: i64, unit: i64| -> Result<f64> {
            Ok(self.input_product(d, (gate, unit), at)?
                + self.state_product(d, (gate, unit), &before)?)
        };
        let mut reset_state = before.clone();
        if self.cell == Cell::Gru {
            for (unit, value) in (0..).zip(&mut reset_state) {
                *value *= sigmoid(sum(1, unit)?);
            }
        }
        for unit in 0..self.hidden {
            let j = unit as usize;
            let interpolate = |z: f64, n: f64| (1.0 - z) * n + z * before[j];
            let next = match self.cell {
                Cell::Lstm => {
                    let i = sigmoid(sum(0, unit)? + self.peephole(d, 0, unit)? * c[j]);
                    let f = sigmoid(sum(2, unit)? + self.peephole(d, 2, unit)? * c[j]);
                    c[j] = round_f32(f * c[j] + i * sum(3, unit)?.tanh());
                    sigmoid(sum(1, unit)? + self.peephole(d, 1, unit)? * c[j]) * c[j].tanh()
                }
                Cell::Gru => {
                    let input = self.input_product(d, (2, unit), at)?;
                    let candidate =
                        (input + self.state_product(d, (2, unit), &reset_state)?).tanh();
                    interpolate(sigmoid(sum(0, unit)?), candidate)
                }
                Cell::LinearGru => {
                    let product =
                        self.state_product(d, (2, unit), &before)? + self.bias(d, 3, 4, unit)?;
                    let input = self.input_product(d, (2, unit), at)?;
                    interpolate(
                        sigmoid(sum(0, unit)?),
                        (input + sigmoid(sum(1, unit)?) * product).tanh(),
                    )
                }
                Cell::Rnn => sum(0, unit)?.tanh(),
            };
            h[j] = round_f32(next);
        }
        Ok(())
    }

    /// Returns the initial state of a sequence. `name` is the operand that contains the hidden or
    /// the cell states.
    fn initial_state(&self, name: &str, d: i64, b: i64) -> Result<Vec<f64>> {
        let at = |j: i64| [("directions", d), ("batch", b), ("hidden", j)];
        match self.args.has(name) {
            true => (0..self.hidden).map(|j| self.args.get(name, &at(j))).collect(),
            false => Ok(vec![0.0; self.hidden as usize]),
        }
    }

    /// Writes the final state of a sequence to the operand `name`, which contains the hidden or the
    /// cell states.
    fn set_last(&mut self, name: &str, (d, b): (i64, i64), state: &[f64]) -> Result<()> {
        for (j, &value) in (0..).zip(state) {
            let at = [("directions", d), ("batch", b), ("hidden", j)];
            self.args.set(name, &at, value)?;
        }
        Ok(())
    }

    /// Returns the number of steps of sequence `b`. A length above `steps` is an error.
    fn length(&self, b: i64, steps: i64) -> Result<i64> {
        let length = self.args.int_or("lengths", &[b], steps)?;
        let is_valid = (0..=steps).contains(&length);
        is_valid
            .then_some(length)
            .ok_or_else(|| format!("lengths[{b}] is {length}, expected 0 to {steps}").into())
    }
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (call, sizes) = (args.call, args.sizes);
    let size = |name: &str| sizes.get(name);
    let mut layer = Layer { args, cell: cell(call), input: size("input"), hidden: size("hidden") };
    let steps = size("steps");
    let weights = size("input_weights").saturating_add(size("state_weights"));
    let work = weights.saturating_add(layer.hidden) as u64 + 1;
    for [d, b] in indices(["directions", "batch"].map(size)) {
        let mut h = layer.initial_state("initial_h", d, b)?;
        let mut c = layer.initial_state("initial_c", d, b)?;
        let length = layer.length(b, steps)?;
        for index in 0..steps {
            layer.args.step(work)?;
            let is_active = index < length;
            let backwards = (d == 1 || call.int("reverse") != 0) && is_active;
            let t = if backwards { length - 1 - index } else { index };
            if is_active {
                layer.step(d, (t, b), &mut h, &mut c)?;
            }
            for (j, &value) in (0..).zip(&h) {
                let at = [("steps", t), ("directions", d), ("batch", b), ("hidden", j)];
                layer.args.set("y", &at, if is_active { value } else { 0.0 })?;
            }
        }
        layer.set_last("last_h", (d, b), &h)?;
        if layer.cell == Cell::Lstm {
            layer.set_last("last_c", (d, b), &c)?;
        }
    }
    Ok(())
}
