//! Benchmarks of recurrent layers on sequences of 128 steps: LSTM and GRU of 256 and 512 units, one
//! sequence and several, both directions.

mod roofline;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::recurrent::{Cell, Layer, run};
use pliant_machine::isa::isa;
use pliant_tensor::rnn_weight_layout::{pack_bias, pack_input, pack_state};
use pliant_tensor::{DType, Tensor};
use roofline::{Cases, Workload, thread_counts, values, vectors};

const STEPS: usize = 128;

/// The benchmarked layers: cell kind, batch size, number of inputs, number of units, and number of
/// directions.
const SHAPES: [(Cell, usize, usize, usize); 10] = [
    (Cell::Lstm, 1, 64, 1),
    (Cell::Lstm, 1, 256, 1),
    (Cell::Lstm, 1, 512, 1),
    (Cell::Lstm, 1, 256, 2),
    (Cell::Lstm, 4, 128, 2),
    (Cell::Lstm, 8, 256, 1),
    (Cell::Gru, 1, 256, 1),
    (Cell::LinearGru, 1, 256, 1),
    (Cell::LinearGru, 1, 512, 1),
    (Cell::Rnn, 1, 512, 1),
];

/// Returns a tensor that contains the weights `one` of one direction `directions` times. Its memory is aligned like the constants
/// of an executable.
fn repeated(one: Option<Vec<f32>>, directions: usize) -> Tensor {
    let all = one.expect("weights of the benchmarked sizes can be packed").repeat(directions);
    Tensor::from_slice(&[all.len() as i64], &all)
        .expect("the memory for a small tensor can be allocated")
}

fn data(t: &Tensor) -> *const f32 {
    t.as_slice::<f32>().expect("float32").as_ptr()
}

fn recurrent(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "recurrent", vectors(), threads);
        let runtime = cases.runtime();
        for (cell, batch, hidden, directions) in SHAPES {
            let weights = values(cell.gates() * hidden * hidden, 5);
            let scaled: Vec<f32> = weights.iter().map(|w| w / hidden as f32).collect();
            let w = repeated(pack_input(cell, &scaled, hidden, hidden), directions);
            let r = repeated(pack_state(cell, &scaled, hidden), directions);
            let bias = repeated(pack_bias(cell, None, hidden), directions);
            let x = values(STEPS * batch * hidden, 7);
            let row = directions * batch * hidden;
            let zeros = |count: i64| Tensor::zeros(&[count], DType::Float32).expect("small");
            let (y, last) = (zeros((STEPS * row) as i64), [row as i64; 2].map(zeros));
            let layer = Layer {
                cell,
                steps: STEPS,
                batch,
                input: hidden,
                hidden,
                directions,
                reverse: false,
                x: (x.as_ptr(), batch * hidden, hidden),
                w: data(&w),
                r: data(&r),
                bias: data(&bias),
                peepholes: std::ptr::null(),
                lengths: std::ptr::null(),
                y: (data(&y).cast_mut(), row, batch * hidden, hidden),
                first: (std::ptr::null(), std::ptr::null()),
                last: (data(&last[0]).cast_mut(), data(&last[1]).cast_mut()),
                state: (batch * hidden, hidden),
            };
            let products = directions * cell.gates() * hidden * hidden;
            // Each step reads the recurrent weights again.
            let work = Workload::single((4 * batch * products) as f64, (4 * products) as f64);
            let suffix = if directions == 2 { ", both directions" } else { "" };
            let name = format!("{cell:?} of {hidden} units, batch {batch}{suffix}");
            cases.run_steps(&name, work, STEPS, || {
                // SAFETY: the operands have these sizes.
                unsafe { run(isa(), &runtime, black_box(&layer)) };
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, recurrent);
criterion_main!(benches);
