//! Products with and without a fused epilogue: the cost of a bias, an activation and a residual.

mod floor;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use floor::{Cases, Work, thread_counts, values};
use pliant_kernels::epilogue::{Activation, Epilogue, Matrix, Standard, pliant_epilogue_f32};
use pliant_kernels::fused::{FusedGemm, pliant_gemm_fused_f32};
use pliant_kernels::gemm::packed;
use pliant_kernels::product::PackedProduct;
use pliant_machine::isa::isa;
use pliant_tensor::{DType, Tensor, panel_width};

/// Rows, columns, inner.
const SHAPES: [(usize, usize, usize); 7] = [
    (1, 384, 384),
    (16, 384, 384),
    (128, 384, 384),
    (16, 1536, 384),
    (128, 1536, 384),
    (128, 384, 1536),
    (128, 3072, 768),
];

fn fused(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "products finished in place", isa(), threads);
        let runtime = cases.runtime();
        for (m, n, k) in SHAPES {
            let (a, mut out) = (values(m * k, 7), vec![0f32; m * n]);
            let (bias, residual) = (values(n, 5), values(m * n, 3));
            let width = panel_width(n, DType::Float32);
            let weights = vec![0.01f32; n.next_multiple_of(width) * k];
            let weights = Tensor::from_slice(&[weights.len() as i64], &weights).expect("memory");
            let dense = weights.as_slice::<f32>().expect("dense").as_ptr();
            let work = Work::single((2 * m * n * k) as f64, (n * k * 4) as f64);
            let name = format!("{m} x {n} x {k}");
            cases.run(&format!("{name}, plain"), work, || {
                let a = (black_box(a.as_ptr()), k as isize, 1);
                let c = (out.as_mut_ptr(), n as isize);
                let product = PackedProduct::new([m, n, k], a, (dense, width), c);
                // SAFETY: the operands have these sizes.
                unsafe { packed(&raw const runtime, &product) };
            });
            let bias = Standard { bias: bias.as_ptr(), ..Standard::default() };
            let before = Matrix { data: residual.as_ptr(), batch: 0, row: n as i64 };
            let with = |activation: Activation| Standard { activation: activation as i64, ..bias };
            let chains = [
                ("bias", bias),
                ("bias, relu", with(Activation::Relu)),
                ("bias, gelu", with(Activation::Gelu)),
                ("bias, residual", Standard { before, ..bias }),
            ];
            for (chain, standard) in chains {
                let product = FusedGemm {
                    batch: 1,
                    m: m as i64,
                    n: n as i64,
                    k: k as i64,
                    a: a.as_ptr().cast(),
                    a_strides: [0, k as i64, 1],
                    b: dense.cast(),
                    b_strides: [0; 3],
                    width: width as i64,
                    c: out.as_mut_ptr().cast(),
                    c_strides: [0, n as i64],
                    accumulate: 0,
                    epilogue: Epilogue {
                        function: pliant_epilogue_f32,
                        operands: (&raw const standard).cast(),
                    },
                };
                cases.run(&format!("{name}, {chain}"), work, || {
                    // SAFETY: the operands have these sizes.
                    unsafe {
                        pliant_gemm_fused_f32(&raw const runtime, black_box(&raw const product))
                    };
                });
            }
        }
        cases.finish();
    }
}

criterion_group!(benches, fused);
criterion_main!(benches);
