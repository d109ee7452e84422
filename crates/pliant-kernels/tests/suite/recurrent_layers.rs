//! Compares recurrent layers with their definition in float64, for every cell kind and instruction
//! set, with operands between guard pages.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};
use pliant_kernels::recurrent::{Cell, Layer, run};
use pliant_machine::isa::{Isa, available};
use pliant_pool::Team;
use pliant_tensor::rnn_weight_layout::{pack_bias, pack_input, pack_state};

use crate::guard_pages::Guarded;

/// The sizes of a test case: steps, sequences, inputs, hidden units.
type Sizes = (usize, usize, usize, usize);

fn noise(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 + seed * 101) % 257) as f32 / 257.0 - 0.5).collect()
}

/// The options of a test case, except the cell and the sizes.
#[derive(Clone, Copy, Debug)]
struct Variant {
    directions: usize,
    reverse: bool,
    /// Whether the batch is the first dim; otherwise the time steps are.
    batch_first: bool,
    /// Whether the call passes all optional operands: biases, peepholes, lengths and initial states.
    has_all_operands: bool,
}

impl Variant {
    fn all() -> impl Iterator<Item = Variant> {
        (0..16).map(|bits| Variant {
            directions: 1 + (bits & 1),
            reverse: bits & 2 != 0,
            batch_first: bits & 4 != 0,
            has_all_operands: bits & 8 != 0,
        })
    }
}

struct Operands {
    cell: Cell,
    sizes: Sizes,
    x: Vec<f32>,
    w: Vec<f32>,
    r: Vec<f32>,
    bias: Vec<f32>,
    peepholes: Vec<f32>,
    h: Vec<f32>,
    c: Vec<f32>,
    lengths: Vec<i64>,
}

impl Operands {
    fn new(cell: Cell, sizes: Sizes) -> Operands {
        let (steps, batch, input, hidden) = sizes;
        let rows = 2 * cell.gates() * hidden;
        Operands {
            cell,
            sizes,
            x: noise(steps * batch * input, 1),
            w: noise(rows * input, 2),
            r: noise(rows * hidden, 3),
            bias: noise(2 * rows, 4),
            peepholes: noise(6 * hidden, 5),
            h: noise(2 * batch * hidden, 6),
            c: noise(2 * batch * hidden, 7),
            lengths: (0..batch).map(|b| (steps as i64 - 1 - 2 * b as i64).max(0)).collect(),
        }
    }

    /// Returns the product of input and weights and the product of state and weights, for a gate of
    /// a hidden unit, each with its bias.
    fn sums(
        &self,
        d: usize,
        row: usize,
        x: &[f32],
        state: &[f64],
        has_all_operands: bool,
    ) -> (f64, f64) {
        let (_, _, input, hidden) = self.sizes;
        let rows = self.cell.gates() * hidden;
        let at = d * rows + row;
        let bias =
            |k: usize| if has_all_operands { f64::from(self.bias[2 * d * rows + k]) } else { 0.0 };
        let w = &self.w[at * input..][..input];
        let r = &self.r[at * hidden..][..hidden];
        let of_x: f64 = x.iter().zip(w).map(|(&a, &w)| f64::from(a) * f64::from(w)).sum();
        let of_state: f64 = state.iter().zip(r).map(|(a, &w)| a * f64::from(w)).sum();
        (of_x + bias(row), of_state + bias(rows + row))
    }

    /// Computes one time step of one sequence by definition: updates the hidden state `h` and the
    /// cell state `c`.
    fn step(&self, d: usize, x: &[f32], h: &mut [f64], c: &mut [f64], has_all_operands: bool) {
        let hidden = self.sizes.3;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let before = h.to_vec();
        let gate = |g: usize, u: usize, state: &[f64]| {
            self.sums(d, g * hidden + u, x, state, has_all_operands)
        };
        let sum = |g: usize, u: usize| {
            let (a, b) = gate(g, u, &before);
            a + b
        };
        let reset: Vec<f64> = match self.cell {
            Cell::Gru => (0..hidden).map(|u| sigmoid(sum(1, u)) * before[u]).collect(),
            _ => Vec::new(),
        };
        for u in 0..hidden {
            let peepholes = |g: usize| {
                if has_all_operands {
                    f64::from(self.peepholes[(d * 3 + g) * hidden + u])
                } else {
                    0.0
                }
            };
            let mix = |z: f64, n: f64| (1.0 - z) * n + z * before[u];
            h[u] = match self.cell {
                Cell::Lstm => {
                    let i = sigmoid(sum(0, u) + peepholes(0) * c[u]);
                    let f = sigmoid(sum(2, u) + peepholes(2) * c[u]);
                    c[u] = f * c[u] + i * sum(3, u).tanh();
                    sigmoid(sum(1, u) + peepholes(1) * c[u]) * c[u].tanh()
                }
                Cell::Gru => {
                    let (a, b) = gate(2, u, &reset);
                    mix(sigmoid(sum(0, u)), (a + b).tanh())
                }
                Cell::LinearGru => {
                    let (a, b) = gate(2, u, &before);
                    mix(sigmoid(sum(0, u)), (a + sigmoid(sum(1, u)) * b).tanh())
                }
                Cell::Rnn => sum(0, u).tanh(),
            };
        }
    }

