//! Recurrent layers as the library's kernel does them, in plain form (`pliant_kernels::recurrent`).

use pliant_ir::DType;
use pliant_tensor::gates::{Cell, INPUT_WIDTH, UNITS};

use super::Loops;
use super::attend::Operand;
use super::scalar::{Val, malformed, round};
use crate::error::Result;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Where the element of row `k` of a gate of a unit lies in panels of so many gates and columns, of `rows` rows.
fn place(unit: i64, (gate, gates): (i64, i64), (k, rows): (i64, i64), width: i64) -> i64 {
    let units = UNITS as i64;
    let column = (unit / units * gates + gate) * units + unit % units;
    (column / width * rows + k) * width + column % width
}

/// A layer's numbers and operands.
struct Layer<'a> {
    cell: Cell,
    steps: i64,
    batch: i64,
    input: i64,
    hidden: i64,
    directions: i64,
    reverse: bool,
    /// Inputs, packed input weights, packed weights of the state, packed biases.
    x: Operand<'a>,
    w: (Operand<'a>, i64),
    r: (Operand<'a>, i64),
    bias: (Operand<'a>, i64),
    peepholes: Option<Operand<'a>>,
    lengths: Option<Operand<'a>>,
    y: Operand<'a>,
    /// All arguments, for the states.
    args: &'a [Val],
}

fn optional<'a>(args: &'a [Val], at: usize) -> Result<Option<Operand<'a>>> {
    if args[at].is_true()? { Ok(Some(Operand::new(&args[at + 1..at + 2])?)) } else { Ok(None) }
}

