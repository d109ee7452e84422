//! Benchmarks of matrix products with the shapes of encoders and classifiers, with a constant
//! packed right operand and with two non-constant operands, in float32 and float64.

mod roofline;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::batched_gemm::{Gemm, Product, gemm_batch, packed as gemm_packed};
use pliant_kernels::matmul::PackedProduct;
use pliant_tensor::{Element, Tensor, pack_panels};
use roofline::{Cases, Workload, thread_counts, values, vectors};

/// The shapes of matrix products with a packed right operand: rows, columns, inner dim.
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

/// The shapes of float64 matrix products with a packed right operand: rows, columns, inner dim.
const PACKED_DOUBLE: [(usize, usize, usize); 7] = [
    (1, 384, 384),
    (4, 384, 384),
    (16, 384, 384),
    (256, 384, 384),
    (1, 1024, 1024),
    (64, 1024, 1024),
    (512, 512, 512),
];

/// The shape of a matrix product of non-constant operands: batch, rows, columns, inner dim, and
/// whether the left and the right operand are transposed.
type NonConstant = (usize, usize, usize, usize, [bool; 2]);

/// States for a benchmark case that neither the left nor the right operand is transposed.
const PLAIN: [bool; 2] = [false; 2];
/// States for a benchmark case that only the right operand is transposed.
const TRANSPOSED: [bool; 2] = [false, true];

const NON_CONSTANT: [NonConstant; 20] = [
    (64, 4, 4, 4, PLAIN),
    (64, 8, 8, 64, TRANSPOSED),
    (12, 16, 16, 32, TRANSPOSED),
    (32, 1, 512, 64, TRANSPOSED),
    (32, 1, 64, 512, PLAIN),
    (12, 64, 64, 32, TRANSPOSED),
    (12, 64, 32, 64, PLAIN),
    (12, 64, 64, 64, [true, false]),
    (12, 128, 128, 64, TRANSPOSED),
    (12, 128, 64, 128, PLAIN),
    (1, 4, 512, 512, PLAIN),
    (1, 4, 512, 512, TRANSPOSED),
    (1, 16, 512, 512, PLAIN),
    (1, 16, 512, 512, TRANSPOSED),
    (1, 64, 512, 1024, PLAIN),
    (1, 64, 512, 2048, PLAIN),
    (1, 512, 512, 512, PLAIN),
    (1, 512, 512, 512, TRANSPOSED),
    (1, 512, 512, 512, [true, false]),
    (1, 1024, 1024, 1024, PLAIN),
];

const NON_CONSTANT_DOUBLE: [NonConstant; 5] = [
    (64, 4, 4, 4, PLAIN),
    (12, 64, 64, 32, TRANSPOSED),
    (12, 64, 32, 64, PLAIN),
    (1, 512, 512, 512, PLAIN),
    (1, 512, 512, 512, TRANSPOSED),
];

/// An element type of the matrix products: float32 or float64.
trait Number: Element + Product + Copy + From<f32> {
    /// A suffix for the titles of result tables, which names the element type.
    const KIND: &'static str;

    fn work(flops: f64, bytes: f64) -> Workload;
}

impl Number for f32 {
    const KIND: &'static str = "";

    fn work(flops: f64, bytes: f64) -> Workload {
        Workload::single(flops, bytes)
    }
}

impl Number for f64 {
    const KIND: &'static str = ", float64";

    fn work(flops: f64, bytes: f64) -> Workload {
        Workload::double(flops, bytes)
    }
}

fn numbers<T: Number>(len: usize, step: usize) -> Vec<T> {
    values(len, step).into_iter().map(T::from).collect()
}

fn work<T: Number>(m: usize, n: usize, k: usize, batch: usize) -> Workload {
    T::work((2 * batch * m * n * k) as f64, (size_of::<T>() * batch * n * k) as f64)
}

fn packed<T: Number>(c: &mut Criterion, shapes: &[(usize, usize, usize)]) {
    for threads in thread_counts() {
        let title = format!("packed{}", T::KIND);
        let mut cases = Cases::new(c, &title, vectors(), threads);
        let runtime = cases.runtime();
        for &(m, n, k) in shapes {
            let (a, b) = (numbers::<T>(m * k, 7), numbers::<T>(k * n, 5));
            let b = Tensor::from_slice(&[k as i64, n as i64], &b)
                .expect("the memory for a small tensor can be allocated");
            let panels = pack_panels(&b, false).expect("a matrix");
            let width = panels.shape()[2];
            let panels = panels
                .as_slice::<T>()
                .expect("a packed tensor has the element type of its source")
                .as_ptr();
            let mut out = numbers::<T>(m * n, 1);
            cases.run(&format!("{m} x {n} x {k}"), work::<T>(m, n, k, 1), || {
                let out = (black_box(out.as_mut_ptr()), n as isize);
                let a = (a.as_ptr(), k as isize, 1);
                let p = PackedProduct::new([m, n, k], a, (panels, width as usize), out);
                // SAFETY: the operands have these sizes.
                unsafe { gemm_packed(&runtime, &p) };
            });
        }
        cases.finish();
    }
}

fn non_constant<T: Number>(c: &mut Criterion, shapes: &[NonConstant]) {
    for threads in thread_counts() {
        let title = format!("non-constant{}", T::KIND);
        let mut cases = Cases::new(c, &title, vectors(), threads);
        let runtime = cases.runtime();
        for &(batch, m, n, k, transposed) in shapes {
            let (a, b) = (numbers::<T>(batch * m * k, 7), numbers::<T>(batch * k * n, 5));
            let mut out = numbers::<T>(batch * m * n, 1);
            let suffix = match transposed {
                PLAIN => "",
                TRANSPOSED => ", transposed",
                _ => ", left transposed",
            };
            let name = format!("{batch} of {m} x {n} x {k}{suffix}");
            cases.run(&name, work::<T>(m, n, k, batch), || {
                let [rows, columns, inner] = [m, n, k].map(|d| d as isize);
                let (a_row, a_col) = if transposed[0] { (1, rows) } else { (inner, 1) };
                let (b_row, b_col) = if transposed[1] { (1, inner) } else { (columns, 1) };
                let a = (a.as_ptr(), a_row, a_col);
                let b = (b.as_ptr(), b_row, b_col);
                let c = (black_box(out.as_mut_ptr()), columns, 1);
                let g = Gemm { m, n, k, a, b, c, accumulate: false };
                let strides = [rows * inner, inner * columns, rows * columns];
                // SAFETY: the operands have these sizes.
                unsafe { gemm_batch(&runtime, batch as i64, g, strides) };
            });
        }
        cases.finish();
    }
}

fn products(c: &mut Criterion) {
    packed::<f32>(c, &PACKED);
    non_constant::<f32>(c, &NON_CONSTANT);
    packed::<f64>(c, &PACKED_DOUBLE);
    non_constant::<f64>(c, &NON_CONSTANT_DOUBLE);
}

criterion_group!(benches, products);
criterion_main!(benches);