    /// Computes the expected results `[steps, directions, batch, hidden]` in the layout of the variant, the final
    /// output states, and the final cell states.
    fn expected(&self, variant: Variant) -> [Vec<f64>; 3] {
        let (steps, batch, input, hidden) = self.sizes;
        let to_f64 = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let count = variant.directions * batch * hidden;
        let start = |v: &[f32]| {
            if variant.has_all_operands { to_f64(&v[..count]) } else { vec![0f64; count] }
        };
        let (mut h, mut c) = (start(&self.h), start(&self.c));
        let mut y = vec![0f64; steps * count];
        for d in 0..variant.directions {
            for b in 0..batch {
                let state = variant.state(self.sizes, d, b);
                let length =
                    if variant.has_all_operands { self.lengths[b] as usize } else { steps };
                for index in 0..length {
                    let is_backward = d == 1 || variant.reverse;
                    let t = if is_backward { length - 1 - index } else { index };
                    let x = if variant.batch_first { b * steps + t } else { t * batch + b };
                    let x = &self.x[x * input..][..input];
                    let (h, c) = (&mut h[state..][..hidden], &mut c[state..][..hidden]);
                    self.step(d, x, h, c, variant.has_all_operands);
                    y[variant.result(self.sizes, (t, d, b))..][..hidden].copy_from_slice(h);
                }
            }
        }
        [y, h, c]
    }

    fn packed(&self, variant: Variant) -> [Vec<f32>; 3] {
        let (_, _, input, hidden) = self.sizes;
        let (cell, rows) = (self.cell, self.cell.gates() * hidden);
        let [mut w, mut r, mut bias] = [const { Vec::new() }; 3];
        for d in 0..variant.directions {
            let of_direction = |v: &[f32], size: usize| v[d * size..][..size].to_vec();
            w.extend(
                pack_input(cell, &of_direction(&self.w, rows * input), hidden, input).unwrap(),
            );
            r.extend(pack_state(cell, &of_direction(&self.r, rows * hidden), hidden).unwrap());
            let bias_of_direction = of_direction(&self.bias, 2 * rows);
            bias.extend(
                pack_bias(cell, variant.has_all_operands.then_some(&bias_of_direction[..]), hidden)
                    .unwrap(),
            );
        }
        [w, r, bias]
    }

    fn check(&self, runtime: &KernelRuntime, isa: Isa, variant: Variant, at_end: bool) {
        let (steps, batch, input, hidden) = self.sizes;
        let guard = |v: &[f32]| Guarded::new(v, at_end);
        let [w, r, bias] = self.packed(variant).map(|v| guard(&v));
        let count = variant.directions * batch * hidden;
        let (x, peepholes) =
            (guard(&self.x), guard(&self.peepholes[..variant.directions * 3 * hidden]));
        let (h, c) = (guard(&self.h[..count]), guard(&self.c[..count]));
        let blank = vec![f32::NAN; steps * count];
        let (y, last_h, last_c) =
            (guard(&blank), guard(&vec![f32::NAN; count]), guard(&vec![f32::NAN; count]));
        let lengths = Guarded::new(&self.lengths, at_end);
        let lstm = self.cell == Cell::Lstm;
        let layer = Layer {
            cell: self.cell,
            steps,
            batch,
            input,
            hidden,
            directions: variant.directions,
            reverse: variant.reverse,
            x: if variant.batch_first {
                (x.as_ptr(), input, steps * input)
            } else {
                (x.as_ptr(), batch * input, input)
            },
            w: w.as_ptr(),
            r: r.as_ptr(),
            bias: bias.as_ptr(),
            peepholes: if variant.has_all_operands && lstm {
                peepholes.as_ptr()
            } else {
                std::ptr::null_mut()
            },
            lengths: if variant.has_all_operands { lengths.as_ptr() } else { std::ptr::null() },
            y: (
                y.as_ptr(),
                variant.result(self.sizes, (1, 0, 0)),
                variant.result(self.sizes, (0, 1, 0)),
                variant.result(self.sizes, (0, 0, 1)),
            ),
            first: if variant.has_all_operands {
                (h.as_ptr(), c.as_ptr())
            } else {
                (std::ptr::null(), std::ptr::null())
            },
            last: (last_h.as_ptr(), if lstm { last_c.as_ptr() } else { std::ptr::null_mut() }),
            state: (variant.state(self.sizes, 1, 0), variant.state(self.sizes, 0, 1)),
        };
        // SAFETY: the operands have these sizes; the machine has the instruction set.
        assert_eq!(unsafe { run(isa, runtime, &layer) }, STATUS_OK);
        let results = [&y, &last_h, &last_c];
        let result_count = if lstm { 3 } else { 2 };
        for (got, expected) in results.into_iter().zip(self.expected(variant)).take(result_count) {
            for (at, (&got, expected)) in got.values().iter().zip(expected).enumerate() {
                let is_close = (f64::from(got) - expected).abs() <= 3e-5;
                assert!(
                    is_close,
                    "{isa:?} {:?} {:?} {variant:?} {at}: {got}, not {expected}",
                    self.cell, self.sizes
                );
            }
        }
    }
}

