//! Matrix products `C = A * B` (or `C += A * B`) of any strides, in batches, over the worker team.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};

/// One matrix product: `c[m, n] = (accumulate ? c : 0) + a[m, k] * b[k, n]`; strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<T> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// First element of A, its row stride and its column stride.
    pub a: (*const T, isize, isize),
    /// First element of B, its row stride and its column stride.
    pub b: (*const T, isize, isize),
    /// First element of C, its row stride and its column stride.
    pub c: (*mut T, isize, isize),
    /// Whether the product is added to what C holds.
    pub accumulate: bool,
}

/// A library of matrix products. One implementation serves every backend; a better one replaces it here.
pub trait LibraryGemm: Send + Sync {
    /// One float32 product on the calling thread.
    ///
    /// # Safety
    /// All addressed elements are valid; C overlaps neither A nor B.
    unsafe fn sgemm(&self, g: &Gemm<f32>);

    /// One float64 product on the calling thread.
    ///
    /// # Safety
    /// As for [`LibraryGemm::sgemm`].
    unsafe fn dgemm(&self, g: &Gemm<f64>);
}

/// The implementation over the crate `gemm`: AVX-512, AVX2 or NEON kernels picked at run time, fast from one row up.
#[derive(Debug, Default)]
pub struct GemmCrate;

/// # Safety
/// As for [`LibraryGemm::sgemm`].
unsafe fn gemm_crate<T: Element>(g: &Gemm<T>) {
    // SAFETY: the caller's promise.
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
}

impl LibraryGemm for GemmCrate {
    unsafe fn sgemm(&self, g: &Gemm<f32>) {
        // SAFETY: the caller's promise.
        unsafe { gemm_crate(g) }
    }

    unsafe fn dgemm(&self, g: &Gemm<f64>) {
        // SAFETY: the caller's promise.
        unsafe { gemm_crate(g) }
    }
}

/// The implementation over the crate `matrixmultiply`: the independent second opinion of the tests.
#[derive(Debug, Default)]
pub struct MatrixMultiply;

impl LibraryGemm for MatrixMultiply {
    unsafe fn sgemm(&self, g: &Gemm<f32>) {
        let beta = if g.accumulate { 1.0 } else { 0.0 };
        // SAFETY: the caller's promise.
        unsafe {
            matrixmultiply::sgemm(
                g.m, g.k, g.n, 1.0, g.a.0, g.a.1, g.a.2, g.b.0, g.b.1, g.b.2, beta, g.c.0, g.c.1,
                g.c.2,
            );
        }
    }

    unsafe fn dgemm(&self, g: &Gemm<f64>) {
        let beta = if g.accumulate { 1.0 } else { 0.0 };
        // SAFETY: the caller's promise.
        unsafe {
            matrixmultiply::dgemm(
                g.m, g.k, g.n, 1.0, g.a.0, g.a.1, g.a.2, g.b.0, g.b.1, g.b.2, beta, g.c.0, g.c.1,
                g.c.2,
            );
        }
    }
}

/// Own float32 kernels where the machine has wide vectors and they are faster, else the crate `gemm`.
#[derive(Debug, Default)]
pub struct OwnGemm;

impl LibraryGemm for OwnGemm {
    unsafe fn sgemm(&self, g: &Gemm<f32>) {
        // SAFETY: the caller's promise.
        unsafe {
            if !crate::micro::sgemm(g) {
                gemm_crate(g);
            }
        }
    }

    unsafe fn dgemm(&self, g: &Gemm<f64>) {
        // SAFETY: the caller's promise.
        unsafe { gemm_crate(g) }
    }
}

/// The library in use.
pub fn library_gemm() -> &'static dyn LibraryGemm {
    static LIBRARY: OwnGemm = OwnGemm;
    &LIBRARY
}

/// An element type of products.
trait Element: Copy + 'static {
    /// The number one.
    const ONE: Self;

    /// One product by the library in use.
    ///
    /// # Safety
    /// As for [`LibraryGemm::sgemm`].
    unsafe fn gemm(g: &Gemm<Self>);
}

impl Element for f32 {
    const ONE: f32 = 1.0;

    unsafe fn gemm(g: &Gemm<f32>) {
        // SAFETY: the caller's promise.
        unsafe { library_gemm().sgemm(g) }
    }
}

impl Element for f64 {
    const ONE: f64 = 1.0;

    unsafe fn gemm(g: &Gemm<f64>) {
        // SAFETY: the caller's promise.
        unsafe { library_gemm().dgemm(g) }
    }
}

/// A batch of products, as generated code passes it.
#[repr(C)]
struct Batch<T> {
    first: Gemm<T>,
    batch_strides: [isize; 3],
    /// How one product is cut: blocks of rows, or of columns.
    block: usize,
    by_rows: bool,
    blocks_per_product: usize,
    interrupt: *const std::sync::atomic::AtomicBool,
}

impl<T: Element> Batch<T> {
    /// Runs piece `index`: block `index % blocks` of product `index / blocks`.
    ///
    /// # Safety
    /// As for [`LibraryGemm::sgemm`], over the whole batch.
    unsafe fn piece(&self, index: usize) {
        let (product, block) = (index / self.blocks_per_product, index % self.blocks_per_product);
        let mut g = self.first;
        let (p, start) = (product as isize, block * self.block);
        // SAFETY: the piece lies inside the batch by the caller's promise.
        unsafe {
            g.a.0 = g.a.0.offset(p * self.batch_strides[0]);
            g.b.0 = g.b.0.offset(p * self.batch_strides[1]);
            g.c.0 = g.c.0.offset(p * self.batch_strides[2]);
            if self.by_rows {
                g.m = self.block.min(g.m - start);
                g.a.0 = g.a.0.offset(start as isize * g.a.1);
                g.c.0 = g.c.0.offset(start as isize * g.c.1);
            } else {
                g.n = self.block.min(g.n - start);
                g.b.0 = g.b.0.offset(start as isize * g.b.2);
                g.c.0 = g.c.0.offset(start as isize * g.c.2);
            }
            T::gemm(&g);
        }
    }
}

