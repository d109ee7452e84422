//! Benchmarks of matrix products by low-precision weights, and of float32 products of the same
//! sizes for comparison.

mod roofline;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::low_precision_weights::{Format, LowPrecisionGemm, run};
use pliant_kernels::matmul::PackedProduct;
use pliant_machine::isa::isa;
use pliant_tensor::{DType, Tensor, panel_width};
use roofline::{Cases, Workload, thread_counts, values};

/// The shapes of the matrix products: rows, columns, inner dim.
const SHAPES: [(usize, usize, usize); 7] = [
    (1, 16384, 8192),
    (2, 16384, 8192),
    (4, 16384, 8192),
    (16, 16384, 8192),
    (1, 1024, 1024),
    (8, 1024, 1024),
    (512, 1024, 1024),
];

/// Number of rows of the weights that share a scale.
const GROUP: usize = 32;

/// The storage formats of the weights: a name, the format, and the number of bits of an element.
const FORMATS: [(&str, Format, usize); 3] =
    [("int8", Format::Bytes, 8), ("int4", Format::Nibbles, 4), ("bf16", Format::BFloat16, 16)];

fn low_precision_weights(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "low-precision weights", isa(), threads);
        let runtime = cases.runtime();
        for (m, n, k) in SHAPES {
            let (a, mut out) = (values(m * k, 7), vec![0f32; m * n]);
            let width = panel_width(n, DType::Float32);
            let flops = (2 * m * n * k) as f64;
            let weights = Tensor::from_slice(&[n as i64 * k as i64], &vec![0.5f32; n * k]);
            let weights = weights.expect("memory");
            let dense = weights.as_slice::<f32>().expect("dense");
            let work = Workload::single(flops, (n * k * 4) as f64);
            cases.run(&format!("{m} x {n} x {k}, f32"), work, || {
                let a = (black_box(a.as_ptr()), k as isize, 1);
                let c = (out.as_mut_ptr(), n as isize);
                let product = PackedProduct::new([m, n, k], a, (dense.as_ptr(), width), c);
                // SAFETY: the operands have these sizes.
                unsafe { pliant_kernels::batched_gemm::packed(&runtime, &product) };
            });
            let scales = vec![0.01f32; k.div_ceil(GROUP) * n.next_multiple_of(width)];
            for (name, format, bits) in FORMATS {
                let is_scaled = format != Format::BFloat16;
                let g = LowPrecisionGemm {
                    m: m as i64,
                    n: n as i64,
                    k: k as i64,
                    a: a.as_ptr(),
                    a_row: k as i64,
                    format,
                    b: dense.as_ptr().cast(),
                    width: width as i64,
                    group: if is_scaled { GROUP as i64 } else { k as i64 },
                    scales: if is_scaled { scales.as_ptr() } else { std::ptr::null() },
                    zeros: if name == "int4" { scales.as_ptr() } else { std::ptr::null() },
                    c: out.as_mut_ptr(),
                    c_row: n as i64,
                };
                let work = Workload::single(flops, (n * k * bits / 8) as f64);
                cases.run(&format!("{m} x {n} x {k}, {name}"), work, || {
                    // SAFETY: the operands have these sizes, and the machine its own instructions.
                    unsafe { run(isa(), &runtime, black_box(&g)) };
                });
            }
        }
        cases.finish();
    }
}

criterion_group!(benches, low_precision_weights);
criterion_main!(benches);
