//! The compared matmul libraries. Each is called as its documentation recommends for a row-major `A
//! [m, k] x B [k, n]` with constant B.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::rc::Rc;

use gemmkit::{MatMut, MatRef};
use pliant_exec::abi::KernelRuntime;
use pliant_kernels::batched_gemm::packed;
use pliant_kernels::matmul::PackedProduct;
use pliant_pool::Team;
use pliant_tensor::{Tensor, pack_panels};

/// The operands of a matrix product, and the expected result.
pub struct Product {
    dims: [usize; 3],
    a: Rc<Vec<f32>>,
    b: Rc<Vec<f32>>,
    expected: Vec<f32>,
}

/// Returns `len` numbers between -0.75 and 0.75, which repeat every 13 elements.
fn values(len: usize, step: usize) -> Rc<Vec<f32>> {
    Rc::new((0..len).map(|i| ((i * step) % 13) as f32 / 8.0 - 0.75).collect())
}

impl Product {
    /// Fills the operands with small numbers and computes the expected result.
    pub fn new([m, n, k]: [usize; 3]) -> Product {
        let (a, b) = (values(m * k, 7), values(k * n, 5));
        let mut expected = vec![0.0; m * n];
        for (row, a) in expected.chunks_mut(n).zip(a.chunks(k)) {
            for (a, b) in a.iter().zip(b.chunks(n)) {
                row.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
            }
        }
        Product { dims: [m, n, k], a, b, expected }
    }

    /// Runs an engine. Returns the largest error of its result, relative to the largest expected magnitude or 1.
    pub fn error(&self, engine: &mut Engine) -> f32 {
        (engine.run)();
        // SAFETY: `run` has ended, and nobody else writes the result.
        let result = unsafe { &*engine.out.get() };
        let [m, n, _] = self.dims;
        let stored_index = |i| if engine.column_major { i % n * m + i / n } else { i };
        let errors =
            self.expected.iter().enumerate().map(|(i, x)| (x - result[stored_index(i)]).abs());
        let largest = self.expected.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
        errors.fold(0.0, f32::max) / largest
    }
}

/// One library, prepared to compute a matrix product.
pub struct Engine {
    pub name: &'static str,
    pub run: Box<dyn FnMut()>,
    out: Rc<UnsafeCell<Vec<f32>>>,
    /// Whether the result is column-major, not row-major.
    column_major: bool,
}

impl Engine {
    fn new<F: FnMut() + 'static>(
        name: &'static str,
        product: &Product,
        make: impl FnOnce(*mut f32) -> F,
    ) -> Engine {
        let out = Rc::new(UnsafeCell::new(vec![0.0; product.expected.len()]));
        // SAFETY: the pointer is used by `run` alone, while nobody reads the result.
        let run = make(unsafe { (*out.get()).as_mut_ptr() });
        Engine { name, run: Box::new(run), out, column_major: false }
    }
}

/// Prepares all libraries with this number of threads. Pliant is first.
pub fn engines(product: &Product, threads: usize) -> Vec<Engine> {
    vec![
        pliant(product, threads),
        gemm_crate(product, threads),
        matrixmultiply_crate(product),
        gemmkit_crate(product, threads),
        gemmkit_packed(product, threads),
    ]
}

/// Pliant, with B packed into panels once.
fn pliant(product: &Product, threads: usize) -> Engine {
    let [m, n, k] = product.dims.map(|dim| dim as i64);
    let a = Rc::clone(&product.a);
    let b = Tensor::from_slice(&[k, n], &product.b).expect("a matrix");
    let panels = pack_panels(&b, false).expect("a matrix");
    let team = Team::new(threads);
    Engine::new("Pliant", product, move |out| {
        move || {
            let runtime = KernelRuntime {
                parallel_launch: pliant_pool::parallel_launch,
                team: (&raw const team).cast::<c_void>(),
                ..KernelRuntime::serial()
            };
            let weights = panels.as_slice::<f32>().expect("float32").as_ptr();
            let width = panels.shape()[2] as usize;
            let a = (a.as_ptr(), k as isize, 1);
            let dims = [m, n, k].map(|d| d as usize);
            let product = PackedProduct::new(dims, a, (weights, width), (out, n as isize));
            // SAFETY: the operands have these sizes.
            unsafe { packed(&runtime, &product) };
        }
    })
}

