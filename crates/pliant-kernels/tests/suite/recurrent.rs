//! LSTM layers: every instruction set, between forbidden pages, against the definition in float64.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};
use pliant_kernels::isa::{Isa, available};
use pliant_kernels::recurrent::pack::pack_gates;
use pliant_kernels::recurrent::{Lstm, run};
use pliant_pool::Team;

use crate::guard::Guarded;

/// Steps, sequences, inputs, units.
type Sizes = (usize, usize, usize, usize);

fn noise(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 + seed * 101) % 257) as f32 / 257.0 - 0.5).collect()
}

struct Operands {
    sizes: Sizes,
    x: Vec<f32>,
    w: Vec<f32>,
    r: Vec<f32>,
    bias: Vec<f32>,
    peep: Vec<f32>,
    h: Vec<f32>,
    c: Vec<f32>,
    lengths: Vec<i64>,
}

impl Operands {
    fn new(sizes: Sizes) -> Operands {
        let (steps, batch, input, hidden) = sizes;
        Operands {
            sizes,
            x: noise(steps * batch * input, 1),
            w: noise(4 * hidden * input, 2),
            r: noise(4 * hidden * hidden, 3),
            bias: noise(4 * hidden, 4),
            peep: noise(3 * hidden, 5),
            h: noise(batch * hidden, 6),
            c: noise(batch * hidden, 7),
            lengths: (0..batch).map(|b| (steps as i64 - 2 * b as i64).max(0)).collect(),
        }
    }

    /// Results, last output state and last cell state. `full`: bias, peepholes and lengths.
    fn want(&self, reverse: bool, full: bool) -> [Vec<f64>; 3] {
        let (steps, batch, input, hidden) = self.sizes;
        let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let (mut h, mut c) = (wide(&self.h), wide(&self.c));
        let mut y = vec![0f64; steps * batch * hidden];
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let extra = |v: &[f32], at: usize| if full { f64::from(v[at]) } else { 0.0 };
        for index in 0..steps {
            let t = if reverse { steps - 1 - index } else { index };
            let before = h.clone();
            for b in (0..batch).filter(|&b| !full || (t as i64) < self.lengths[b]) {
                for u in 0..hidden {
                    let gate = |g: usize| {
                        let row = g * hidden + u;
                        let dot = |a: &[f64], w: &[f32]| {
                            a.iter().zip(w).map(|(a, &w)| a * f64::from(w)).sum::<f64>()
                        };
                        let x = wide(&self.x[(t * batch + b) * input..][..input]);
                        dot(&x, &self.w[row * input..][..input])
                            + dot(
                                &before[b * hidden..][..hidden],
                                &self.r[row * hidden..][..hidden],
                            )
                            + extra(&self.bias, row)
                    };
                    let at = b * hidden + u;
                    let peep = |g: usize, c: f64| extra(&self.peep, g * hidden + u) * c;
                    let i = sigmoid(gate(0) + peep(0, c[at]));
                    let f = sigmoid(gate(2) + peep(2, c[at]));
                    c[at] = f * c[at] + i * gate(3).tanh();
                    h[at] = sigmoid(gate(1) + peep(1, c[at])) * c[at].tanh();
                    y[t * batch * hidden + at] = h[at];
                }
            }
        }
        [y, h, c]
    }

    fn check(&self, runtime: &KernelRuntime, isa: Isa, bits: u8) {
        let (reverse, full, at_end) = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        let (steps, batch, input, hidden) = self.sizes;
        let guard = |v: &[f32]| Guarded::new(v, at_end);
        let x = guard(&self.x);
        let w = guard(&pack_gates(&self.w, hidden, input).unwrap());
        let r = guard(&pack_gates(&self.r, hidden, hidden).unwrap());
        let bias = guard(&pack_gates(&self.bias, hidden, 1).unwrap());
        let (peep, h, c) = (guard(&self.peep), guard(&self.h), guard(&self.c));
        let y = guard(&vec![f32::NAN; steps * batch * hidden]);
        let lengths = Guarded::new(&self.lengths, at_end);
        let null = std::ptr::null();
        let layer = Lstm {
            steps,
            batch,
            input,
            hidden,
            reverse,
            x: x.as_ptr(),
            w: w.as_ptr(),
            r: r.as_ptr(),
            bias: if full { bias.as_ptr() } else { null },
            peepholes: if full { peep.as_ptr() } else { null },
            lengths: if full { lengths.as_ptr() } else { std::ptr::null() },
            y: (y.as_ptr(), (batch * hidden) as isize, hidden as isize),
            h: h.as_ptr(),
            c: c.as_ptr(),
        };
        // SAFETY: the operands have these sizes; the set is one that the machine has.
        let status = unsafe { run(isa, runtime, &layer) };
        assert_eq!(status, STATUS_OK);
        for (got, want) in [&y, &h, &c].into_iter().zip(self.want(reverse, full)) {
            for (at, (&got, want)) in got.values().iter().zip(want).enumerate() {
                let near = (f64::from(got) - want).abs() <= 2e-5;
                assert!(near, "{isa:?} {:?} {reverse} {full} {at}: {got}, not {want}", self.sizes);
            }
        }
    }
}

#[test]
fn every_isa_size_and_direction() {
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
    for sizes in sizes {
        let operands = Operands::new(sizes);
        for isa in available() {
            for bits in 0..8 {
                operands.check(&KernelRuntime::serial(), isa, bits);
            }
        }
    }
}

#[test]
fn threads_share_the_panels_of_a_step() {
    let team = Team::new(3);
    let runtime = KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: (&raw const team).cast::<c_void>(),
        ..KernelRuntime::serial()
    };
    let operands = Operands::new((5, 9, 40, 300));
    for isa in available() {
        for bits in [0, 3, 6] {
            operands.check(&runtime, isa, bits);
        }
    }
}

#[test]
fn lengths_and_sizes_that_do_not_fit_are_told() {
    let null = std::ptr::null_mut();
    let lengths = [4i64];
    let mut layer = Lstm {
        steps: 3,
        batch: 1,
        input: 1,
        hidden: 1,
        reverse: false,
        x: null,
        w: null,
        r: null,
        bias: null,
        peepholes: null,
        lengths: lengths.as_ptr(),
        y: (null, 1, 1),
        h: null,
        c: null,
    };
    let runtime = KernelRuntime::serial();
    let isa = available().next().unwrap();
    // SAFETY: these calls return before they touch an operand other than the lengths.
    unsafe {
        assert_eq!(run(isa, &runtime, &layer), STATUS_BAD_ARGUMENTS);
        (layer.steps, layer.lengths) = (usize::MAX / 2, std::ptr::null());
        layer.hidden = 64;
        assert_eq!(run(isa, &runtime, &layer), STATUS_NO_MEMORY);
    }
    assert!(pack_gates(&[0.0; 7], 1, 2).is_none());
}
