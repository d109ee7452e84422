//! Recurrent layers.

use pliant_tensor::DType::{Float32, Int64};
use pliant_tensor::rnn_weight_layout::{Cell, INPUT_WIDTH, UNITS};

use crate::reference::{Args, Result, indices, round_f32};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// The cells, in the order of [`Cell::number`].
const CELLS: &[&str] = &["lstm", "gru", "linear_gru", "rnn"];
/// The layouts of `x` and `y`: steps or sequences first.
pub const LAYOUTS: &[&str] = &["steps_first", "batch_first"];

const X: Dims = Dims::ByLayout(&[&["steps", "batch", "input"], &["batch", "steps", "input"]]);
const Y: Dims = Dims::ByLayout(&[
    &["steps", "directions", "batch", "hidden"],
    &["batch", "steps", "directions", "hidden"],
]);
const STATE: Dims =
    Dims::ByLayout(&[&["directions", "batch", "hidden"], &["batch", "directions", "hidden"]]);

/// The declaration.
pub static KERNEL: Kernel = Kernel {
    name: "recurrent",
    doc: "An LSTM, GRU or plain recurrent layer, in one or both directions (ONNX `LSTM`, `GRU`, `RNN`). Weights are packed: \
          the gates of 16 units lie side by side (`pliant_tensor::rnn_weight_layout`).",
    operands: &[
        Operand::input("x", Float32, X, "inputs").strided_rows(),
        Operand::input("w", Float32, Dims::Fixed(&["input_weights"]), "packed input weights"),
        Operand::input("r", Float32, Dims::Fixed(&["state_weights"]), "packed recurrence weights"),
        Operand::input("bias", Float32, Dims::Fixed(&["biases"]), "packed biases"),
        Operand::input(
            "peepholes",
            Float32,
            Dims::Fixed(&["directions", "peephole_weights"]),
            "peepholes of the input, output and forget gates of an LSTM",
        )
        .optional(),
        Operand::input(
            "lengths",
            Int64,
            Dims::Fixed(&["batch"]),
            "steps of each sequence, 0 to `steps`; without, all have `steps`",
        )
        .optional(),
        Operand::input(
            "initial_h",
            Float32,
            STATE,
            "hidden states before the first step; without, zeros",
        )
        .optional(),
        Operand::input(
            "initial_c",
            Float32,
            STATE,
            "cell states of an LSTM before the first step; without, zeros",
        )
        .optional(),
        Operand::output(
            "y",
            Float32,
            Y,
            "hidden states after each step, zeros after the end of a sequence",
        ),
        Operand::output("last_h", Float32, STATE, "hidden states after the last step"),
        Operand::output("last_c", Float32, STATE, "cell states of an LSTM after the last step")
            .optional(),
    ],
    attrs: &[
        Attr {
            name: "cell",
            ty: AttrType::Choice(CELLS),
            default: AttrDefault::Required,
            doc: "the kind of cell; `linear_gru` applies the reset gate after the recurrence product",
        },
        Attr {
            name: "layout",
            ty: AttrType::Choice(LAYOUTS),
            default: AttrDefault::Number(0),
            doc: "the order of the dims of inputs, results and states",
        },
        Attr {
            name: "reverse",
            ty: AttrType::Bool,
            default: AttrDefault::Number(0),
            doc: "whether the first direction starts at the last step",
        },
    ],
    derived: &[
        ("input_weights", |c, s| packed(c, s, Cell::input_columns, s.get("input"))),
        ("state_weights", |c, s| packed(c, s, Cell::state_columns, s.get("hidden"))),
        ("biases", |c, s| packed(c, s, Cell::bias_columns, 1)),
        ("peephole_weights", |_, s| s.get("hidden").checked_mul(3)),
    ],
    relations,
    flops,
    reference,
};

/// The name of a cell in the attribute `cell`.
pub fn cell_name(cell: Cell) -> &'static str {
    CELLS[cell.number() as usize]
}

/// The cell of a call.
pub fn cell(call: &Call) -> Cell {
    Cell::from_number(call.int("cell")).expect("the attribute is in range")
}

