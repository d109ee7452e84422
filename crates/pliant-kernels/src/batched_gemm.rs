//! Batches of matrix products `C = A * B` (or `C += A * B`) with any strides, on the worker team.
//!
//! Method: threads of the worker team compute pieces, with the micro-kernels of [`crate::matmul`],
//! or with the crate `gemm` for operand layouts that [`crate::matmul`] does not support.
//! [`crate::algorithm_selection::gemm`] decides how batches are divided. For measurements, see both
//! tables of matrix products in `docs/internals/measurements/products.md`.

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_CANCELLED, STATUS_OK};

use crate::algorithm_selection::gemm::{MAX_UNSPLIT_K, POLL_WORK, by_rows, stays_whole};
use crate::algorithm_selection::non_constant_operands::{DOT_ROWS, MAX_DOT_RESULTS};
use crate::algorithm_selection::partition::{pieces as max_pieces, unit_work};
use crate::matmul::micro_kernel::ROWS;
use crate::matmul::work_partition::{Partition, even_part, parallel_for};
use crate::matmul::{self, PackedProduct, non_constant_operands};
use pliant_machine::isa::isa;

/// One matrix product: `c[m, n] = (accumulate ? c : 0) + a[m, k] * b[k, n]`. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<T> {
    /// Number of rows of A and C.
    pub m: usize,
    /// Number of columns of B and C.
    pub n: usize,
    /// Number of columns of A, equal to the number of rows of B (the inner dim).
    pub k: usize,
    /// The address of the first element of A, the stride of its rows, and the stride of its
    /// columns, in elements.
    pub a: (*const T, isize, isize),
    /// The address of the first element of B, the stride of its rows, and the stride of its
    /// columns, in elements.
    pub b: (*const T, isize, isize),
    /// The address of the first element of C, the stride of its rows, and the stride of its
    /// columns, in elements.
    pub c: (*mut T, isize, isize),
    /// Whether the matrix product is added to the contents of C.
    pub accumulate: bool,
}

/// A library that computes matrix products. All code generators use the same implementation.
pub trait LibraryGemm: Send + Sync {
    /// Computes one float32 matrix product on the calling thread. Returns a kernel status: 0 on
    /// success.
    ///
    /// # Safety
    /// All addressed elements are valid; C overlaps neither A nor B.
    unsafe fn sgemm(&self, g: &Gemm<f32>) -> i64;

    /// Computes one float64 matrix product on the calling thread. Returns a kernel status: 0 on
    /// success.
    ///
    /// # Safety
    /// The conditions of [`LibraryGemm::sgemm`] hold.
    unsafe fn dgemm(&self, g: &Gemm<f64>) -> i64;
}

/// Computes matrix products with the crate `gemm`. The crate selects AVX-512, AVX2 or NEON kernels
/// at run time and is fast even for one row.
#[derive(Debug, Default)]
pub struct GemmCrate;

/// Computes a matrix product with the crate `gemm`. Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`LibraryGemm::sgemm`] hold.
unsafe fn gemm_crate<T: Product>(g: &Gemm<T>) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        gemm::gemm(
            g.m,
            g.n,
            g.k,
            g.c.0,
            g.c.2,
            g.c.1,
            g.accumulate,
            g.a.0,
            g.a.2,
            g.a.1,
            g.b.0,
            g.b.2,
            g.b.1,
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
    STATUS_OK
}

impl LibraryGemm for GemmCrate {
    unsafe fn sgemm(&self, g: &Gemm<f32>) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { gemm_crate(g) }
    }

    unsafe fn dgemm(&self, g: &Gemm<f64>) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { gemm_crate(g) }
    }
}

/// Computes matrix products with the crate `matrixmultiply`, an independent reference for the
/// tests.
#[derive(Debug, Default)]
pub struct MatrixMultiply;

impl LibraryGemm for MatrixMultiply {
    unsafe fn sgemm(&self, g: &Gemm<f32>) -> i64 {
        let beta = if g.accumulate { 1.0 } else { 0.0 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            matrixmultiply::sgemm(
                g.m, g.k, g.n, 1.0, g.a.0, g.a.1, g.a.2, g.b.0, g.b.1, g.b.2, beta, g.c.0, g.c.1,
                g.c.2,
            );
        }
        STATUS_OK
    }

    unsafe fn dgemm(&self, g: &Gemm<f64>) -> i64 {
        let beta = if g.accumulate { 1.0 } else { 0.0 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            matrixmultiply::dgemm(
                g.m, g.k, g.n, 1.0, g.a.0, g.a.1, g.a.2, g.b.0, g.b.1, g.b.2, beta, g.c.0, g.c.1,
                g.c.2,
            );
        }
        STATUS_OK
    }
}

