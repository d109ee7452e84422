//! Matrix products over the shapes of encoders and classifiers: constant right operands in panels, then operands that both
//! vary.

mod floor;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use floor::{Cases, Work, thread_counts, values};
use pliant_kernels::gemm::{pliant_gemm_f32, pliant_gemm_packed_f32};
use pliant_tensor::{Tensor, pack_panels};

/// Rows, columns, inner.
const PACKED: [(usize, usize, usize); 30] = [
    (1, 384, 384),
    (2, 384, 384),
    (3, 384, 384),
    (4, 384, 384),
    (7, 384, 384),
    (16, 384, 384),
    (31, 384, 384),
    (33, 384, 384),
    (64, 384, 384),
    (256, 384, 384),
    (1, 1536, 384),
    (8, 1536, 384),
    (64, 1536, 384),
    (1, 384, 1536),
    (2, 384, 1536),
    (7, 384, 1536),
    (16, 384, 1536),
    (1, 1024, 1024),
    (2, 1024, 1024),
    (4, 1024, 1024),
    (7, 1024, 1024),
    (64, 1024, 1024),
    (1, 3072, 768),
    (4, 3072, 768),
    (33, 3072, 768),
    (256, 3072, 768),
    (128, 100, 300),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
];

fn work(m: usize, n: usize, k: usize, batch: usize) -> Work {
    Work { flops: (2 * batch * m * n * k) as f64, bytes: (4 * batch * n * k) as f64 }
}

fn packed(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "packed", threads);
        let runtime = cases.runtime();
        for (m, n, k) in PACKED {
            let (a, b) = (values(m * k, 7), values(k * n, 5));
            let b = Tensor::from_slice(&[k as i64, n as i64], &b).expect("a small tensor");
            let panels = pack_panels(&b, false).expect("a matrix");
            let width = panels.shape()[2];
            let panels = panels.as_slice::<f32>().expect("float32").as_ptr();
            let mut out = vec![0f32; m * n];
            cases.run(&format!("{m} x {n} x {k}"), work(m, n, k, 1), || {
                let (out, [m, n, k]) = (black_box(out.as_mut_ptr()), [m, n, k].map(|d| d as i64));
                // SAFETY: the operands have these sizes.
                unsafe {
                    pliant_gemm_packed_f32(
                        &runtime,
                        m,
                        n,
                        k,
                        a.as_ptr(),
                        k,
                        1,
                        panels,
                        width,
                        out,
                        n,
                        0,
                    );
                }
            });
        }
        cases.finish();
    }
}

/// Batch, rows, columns, inner, and whether the right operand lies transposed.
const VARYING: [(usize, usize, usize, usize, bool); 8] = [
    (12, 16, 16, 32, true),
    (12, 64, 64, 32, true),
    (12, 64, 32, 64, false),
    (12, 128, 128, 64, true),
    (12, 128, 64, 128, false),
    (1, 512, 512, 512, false),
    (1, 512, 512, 512, true),
    (1, 1024, 1024, 1024, false),
];

fn varying(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "varying", threads);
        let runtime = cases.runtime();
        for (batch, m, n, k, turned) in VARYING {
            let (a, b) = (values(batch * m * k, 7), values(batch * k * n, 5));
            let mut out = vec![0f32; batch * m * n];
            let how = if turned { ", transposed" } else { "" };
            cases.run(&format!("{batch} of {m} x {n} x {k}{how}"), work(m, n, k, batch), || {
                let out = black_box(out.as_mut_ptr());
                let [batch, m, n, k] = [batch, m, n, k].map(|d| d as i64);
                let (row, column) = if turned { (1, k) } else { (n, 1) };
                let (a, b) = (a.as_ptr(), b.as_ptr());
                // SAFETY: the operands have these sizes.
                unsafe {
                    pliant_gemm_f32(
                        &runtime,
                        batch,
                        m,
                        n,
                        k,
                        a,
                        m * k,
                        k,
                        1,
                        b,
                        k * n,
                        row,
                        column,
                        out,
                        m * n,
                        n,
                        1,
                        0,
                    );
                }
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, packed, varying);
criterion_main!(benches);