/// The number of packed elements of all directions: `columns` of the cell for each of
/// `rows` inputs.
fn packed(
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
        return Err(format!("operand y has {directions} directions, expected 1 or 2"));
    }
    let lstm = cell(call) == Cell::Lstm;
    for name in ["peepholes", "initial_c", "last_c"] {
        if call.operand(name).is_some() && !lstm {
            return Err(format!("operand {name} is given, but only an LSTM has one"));
        }
    }
    if lstm && call.operand("last_c").is_none() {
        return Err("operand last_c is missing, which an LSTM writes".to_string());
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

/// The position of the weight of a gate of a unit for input `k`, in panels of `gates` gates, `rows`
/// inputs and `width` columns.
fn packed_position(unit: i64, (gate, gates): (i64, i64), (k, rows): (i64, i64), width: i64) -> i64 {
    let units = UNITS as i64;
    let column = (unit / units * gates + gate) * units + unit % units;
    (column / width * rows + k) * width + column % width
}

struct Layer<'a, 'b> {
    args: &'a mut Args<'b>,
    cell: Cell,
    input: i64,
    hidden: i64,
}

impl Layer<'_, '_> {
    /// An element of packed weights of a direction, by its position.
    fn packed(&self, name: &str, d: i64, position: i64) -> Result<f64> {
        let all: i64 = self.args.view(name)?.shape().iter().product();
        let directions = self.args.sizes.get("directions");
        self.args.get_at(name, &[all / directions * d + position])
    }

    /// The product of an input with the weights of a gate, plus the bias.
    fn of_input(&self, d: i64, (gate, unit): (i64, i64), (t, b): (i64, i64)) -> Result<f64> {
        let (gates, biases) = (self.cell.gates() as i64, self.cell.biases() as i64);
        let mut sum = self.bias(d, gate, biases, unit)?;
        for k in 0..self.input {
            let at = packed_position(unit, (gate, gates), (k, self.input), INPUT_WIDTH as i64);
            let x = self.args.get("x", &[("steps", t), ("batch", b), ("input", k)])?;
            sum += x * self.packed("w", d, at)?;
        }
        Ok(sum)
    }

    fn bias(&self, d: i64, gate: i64, biases: i64, unit: i64) -> Result<f64> {
        self.packed("bias", d, packed_position(unit, (gate, biases), (0, 1), UNITS as i64))
    }

    /// The product of a state with the weights of a gate.
    fn of_state(&self, d: i64, (gate, unit): (i64, i64), state: &[f64]) -> Result<f64> {
        let mut first = 0;
        for p in self.cell.state_products() {
            let (own, gates, width) = (gate - p.first as i64, p.gates as i64, p.width as i64);
            if own < gates {
                let mut sum = 0.0;
                for (k, h) in (0..).zip(state) {
                    let at = packed_position(unit, (own, gates), (k, self.hidden), width);
                    sum += h * self.packed("r", d, first * self.hidden + at)?;
                }
                return Ok(sum);
            }
            let columns = (self.hidden as usize).next_multiple_of(UNITS) * p.gates;
            first += columns.next_multiple_of(p.width) as i64;
        }
        Err("a gate that no product computes".into())
    }

    fn peephole(&self, d: i64, gate: i64, unit: i64) -> Result<f64> {
        self.args.get_or("peepholes", &[d, gate * self.hidden + unit], 0.0)
    }

    /// One step of one sequence.
    fn step(&self, d: i64, at: (i64, i64), h: &mut [f64], c: &mut [f64]) -> Result<()> {
        let before = h.to_vec();
        let sum = |gate: i64, unit: i64| -> Result<f64> {
            Ok(self.of_input(d, (gate, unit), at)? + self.of_state(d, (gate, unit), &before)?)
        };
        let mut reset = before.clone();
        if self.cell == Cell::Gru {
            for (unit, value) in (0..).zip(&mut reset) {
                *value *= sigmoid(sum(1, unit)?);
            }
        }
        for unit in 0..self.hidden {
            let j = unit as usize;
            let mix = |z: f64, n: f64| (1.0 - z) * n + z * before[j];
            let next = match self.cell {
                Cell::Lstm => {
                    let i = sigmoid(sum(0, unit)? + self.peephole(d, 0, unit)? * c[j]);
                    let f = sigmoid(sum(2, unit)? + self.peephole(d, 2, unit)? * c[j]);
                    c[j] = round_f32(f * c[j] + i * sum(3, unit)?.tanh());
                    sigmoid(sum(1, unit)? + self.peephole(d, 1, unit)? * c[j]) * c[j].tanh()
                }
                Cell::Gru => {
                    let own = self.of_input(d, (2, unit), at)?;
                    let hidden = (own + self.of_state(d, (2, unit), &reset)?).tanh();
                    mix(sigmoid(sum(0, unit)?), hidden)
                }
                Cell::LinearGru => {
                    let product =
                        self.of_state(d, (2, unit), &before)? + self.bias(d, 3, 4, unit)?;
                    let own = self.of_input(d, (2, unit), at)?;
                    mix(sigmoid(sum(0, unit)?), (own + sigmoid(sum(1, unit)?) * product).tanh())
                }
                Cell::Rnn => sum(0, unit)?.tanh(),
            };
            h[j] = round_f32(next);
        }
        Ok(())
    }

    /// A state before the first step.
    fn initial(&self, name: &str, d: i64, b: i64) -> Result<Vec<f64>> {
        let at = |j: i64| [("directions", d), ("batch", b), ("hidden", j)];
        match self.args.has(name) {
            true => (0..self.hidden).map(|j| self.args.get(name, &at(j))).collect(),
            false => Ok(vec![0.0; self.hidden as usize]),
        }
    }

    fn set_last(&mut self, name: &str, (d, b): (i64, i64), state: &[f64]) -> Result<()> {
        for (j, &value) in (0..).zip(state) {
            let at = [("directions", d), ("batch", b), ("hidden", j)];
            self.args.set(name, &at, value)?;
        }
        Ok(())
    }

    /// The number of steps of a sequence.
    fn length(&self, b: i64, steps: i64) -> Result<i64> {
        let length = self.args.int_or("lengths", &[b], steps)?;
        let inside = (0..=steps).contains(&length);
        inside.then_some(length).ok_or_else(|| "a sequence longer than the steps".into())
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
        let mut h = layer.initial("initial_h", d, b)?;
        let mut c = layer.initial("initial_c", d, b)?;
        let length = layer.length(b, steps)?;
        for index in 0..steps {
            layer.args.step(work)?;
            let runs = index < length;
            let backwards = (d == 1 || call.int("reverse") != 0) && runs;
            let t = if backwards { length - 1 - index } else { index };
            if runs {
                layer.step(d, (t, b), &mut h, &mut c)?;
            }
            for (j, &value) in (0..).zip(&h) {
                let at = [("steps", t), ("directions", d), ("batch", b), ("hidden", j)];
                layer.args.set("y", &at, if runs { value } else { 0.0 })?;
            }
        }
        layer.set_last("last_h", (d, b), &h)?;
        if layer.cell == Cell::Lstm {
            layer.set_last("last_c", (d, b), &c)?;
        }
    }
    Ok(())
}