/// Computes matrix products with Pliant's own kernels if they support the operand layouts,
/// otherwise with the crate `gemm`.
#[derive(Debug, Default)]
pub struct OwnGemm;

/// Computes a matrix product with Pliant's own kernels if they support the operand layouts,
/// otherwise with the crate `gemm`. Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`LibraryGemm::sgemm`] hold.
unsafe fn own_gemm<T: Product>(g: &Gemm<T>) -> i64 {
    // SAFETY: guaranteed by the caller; the instructions are those of the machine.
    unsafe {
        if non_constant_operands::applies(g) {
            non_constant_operands::run(isa(), g)
        } else {
            in_strips(g)
        }
    }
}

/// Computes a matrix product with the crate `gemm`. If the product has few rows or columns and both
/// operands are contiguous along k, divides it into strips. The strips are so small that the crate
/// chooses dot products. Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`LibraryGemm::sgemm`] hold.
unsafe fn in_strips<T: Product>(g: &Gemm<T>) -> i64 {
    let short = g.m.min(g.n);
    if short == 0 || short > DOT_ROWS || g.a.2 != 1 || g.b.1 != 1 {
        // SAFETY: guaranteed by the caller.
        return unsafe { gemm_crate(g) };
    }
    let (by_rows, long) = (g.n < g.m, g.m.max(g.n));
    for first in (0..long).step_by(MAX_DOT_RESULTS / short) {
        let count = (MAX_DOT_RESULTS / short).min(long - first);
        let mut strip = *g;
        // SAFETY: the strip lies inside the product.
        unsafe {
            if by_rows {
                strip.m = count;
                strip.a.0 = g.a.0.offset(first as isize * g.a.1);
                strip.c.0 = g.c.0.offset(first as isize * g.c.1);
            } else {
                strip.n = count;
                strip.b.0 = g.b.0.offset(first as isize * g.b.2);
                strip.c.0 = g.c.0.offset(first as isize * g.c.2);
            }
            gemm_crate(&strip);
        }
    }
    STATUS_OK
}

impl LibraryGemm for OwnGemm {
    unsafe fn sgemm(&self, g: &Gemm<f32>) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { own_gemm(g) }
    }

    unsafe fn dgemm(&self, g: &Gemm<f64>) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { own_gemm(g) }
    }
}

/// Returns the library that computes the matrix products of generated code.
pub fn library_gemm() -> &'static dyn LibraryGemm {
    static LIBRARY: OwnGemm = OwnGemm;
    &LIBRARY
}

/// An element type of matrix products: float32 or float64.
pub trait Product: matmul::Element {
    /// The number 1 of the element type.
    const ONE: Self;

    /// Computes one matrix product with [`library_gemm`]. Returns a kernel status: 0 on success.
    ///
    /// # Safety
    /// The conditions of [`LibraryGemm::sgemm`] hold.
    unsafe fn gemm(g: &Gemm<Self>) -> i64;
}

impl Product for f32 {
    const ONE: f32 = 1.0;

    unsafe fn gemm(g: &Gemm<f32>) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { library_gemm().sgemm(g) }
    }
}

impl Product for f64 {
    const ONE: f64 = 1.0;

    unsafe fn gemm(g: &Gemm<f64>) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe { library_gemm().dgemm(g) }
    }
}

/// The number of rows of every piece except the last is a multiple of this number, if a matrix product is divided by rows into
/// pieces for threads.
const ROW_UNIT: usize = 6;
/// The number of columns of every piece except the last is a multiple of this number, if a matrix product is divided by columns
/// into pieces for threads.
const COLUMN_UNIT: usize = 64;

/// Returns piece `index` of a matrix product that is divided into `count` pieces by its rows
/// (`by_rows`) or its columns.
///
/// # Safety
/// The product's elements are valid.
unsafe fn piece<T: Copy>(g: &Gemm<T>, by_rows: bool, index: usize, count: usize) -> Gemm<T> {
    let mut g = *g;
    // SAFETY: the piece lies inside the product.
    unsafe {
        if by_rows {
            let part = even_part(g.m, ROW_UNIT, index, count);
            g.m = part.len();
            g.a.0 = g.a.0.offset(part.start as isize * g.a.1);
            g.c.0 = g.c.0.offset(part.start as isize * g.c.1);
        } else {
            let part = even_part(g.n, COLUMN_UNIT, index, count);
            g.n = part.len();
            g.b.0 = g.b.0.offset(part.start as isize * g.b.2);
            g.c.0 = g.c.0.offset(part.start as isize * g.c.2);
        }
    }
    g
}

