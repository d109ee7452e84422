//! Products of 8-bit integers against the peak of float32, which one instruction of theirs exceeds four times, and tile registers
//! exceed 16 times.

mod floor;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use floor::{Cases, Work, thread_counts, values};
use pliant_kernels::epilogue::Epilogue;
use pliant_kernels::isa::isa;
use pliant_kernels::quantized::{
    QuantizedGemm, pack_quads, pliant_epilogue_int32, pliant_gemm_int8,
};
use pliant_tensor::Tensor;

/// Rows, columns, inner.
const SHAPES: [(usize, usize, usize); 6] = [
    (512, 512, 512),
    (1024, 1024, 1024),
    (64, 1536, 384),
    (8, 1024, 1024),
    (7, 384, 1536),
    (1, 1024, 1024),
];

/// The zero point of all rows.
static ZERO: i32 = 3;

fn quantized(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "int8", isa(), threads);
        let runtime = cases.runtime();
        for (m, n, k) in SHAPES {
            let byte = |x: f32| (x * 120.0) as i8;
            let a: Vec<u8> = values(m * k, 7).into_iter().map(|x| byte(x) as u8).collect();
            let b: Vec<i8> = values(n * k, 5).into_iter().map(byte).collect();
            let quads = pack_quads(&b, k, n).expect("a small matrix");
            // Tensors begin lines of the caches, as constants of programs do.
            let b = Tensor::from_slice(&[quads.data.len() as i64], &quads.data).expect("memory");
            let mut out = vec![0i32; m * n];
            let g = QuantizedGemm {
                m: m as i64,
                n: n as i64,
                k: k as i64,
                a: a.as_ptr(),
                a_row: k as i64,
                a_signed: 1,
                a_zeros: &raw const ZERO,
                a_zeros_step: 0,
                b: b.as_slice::<i8>().expect("dense").as_ptr(),
                width: quads.width as i64,
                sums: quads.sums.as_ptr(),
                b_zeros: std::ptr::null(),
                c: out.as_mut_ptr(),
                c_row: n as i64,
                has_epilogue: 0,
                epilogue: Epilogue { function: pliant_epilogue_int32, operands: std::ptr::null() },
            };
            let work = Work::single((2 * m * n * k) as f64, (n * k) as f64);
            cases.run(&format!("{m} x {n} x {k}"), work, || {
                // SAFETY: the operands have these sizes.
                unsafe { pliant_gemm_int8(&runtime, black_box(&g)) };
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, quantized);
criterion_main!(benches);
