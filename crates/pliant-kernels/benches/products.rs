//! Matrix products over the shapes of encoders and classifiers: constant right operands in panels, then operands that both
//! vary; first of float32, then of float64.

mod floor;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use floor::{Cases, Work, thread_counts, values, vectors};
use pliant_exec::abi::KernelRuntime;
use pliant_kernels::gemm::{
    pliant_gemm_f32, pliant_gemm_f64, pliant_gemm_packed_f32, pliant_gemm_packed_f64,
};
use pliant_tensor::{Element, Tensor, pack_panels};

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

/// Those of float64.
const PACKED_DOUBLE: [(usize, usize, usize); 7] = [
    (1, 384, 384),
    (4, 384, 384),
    (16, 384, 384),
    (256, 384, 384),
    (1, 1024, 1024),
    (64, 1024, 1024),
    (512, 512, 512),
];

/// Batch, rows, columns, inner, and which operands lie transposed: the left one, the right one.
type Varying = (usize, usize, usize, usize, [bool; 2]);

/// As they lie.
const PLAIN: [bool; 2] = [false; 2];
/// The right operand transposed.
const TURNED: [bool; 2] = [false, true];

const VARYING: [Varying; 20] = [
    (64, 4, 4, 4, PLAIN),
    (64, 8, 8, 64, TURNED),
    (12, 16, 16, 32, TURNED),
    (32, 1, 512, 64, TURNED),
    (32, 1, 64, 512, PLAIN),
    (12, 64, 64, 32, TURNED),
    (12, 64, 32, 64, PLAIN),
    (12, 64, 64, 64, [true, false]),
    (12, 128, 128, 64, TURNED),
    (12, 128, 64, 128, PLAIN),
    (1, 4, 512, 512, PLAIN),
    (1, 4, 512, 512, TURNED),
    (1, 16, 512, 512, PLAIN),
    (1, 16, 512, 512, TURNED),
    (1, 64, 512, 1024, PLAIN),
    (1, 64, 512, 2048, PLAIN),
    (1, 512, 512, 512, PLAIN),
    (1, 512, 512, 512, TURNED),
    (1, 512, 512, 512, [true, false]),
    (1, 1024, 1024, 1024, PLAIN),
];

const VARYING_DOUBLE: [Varying; 5] = [
    (64, 4, 4, 4, PLAIN),
    (12, 64, 64, 32, TURNED),
    (12, 64, 32, 64, PLAIN),
    (1, 512, 512, 512, PLAIN),
    (1, 512, 512, 512, TURNED),
];

/// An element type of products, with the kernels of it.
trait Number: Element + Copy + From<f32> {
    const PACKED: PackedFn<Self>;
    const VARYING: VaryingFn<Self>;
    /// Behind the titles of its cases.
    const KIND: &'static str;

    fn work(flops: f64, bytes: f64) -> Work;
}

type PackedFn<T> = unsafe extern "C" fn(
    *const KernelRuntime,
    i64,
    i64,
    i64,
    *const T,
    i64,
    i64,
    *const T,
    i64,
    *mut T,
    i64,
    i64,
) -> i64;

type VaryingFn<T> = unsafe extern "C" fn(
    *const KernelRuntime,
    i64,
    i64,
    i64,
    i64,
    *const T,
    i64,
    i64,
    i64,
    *const T,
    i64,
    i64,
    i64,
    *mut T,
    i64,
    i64,
    i64,
    i64,
) -> i64;

impl Number for f32 {
    const PACKED: PackedFn<f32> = pliant_gemm_packed_f32;
    const VARYING: VaryingFn<f32> = pliant_gemm_f32;
    const KIND: &'static str = "";

    fn work(flops: f64, bytes: f64) -> Work {
        Work::single(flops, bytes)
    }
}

impl Number for f64 {
    const PACKED: PackedFn<f64> = pliant_gemm_packed_f64;
    const VARYING: VaryingFn<f64> = pliant_gemm_f64;
    const KIND: &'static str = ", float64";

    fn work(flops: f64, bytes: f64) -> Work {
        Work::double(flops, bytes)
    }
}

fn numbers<T: Number>(len: usize, step: usize) -> Vec<T> {
    values(len, step).into_iter().map(T::from).collect()
}

fn work<T: Number>(m: usize, n: usize, k: usize, batch: usize) -> Work {
    T::work((2 * batch * m * n * k) as f64, (size_of::<T>() * batch * n * k) as f64)
}

fn packed<T: Number>(c: &mut Criterion, shapes: &[(usize, usize, usize)]) {
    for threads in thread_counts() {
        let title = format!("packed{}", T::KIND);
        let mut cases = Cases::new(c, &title, vectors(), threads);
        let runtime = cases.runtime();
        for &(m, n, k) in shapes {
            let (a, b) = (numbers::<T>(m * k, 7), numbers::<T>(k * n, 5));
            let b = Tensor::from_slice(&[k as i64, n as i64], &b).expect("a small tensor");
            let panels = pack_panels(&b, false).expect("a matrix");
            let width = panels.shape()[2];
            let panels = panels.as_slice::<T>().expect("its own type").as_ptr();
            let mut out = numbers::<T>(m * n, 1);
            cases.run(&format!("{m} x {n} x {k}"), work::<T>(m, n, k, 1), || {
                let (out, [m, n, k]) = (black_box(out.as_mut_ptr()), [m, n, k].map(|d| d as i64));
                let a = a.as_ptr();
                // SAFETY: the operands have these sizes.
                unsafe { T::PACKED(&runtime, m, n, k, a, k, 1, panels, width, out, n, 0) };
            });
        }
        cases.finish();
    }
}

fn varying<T: Number>(c: &mut Criterion, shapes: &[Varying]) {
    for threads in thread_counts() {
        let title = format!("varying{}", T::KIND);
        let mut cases = Cases::new(c, &title, vectors(), threads);
        let runtime = cases.runtime();
        for &(batch, m, n, k, turned) in shapes {
            let (a, b) = (numbers::<T>(batch * m * k, 7), numbers::<T>(batch * k * n, 5));
            let mut out = numbers::<T>(batch * m * n, 1);
            let how = match turned {
                PLAIN => "",
                TURNED => ", transposed",
                _ => ", left transposed",
            };
            let name = format!("{batch} of {m} x {n} x {k}{how}");
            cases.run(&name, work::<T>(m, n, k, batch), || {
                let [count, m, n, k] = [batch, m, n, k].map(|d| d as i64);
                let (a_row, a_col) = if turned[0] { (1, m) } else { (k, 1) };
                let (b_row, b_col) = if turned[1] { (1, k) } else { (n, 1) };
                let (a, b, out) = (a.as_ptr(), b.as_ptr(), black_box(out.as_mut_ptr()));
                let (a_next, b_next, next) = (m * k, k * n, m * n);
                // SAFETY: the operands have these sizes.
                unsafe {
                    T::VARYING(
                        &runtime, count, m, n, k, a, a_next, a_row, a_col, b, b_next, b_row, b_col,
                        out, next, n, 1, 0,
                    );
                }
            });
        }
        cases.finish();
    }
}

fn products(c: &mut Criterion) {
    packed::<f32>(c, &PACKED);
    varying::<f32>(c, &VARYING);
    packed::<f64>(c, &PACKED_DOUBLE);
    varying::<f64>(c, &VARYING_DOUBLE);
}

criterion_group!(benches, products);
criterion_main!(benches);