/// Computes a matrix product in parts of at most `max_work` multiplications, and polls the interrupt flag after each
/// part. Products with a large inner dimension `k` are split along this dimension, and the partial sums are added.
/// Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`LibraryGemm::sgemm`] hold; the runtime is valid.
unsafe fn run_in_parts<T: Product>(runtime: &KernelRuntime, g: &Gemm<T>, max_work: usize) -> i64 {
    let few_results = g.m <= ROW_UNIT && g.n <= COLUMN_UNIT;
    let work = g.m.saturating_mul(g.n).saturating_mul(g.k.max(1));
    if work <= max_work || few_results && g.k < 2 {
        // SAFETY: guaranteed by the caller.
        return unsafe { T::gemm(g) };
    }
    if runtime.is_interrupted() {
        return STATUS_CANCELLED;
    }
    let part = |index: usize| {
        // SAFETY: guaranteed by the caller; the halves lie inside the product.
        unsafe {
            let half = if few_results || g.k > MAX_UNSPLIT_K {
                half_of_sum(g, index)
            } else {
                let by_rows = g.m > ROW_UNIT && (g.m >= g.n || g.n <= COLUMN_UNIT);
                piece(g, by_rows, index, 2)
            };
            run_in_parts(runtime, &half, max_work)
        }
    };
    match part(0) {
        STATUS_OK => part(1),
        status => status,
    }
}

/// Returns one half of a matrix product that is split along its inner dimension `k`. The second half (`index` 1) adds
/// its sums to the results of the first half.
///
/// # Safety
/// The product's elements are valid.
unsafe fn half_of_sum<T: Copy>(g: &Gemm<T>, index: usize) -> Gemm<T> {
    let middle = g.k / 2;
    if index == 0 {
        return Gemm { k: middle, ..*g };
    }
    let mut second = Gemm { k: g.k - middle, accumulate: true, ..*g };
    // SAFETY: the half lies inside the product.
    unsafe {
        second.a.0 = g.a.0.offset(middle as isize * g.a.2);
        second.b.0 = g.b.0.offset(middle as isize * g.b.1);
    }
    second
}