/// The library `gemm`, with its AVX-512 kernels and with Rayon for threads. It cannot pack operands in advance.
fn gemm_crate(product: &Product, threads: usize) -> Engine {
    let [m, n, k] = product.dims;
    let (a, b) = (Rc::clone(&product.a), Rc::clone(&product.b));
    let threads =
        if threads == 1 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(threads) };
    Engine::new("gemm", product, move |out| {
        move || {
            let [n_stride, k_stride] = [n, k].map(|step| step as isize);
            let (a, b) = (a.as_ptr(), b.as_ptr());
            // SAFETY: the operands have these sizes, a column stride of 1, and the row strides `n_stride` and `k_stride`.
            unsafe {
                gemm::gemm(
                    m, n, k, out, 1, n_stride, false, a, 1, k_stride, b, 1, n_stride, 0.0, 1.0,
                    false, false, false, threads,
                );
            }
        }
    })
}

/// The library `matrixmultiply`, with its own threads, whose number `MATMUL_NUM_THREADS` sets. It
/// cannot pack operands in advance.
fn matrixmultiply_crate(product: &Product) -> Engine {
    let [m, n, k] = product.dims;
    let (a, b) = (Rc::clone(&product.a), Rc::clone(&product.b));
    Engine::new("matrixmultiply", product, move |out| {
        move || {
            let [n_stride, k_stride] = [n, k].map(|step| step as isize);
            let (a, b) = (a.as_ptr(), b.as_ptr());
            // SAFETY: the operands have these sizes.
            unsafe {
                matrixmultiply::sgemm(
                    m, k, n, 1.0, a, k_stride, 1, b, n_stride, 1, 0.0, out, n_stride, 1,
                )
            };
        }
    })
}

fn parallelism(threads: usize) -> gemmkit::Parallelism {
    if threads == 1 { gemmkit::Parallelism::Serial } else { gemmkit::Parallelism::Rayon(threads) }
}

/// The library `gemmkit`, without packing operands in advance.
fn gemmkit_crate(product: &Product, threads: usize) -> Engine {
    let [m, n, k] = product.dims;
    let (a, b) = (Rc::clone(&product.a), Rc::clone(&product.b));
    Engine::new("gemmkit", product, move |out| {
        move || {
            // SAFETY: the result has this size, and nobody else uses it.
            let out = unsafe { std::slice::from_raw_parts_mut(out, m * n) };
            let (a, b) = (MatRef::from_row_major(&a, m, k), MatRef::from_row_major(&b, k, n));
            gemmkit::gemm(1.0, a, b, 0.0, MatMut::from_row_major(out, m, n), parallelism(threads));
        }
    })
}

/// The library `gemmkit` with B packed once, which it supports for column-major results only.
fn gemmkit_packed(product: &Product, threads: usize) -> Engine {
    let [m, n, k] = product.dims;
    let a = Rc::clone(&product.a);
    let packed = gemmkit::prepack_rhs(MatRef::from_row_major(&product.b, k, n));
    let mut engine = Engine::new("gemmkit prepacked", product, move |out| {
        move || {
            // SAFETY: the result has this size, and nobody else uses it.
            let out = unsafe { std::slice::from_raw_parts_mut(out, m * n) };
            let a = MatRef::from_row_major(&a, m, k);
            gemmkit::gemm_packed_b(
                1.0,
                a,
                &packed,
                0.0,
                MatMut::from_col_major(out, m, n),
                parallelism(threads),
            );
        }
    });
    engine.column_major = true;
    engine
}