unsafe extern "C" fn run_pieces<T: Element>(context: *mut c_void, begin: i64, end: i64) -> i64 {
    // SAFETY: `gemm_batch` passes its batch, which outlives the loop.
    let batch = unsafe { &*context.cast::<Batch<T>>() };
    for index in begin..end {
        // SAFETY: the ABI says that the flag is never null.
        if unsafe { (*batch.interrupt).load(Ordering::Relaxed) } {
            return STATUS_CANCELLED;
        }
        // SAFETY: the promise of `gemm_batch`'s caller.
        unsafe { batch.piece(index as usize) };
    }
    STATUS_OK
}

/// Multiply-adds worth handing to a thread: about a microsecond.
const PIECE_WORK: usize = 64 * 1024;
/// Pieces that one product is cut into at most, so that packing B again for each stays cheap.
const MAX_BLOCKS: usize = 8;

/// # Safety
/// All elements of the batch are valid; C overlaps neither A nor B.
unsafe fn gemm_batch<T: Element>(
    runtime: *const KernelRuntime,
    batch: i64,
    g: Gemm<T>,
    batch_strides: [isize; 3],
) -> i64 {
    // SAFETY: the ABI passes a live runtime.
    let runtime = unsafe { &*runtime };
    if batch <= 0 || g.m == 0 || g.n == 0 {
        return STATUS_OK;
    }
    let work = g.m.saturating_mul(g.n).saturating_mul(g.k.max(1));
    let blocks =
        if batch >= 2 * MAX_BLOCKS as i64 { 1 } else { (work / PIECE_WORK).clamp(1, MAX_BLOCKS) };
    // Columns are cut where there are enough of them, so that each part of B is read (and packed) by one thread.
    let by_rows = g.n < 128 || (g.m >= 8 * 96 && g.n < 256);
    let (size, unit) = if by_rows { (g.m, 6) } else { (g.n, 64) };
    let block = size.div_ceil(blocks).next_multiple_of(unit).min(size);
    let blocks_per_product = size.div_ceil(block);
    let mut batch_job = Batch {
        first: g,
        batch_strides,
        block,
        by_rows,
        blocks_per_product,
        interrupt: runtime.interrupt,
    };
    let pieces = batch.saturating_mul(blocks_per_product as i64);
    let piece_work = (work / blocks_per_product).max(1);
    let grain = (PIECE_WORK / piece_work).max(1) as i64;
    // SAFETY: the job outlives the loop; pieces write disjoint parts of C.
    unsafe {
        (runtime.parallel_launch)(
            runtime.team,
            run_pieces::<T>,
            (&raw mut batch_job).cast(),
            pieces,
            grain,
        )
    }
}

macro_rules! entry {
    ($name:ident, $ty:ty) => {
        /// A batch of products, called by generated code: sizes, then for each of A, B, C its
        /// address and its batch, row and
        /// column strides in elements, then whether to add to C. Returns a kernel status.
        ///
        /// # Safety
        /// The runtime lives; all addressed elements are valid; C overlaps neither A nor B.
        pub unsafe extern "C" fn $name(
            runtime: *const KernelRuntime,
            batch: i64,
            m: i64,
            n: i64,
            k: i64,
            a: *const $ty,
            a_batch: i64,
            a_row: i64,
            a_col: i64,
            b: *const $ty,
            b_batch: i64,
            b_row: i64,
            b_col: i64,
            c: *mut $ty,
            c_batch: i64,
            c_row: i64,
            c_col: i64,
            accumulate: i64,
        ) -> i64 {
            let g = Gemm {
                m: m.max(0) as usize,
                n: n.max(0) as usize,
                k: k.max(0) as usize,
                a: (a, a_row as isize, a_col as isize),
                b: (b, b_row as isize, b_col as isize),
                c: (c, c_row as isize, c_col as isize),
                accumulate: accumulate != 0,
            };
            let strides = [a_batch as isize, b_batch as isize, c_batch as isize];
            // SAFETY: the caller's promise.
            unsafe { gemm_batch(runtime, batch, g, strides) }
        }
    };
}

entry!(pliant_gemm_f32, f32);
entry!(pliant_gemm_f64, f64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that repeat with no small period and sum exactly in float32.
    fn fill(len: usize, step: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * step) % 13) as f32 - 6.0).collect()
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
        unsafe { library.sgemm(&g) };
        c
    }

    #[test]
    fn all_libraries_agree_with_a_plain_loop() {
        for (m, n, k) in [(0, 3, 2), (1, 1, 1), (2, 3, 0), (1, 70, 33), (7, 17, 8), (33, 65, 129)] {
            for accumulate in [false, true] {
                let (a, b, old) = (fill(m * k, 7), fill(k * n, 5), fill(m * n, 3));
                let want: Vec<f32> = (0..m * n)
                    .map(|at| {
                        let (i, j) = (at / n, at % n);
                        let sum: f32 = (0..k).map(|p| a[i * k + p] * b[j * k + p]).sum();
                        sum + if accumulate { old[at] } else { 0.0 }
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