/// Computes `batch` matrix products on the worker team of the runtime. `strides` are the distances
/// between the matrices A, B and C of consecutive products, in elements. Returns a kernel status: 0
/// on success.
///
/// # Safety
/// The runtime is valid. All elements of the batch are valid; C overlaps neither A nor B.
pub unsafe fn gemm_batch<T: Product>(
    runtime: &KernelRuntime,
    batch: i64,
    first: Gemm<T>,
    strides: [isize; 3],
) -> i64 {
    if batch <= 0 || first.m == 0 || first.n == 0 {
        return STATUS_OK;
    }
    let batch = batch as usize;
    let work = first.m.saturating_mul(first.n).saturating_mul(first.k.max(1));
    // Columns are divided if there are enough of them, so that only one thread reads (and packs) each part of B.
    let by_rows = by_rows(first.m, first.n);
    let max_blocks =
        if by_rows { first.m.div_ceil(ROW_UNIT) } else { first.n.div_ceil(COLUMN_UNIT) };
    let wanted = if stays_whole(batch) { 1 } else { (work / unit_work()).clamp(1, max_pieces()) };
    let blocks = wanted.min(max_blocks);
    // Several small products form one piece.
    let products_per_piece = (unit_work() / work.max(1)).clamp(1, batch);
    let run = |index: usize| {
        let products = index / blocks * products_per_piece
            ..batch.min((index / blocks + 1) * products_per_piece);
        for at in products {
            let mut g = first;
            // SAFETY: guaranteed by the caller; pieces write disjoint parts of C.
            let status = unsafe {
                g.a.0 = g.a.0.offset(at as isize * strides[0]);
                g.b.0 = g.b.0.offset(at as isize * strides[1]);
                g.c.0 = g.c.0.offset(at as isize * strides[2]);
                run_in_parts(runtime, &piece(&g, by_rows, index % blocks, blocks), POLL_WORK)
            };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    };
    let pieces = batch.div_ceil(products_per_piece).saturating_mul(blocks);
    // SAFETY: guaranteed by the caller; products do not unwind.
    unsafe {
        parallel_for(
            runtime,
            pieces,
            work.saturating_mul(products_per_piece) / (unit_work() * blocks),
            &run,
        )
    }
}

/// Computes a matrix product whose right operand is packed, on the worker team of the runtime.
/// Returns a kernel status: `STATUS_BAD_ARGUMENTS` if the panel width is not a multiple of 16, or
/// exceeds the number of columns.
///
/// # Safety
/// The runtime is valid. All elements of the product are valid, including whole panels; C overlaps
/// neither A nor B.
pub unsafe fn packed<T: matmul::Element>(runtime: &KernelRuntime, p: &PackedProduct<T>) -> i64 {
    if !p.has_valid_panels() {
        return STATUS_BAD_ARGUMENTS;
    }
    if p.m == 0 || p.n == 0 {
        return STATUS_OK;
    }
    let (isa, panels) = (isa(), p.panels());
    let partition = Partition::of_product((p.m, ROWS), p.n, p.k, panels);
    let run = |index: usize| {
        let (rows, panels) = partition.piece(index, (p.m, ROWS), panels);
        // SAFETY: guaranteed by the caller; pieces write disjoint parts of C.
        unsafe { p.compute_block(isa, rows, panels) }
    };
    // SAFETY: guaranteed by the caller; products do not unwind.
    unsafe { parallel_for(runtime, partition.pieces(), partition.piece_micros, &run) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Returns test operands: small integers, whose sums are exact in float32.
    fn fill(len: usize, step: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * step) % 13) as f32 - 6.0).collect()
    }

    #[test]
    fn products_in_parts_are_exact() {
        let runtime = KernelRuntime::serial();
        for (m, n, k) in [(13, 130, 40), (130, 13, 40), (5, 10, 1000), (1, 1, 5000), (7, 65, 1)] {
            let (a, b) = (fill(m * k, 7), fill(k * n, 5));
            for accumulate in [false, true] {
                let product = |max_work: usize| {
                    let mut c = fill(m * n, 3);
                    let g = Gemm {
                        m,
                        n,
                        k,
                        a: (a.as_ptr(), k as isize, 1),
                        b: (b.as_ptr(), n as isize, 1),
                        c: (c.as_mut_ptr(), n as isize, 1),
                        accumulate,
                    };
                    // SAFETY: the three matrices have exactly the addressed elements.
                    assert_eq!(unsafe { run_in_parts(&runtime, &g, max_work) }, STATUS_OK);
                    c
                };
                assert_eq!(product(100), product(usize::MAX), "{m} x {n} x {k}");
            }
        }
    }

    #[test]
    fn interrupted_products_are_cancelled() {
        let flag = AtomicBool::new(true);
        let runtime = KernelRuntime { interrupt: &raw const flag, ..KernelRuntime::serial() };
        let (a, mut c) = (1f32, 0f32);
        let size = 1 << 20;
        let (a, b, c) = ((&raw const a, 0, 0), (&raw const a, 0, 0), (&raw mut c, 0, 0));
        let g = Gemm { m: size, n: size, k: size, a, b, c, accumulate: false };
        // SAFETY: all strides are 0.
        assert_eq!(unsafe { run_in_parts(&runtime, &g, POLL_WORK) }, STATUS_CANCELLED);
    }

    fn product(
        library: &dyn LibraryGemm,
        m: usize,
        n: usize,
        k: usize,
        accumulate: bool,
    ) -> Vec<f32> {
        let (a, b) = (fill(m * k, 7), fill(k * n, 5));
        let mut c = fill(m * n, 3);
        let g = Gemm {
            m,
            n,
            k,
            a: (a.as_ptr(), k as isize, 1),
            b: (b.as_ptr(), 1, k as isize),
            c: (c.as_mut_ptr(), n as isize, 1),
            accumulate,
        };
        // SAFETY: the three matrices have exactly the addressed elements.
        assert_eq!(unsafe { library.sgemm(&g) }, STATUS_OK);
        c
    }

    #[test]
    fn all_libraries_agree_with_a_plain_loop() {
        for (m, n, k) in [(0, 3, 2), (1, 1, 1), (2, 3, 0), (1, 70, 33), (7, 17, 8), (33, 65, 129)] {
            for accumulate in [false, true] {
                let (a, b, initial) = (fill(m * k, 7), fill(k * n, 5), fill(m * n, 3));
                let want: Vec<f32> = (0..m * n)
                    .map(|at| {
                        let (i, j) = (at / n, at % n);
                        let sum: f32 = (0..k).map(|p| a[i * k + p] * b[j * k + p]).sum();
                        sum + if accumulate { initial[at] } else { 0.0 }
                    })
                    .collect();
                for library in [&GemmCrate as &dyn LibraryGemm, &MatrixMultiply, &OwnGemm] {
                    assert_eq!(
                        product(library, m, n, k, accumulate),
                        want,
                        "{m}x{n}x{k} {accumulate}"
                    );
                }
            }
        }
    }
}
