//! Recurrent layers (ONNX `LSTM`, `GRU`, `RNN`).

use pliant_kernel_api::kernels::recurrent::cell;
use pliant_tensor::DType;
use pliant_tensor::gates::{Cell, INPUT_WIDTH, UNITS};

use super::super::scalar::{malformed, round};
use super::Args;
use crate::error::Result;
use crate::machine::Machine;

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

struct Layer<'a> {
    args: &'a Args,
    cell: Cell,
    input: i64,
    hidden: i64,
}

impl Layer<'_> {
    /// An element of packed weights of a direction, by its position.
    fn packed(&self, name: &str, d: i64, position: i64) -> Result<f64> {
        let view = self.args.present(name)?;
        let all: i64 = view.shape.iter().product();
        view.read(all / self.args.sizes.get("directions") * d + position)?.float()
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
        for p in self.cell.phases() {
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
        Err(malformed("a gate that no product gives"))
    }

    fn peephole(&self, d: i64, gate: i64, unit: i64) -> Result<f64> {
        match self.args.view("peepholes") {
            Some(_) => self.packed("peepholes", d, gate * self.hidden + unit),
            None => Ok(0.0),
        }
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
                    c[j] = round(f * c[j] + i * sum(3, unit)?.tanh(), DType::Float32);
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
            h[j] = round(next, DType::Float32);
        }
        Ok(())
    }

    /// A state before the first step.
    fn initial(&self, name: &str, d: i64, b: i64) -> Result<Vec<f64>> {
        let at = |j: i64| [("directions", d), ("batch", b), ("hidden", j)];
        match self.args.view(name) {
            Some(_) => (0..self.hidden).map(|j| self.args.get(name, &at(j))).collect(),
            None => Ok(vec![0.0; self.hidden as usize]),
        }
    }

    fn set_last(&self, name: &str, (d, b): (i64, i64), state: &[f64]) -> Result<()> {
        for (j, &value) in (0..).zip(state) {
            let at = [("directions", d), ("batch", b), ("hidden", j)];
            self.args.set(name, &at, value)?;
        }
        Ok(())
    }

    /// The number of steps of a sequence.
    fn length(&self, b: i64, steps: i64) -> Result<i64> {
        let length = match self.args.view("lengths") {
            Some(_) => self.args.read("lengths", &[("batch", b)])?.int()?,
            None => steps,
        };
        let inside = (0..=steps).contains(&length);
        inside.then_some(length).ok_or_else(|| malformed("a sequence longer than the steps"))
    }
}

/// Computes a layer.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let size = |name: &str| args.sizes.get(name);
    let layer =
        Layer { args, cell: cell(&args.call), input: size("input"), hidden: size("hidden") };
    let steps = size("steps");
    let weights = size("input_weights").saturating_add(size("state_weights"));
    let work = weights.saturating_add(layer.hidden) as u64 + 1;
    for (d, b) in (0..size("directions")).flat_map(|d| (0..size("batch")).map(move |b| (d, b))) {
        let mut h = layer.initial("initial_h", d, b)?;
        let mut c = layer.initial("initial_c", d, b)?;
        let length = layer.length(b, steps)?;
        for index in 0..steps {
            m.step(work)?;
            let runs = index < length;
            let backwards = (d == 1 || args.call.int("reverse") != 0) && runs;
            let t = if backwards { length - 1 - index } else { index };
            if runs {
                layer.step(d, (t, b), &mut h, &mut c)?;
            }
            for (j, &value) in (0..).zip(&h) {
                let at = [("steps", t), ("directions", d), ("batch", b), ("hidden", j)];
                args.set("y", &at, if runs { value } else { 0.0 })?;
            }
        }
        layer.set_last("last_h", (d, b), &h)?;
        if layer.cell == Cell::Lstm {
            layer.set_last("last_c", (d, b), &c)?;
        }
    }
    Ok(())
}