impl Variant {
    fn state(self, (_, batch, _, hidden): Sizes, d: usize, b: usize) -> usize {
        (if self.batch_first { b * self.directions + d } else { d * batch + b }) * hidden
    }

    fn result(self, (steps, batch, _, hidden): Sizes, (t, d, b): (usize, usize, usize)) -> usize {
        let row = match self.batch_first {
            true => (b * steps + t) * self.directions + d,
            false => (t * self.directions + d) * batch + b,
        };
        row * hidden
    }
}

fn team_runtime(team: &Team) -> KernelRuntime {
    KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: std::ptr::from_ref(team).cast::<c_void>(),
        ..KernelRuntime::serial()
    }
}

#[test]
fn every_cell_isa_size_and_variant() {
    let sizes = [
        (0, 2, 3, 5),
        (3, 0, 3, 5),
        (3, 2, 0, 5),
        (3, 2, 3, 0),
        (1, 1, 1, 1),
        (5, 2, 3, 16),
        (4, 3, 7, 17),
        (6, 7, 20, 33),
        (3, 1, 64, 70),
    ];
    for cell in Cell::ALL {
        for sizes in sizes {
            let operands = Operands::new(cell, sizes);
            for isa in available() {
                for variant in Variant::all() {
                    operands.check(
                        &KernelRuntime::serial(),
                        isa,
                        variant,
                        variant.reverse != variant.has_all_operands,
                    );
                }
            }
        }
    }
}

#[test]
fn many_rows_are_computed_in_ranges_of_steps_and_blocks() {
    for cell in Cell::ALL {
        for sizes in [(300, 2, 3, 5), (3, 200, 3, 5), (700, 1, 2, 3)] {
            let operands = Operands::new(cell, sizes);
            for variant in Variant::all().filter(|f| f.directions == 2) {
                let isa = available().next().unwrap();
                operands.check(&KernelRuntime::serial(), isa, variant, true);
            }
        }
    }
}

#[test]
fn threads_divide_the_panels_of_a_step() {
    let team = Team::new(3);
    for cell in Cell::ALL {
        let operands = Operands::new(cell, (5, 9, 40, 300));
        for isa in available() {
            for variant in Variant::all().filter(|f| f.has_all_operands != f.batch_first) {
                operands.check(&team_runtime(&team), isa, variant, true);
            }
        }
    }
}

#[test]
fn invalid_lengths_and_sizes_return_a_status() {
    let null = std::ptr::null_mut();
    let lengths = [4i64];
    let mut layer = Layer {
        cell: Cell::Lstm,
        steps: 3,
        batch: 1,
        input: 1,
        hidden: 1,
        directions: 1,
        reverse: false,
        x: (null, 1, 1),
        w: null,
        r: null,
        bias: null,
        peepholes: null,
        lengths: lengths.as_ptr(),
        y: (null, 1, 1, 1),
        first: (null, null),
        last: (null, null),
        state: (1, 1),
    };
    let runtime = KernelRuntime::serial();
    let isa = available().next().unwrap();
    // SAFETY: these calls return before they access any operand other than the lengths.
    unsafe {
        assert_eq!(run(isa, &runtime, &layer), STATUS_BAD_ARGUMENTS);
        (layer.steps, layer.lengths) = (usize::MAX / 2, std::ptr::null());
        layer.hidden = 64;
        assert_eq!(run(isa, &runtime, &layer), STATUS_NO_MEMORY);
    }
}