impl<'a> Layer<'a> {
    fn of(args: &'a [Val]) -> Result<Layer<'a>> {
        let wrong = || malformed("a recurrent layer whose sizes make no sense");
        let cell = Cell::from_number(args[0].int()?).ok_or_else(wrong)?;
        let hidden = args[4].int()?;
        let layer = Layer {
            cell,
            steps: args[1].int()?,
            batch: args[2].int()?,
            input: args[3].int()?,
            hidden,
            directions: args[5].int()?,
            reverse: args[6].is_true()?,
            x: Operand::new(&args[7..10])?,
            w: (Operand::new(&args[10..11])?, args[11].int()?),
            r: (Operand::new(&args[12..13])?, args[13].int()?),
            bias: (Operand::new(&args[14..15])?, args[15].int()?),
            peepholes: optional(args, 16)?,
            lengths: optional(args, 19)?,
            y: Operand::new(&args[21..25])?,
            args,
        };
        let units = usize::try_from(hidden).map_err(|_| wrong())?;
        let want = [cell.input_columns(units), cell.state_columns(units), cell.bias_columns(units)];
        let given = [layer.w.1, layer.r.1, layer.bias.1].map(|n| usize::try_from(n).ok());
        let peepholes = layer.peepholes.is_none()
            || cell == Cell::Lstm && Some(args[18].int()?) == hidden.checked_mul(3);
        let whole =
            (1..=2).contains(&layer.directions) && args[30].is_true()? == (cell == Cell::Lstm);
        (want == given && peepholes && whole).then_some(layer).ok_or_else(wrong)
    }

    /// The product of an input with the weights of a gate, and the bias.
    fn of_input(&self, d: i64, (gate, unit): (i64, i64), (t, b): (i64, i64)) -> Result<f64> {
        let (gates, biases) = (self.cell.gates() as i64, self.cell.biases() as i64);
        let mut sum = self.bias(d, gate, biases, unit)?;
        for k in 0..self.input {
            let at = place(unit, (gate, gates), (k, self.input), INPUT_WIDTH as i64);
            let w = self.w.0.get(&[d * self.w.1 * self.input + at])?;
            sum += self.x.get(&[t, b, k])? * w;
        }
        Ok(sum)
    }

    fn bias(&self, d: i64, gate: i64, biases: i64, unit: i64) -> Result<f64> {
        let at = place(unit, (gate, biases), (0, 1), UNITS as i64);
        self.bias.0.get(&[d * self.bias.1 + at])
    }

    /// The product of a state with the weights of a gate.
    fn of_state(&self, d: i64, (gate, unit): (i64, i64), state: &[f64]) -> Result<f64> {
        let mut first = d * self.r.1;
        for p in self.cell.phases() {
            let (own, gates, width) = (gate - p.first as i64, p.gates as i64, p.width as i64);
            if own < gates {
                let mut sum = 0.0;
                for (k, h) in (0..).zip(state) {
                    let at = place(unit, (own, gates), (k, self.hidden), width);
                    sum += h * self.r.0.get(&[first * self.hidden + at])?;
                }
                return Ok(sum);
            }
            let columns = (self.hidden as usize).next_multiple_of(UNITS) * p.gates;
            first += columns.next_multiple_of(p.width) as i64;
        }
        Err(malformed("a gate that no product gives"))
    }

    fn peep(&self, d: i64, gate: i64, unit: i64) -> Result<f64> {
        match &self.peepholes {
            Some(p) => p.get(&[(d * 3 + gate) * self.hidden + unit]),
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
                    let i = sigmoid(sum(0, unit)? + self.peep(d, 0, unit)? * c[j]);
                    let f = sigmoid(sum(2, unit)? + self.peep(d, 2, unit)? * c[j]);
                    c[j] = round(f * c[j] + i * sum(3, unit)?.tanh(), DType::Float32);
                    sigmoid(sum(1, unit)? + self.peep(d, 1, unit)? * c[j]) * c[j].tanh()
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
}

/// Where the arguments of a state begin: whether it is there, its address.
const FIRST: [usize; 2] = [25, 27];
const LAST: [usize; 2] = [28, 30];

impl Layer<'_> {
    /// The address of a state, and the strides of all states.
    fn state(&self, at: usize) -> [Val; 3] {
        [at + 1, 32, 33].map(|k| self.args[k].clone())
    }

    /// A state at the beginning.
    fn begin(&self, which: usize, d: i64, b: i64) -> Result<Vec<f64>> {
        if !self.args[FIRST[which]].is_true()? {
            return Ok(vec![0.0; self.hidden as usize]);
        }
        let words = self.state(FIRST[which]);
        let from = Operand::new(&words)?;
        (0..self.hidden).map(|j| from.get(&[d, b, j])).collect()
    }

    /// A state at the end.
    fn end(&self, which: usize, (d, b): (i64, i64), state: &[f64]) -> Result<()> {
        let words = self.state(LAST[which]);
        let to = Operand::new(&words)?;
        for (j, &value) in (0..).zip(state) {
            to.view.write_at(to.position(&[d, b, j])?, &Val::Float(value))?;
        }
        Ok(())
    }

    /// Steps of a sequence.
    fn length(&self, b: i64) -> Result<i64> {
        let length = match &self.lengths {
            Some(l) => l.view.read_at(l.position(&[b])?)?.int()?,
            None => self.steps,
        };
        let inside = (0..=self.steps).contains(&length);
        inside.then_some(length).ok_or_else(|| malformed("a sequence longer than the steps"))
    }
}

impl Loops<'_, '_, '_> {
    /// `pliant_recur_f32`: cell, sizes, inputs, weights, peepholes, lengths, results, states.
    pub(super) fn recur(&mut self, args: &[Val]) -> Result<Val> {
        if args.len() != 34 {
            return Err(malformed("a recurrent layer takes 34 arguments"));
        }
        let layer = Layer::of(args)?;
        let work = (layer.input + layer.hidden + 1).max(1).saturating_mul(layer.w.1 + 1) as u64;
        for d in 0..layer.directions {
            for b in 0..layer.batch {
                let (mut h, mut c) = (layer.begin(0, d, b)?, layer.begin(1, d, b)?);
                let length = layer.length(b)?;
                for index in 0..layer.steps {
                    self.m.step(work)?;
                    let backwards = (d == 1 || layer.reverse) && index < length;
                    let t = if backwards { length - 1 - index } else { index };
                    if index < length {
                        layer.step(d, (t, b), &mut h, &mut c)?;
                    }
                    for (j, &value) in (0..).zip(&h) {
                        let value = Val::Float(if index < length { value } else { 0.0 });
                        layer.y.view.write_at(layer.y.position(&[t, d, b, j])?, &value)?;
                    }
                }
                layer.end(0, (d, b), &h)?;
                if layer.cell == Cell::Lstm {
                    layer.end(1, (d, b), &c)?;
                }
            }
        }
        Ok(Val::Int(0))
    }
}
