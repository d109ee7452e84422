//! Products with an epilogue that finishes results while they are in the nearest cache. They take
//! the address of a structure.
//!
//! They are for programs that use this crate, and for code generators that pass their own functions
//! to the library: the registry names them. Programs compiled by Pliant do not call them, since
//! loops over blocks of results (`pliant-tir/src/schedule/finish.rs`) support any chain of stages.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use crate::epilogue::Epilogue;
use crate::gemm::{Gemm, Product, gemm_batch, packed};
use crate::product::PackedProduct;

/// The arguments of [`pliant_gemm_fused_f32`] and similar functions: 64-bit words, so that
/// generated code can write them as an array. Strides count elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FusedGemm {
    /// The number of products.
    pub batch: i64,
    /// Rows of A and C.
    pub m: i64,
    /// Columns of B and C.
    pub n: i64,
    /// Columns of A, rows of B.
    pub k: i64,
    /// A.
    pub a: *const c_void,
    /// The product, row and column strides of A.
    pub a_strides: [i64; 3],
    /// B, or its panels.
    pub b: *const c_void,
    /// The product, row and column strides of B.
    pub b_strides: [i64; 3],
    /// Columns of a panel of B; 0 if B is not packed. All products share the panels.
    pub width: i64,
    /// C, with contiguous columns. With panels it may be null: then the epilogue writes the results
    /// elsewhere.
    pub c: *mut c_void,
    /// The product and row strides of C.
    pub c_strides: [i64; 2],
    /// Whether to add to the contents of C, before the epilogue.
    pub accumulate: i64,
    /// The epilogue.
    pub epilogue: Epilogue,
}

/// # Safety
/// As for [`pliant_gemm_fused_f32`].
unsafe fn fused<T: Product>(runtime: *const KernelRuntime, f: &FusedGemm) -> i64 {
    let [batch, m, n, k] = [f.batch, f.m, f.n, f.k].map(|d| d.max(0) as usize);
    let stride = |s: i64| s as isize;
    let (a, b, c) = (f.a.cast::<T>(), f.b.cast::<T>(), f.c.cast::<T>());
    let a = (a, stride(f.a_strides[1]), stride(f.a_strides[2]));
    let accumulate = f.accumulate != 0;
    if f.width == 0 {
        if c.is_null() {
            return STATUS_BAD_ARGUMENTS;
        }
        let b = (b, stride(f.b_strides[1]), stride(f.b_strides[2]));
        let g = Gemm { m, n, k, a, b, c: (c, stride(f.c_strides[1]), 1), accumulate };
        let strides = [f.a_strides[0], f.b_strides[0], f.c_strides[0]].map(stride);
        // SAFETY: guaranteed by the caller.
        return unsafe { gemm_batch(runtime, f.batch, g, strides, Some(&f.epilogue)) };
    }
    let width = usize::try_from(f.width).unwrap_or(0);
    let c = (c, stride(f.c_strides[1]));
    let product = PackedProduct::new([m, n, k], a, (b, width), c);
    let mut p = PackedProduct { accumulate, epilogue: Some(f.epilogue), ..product };
    // Batches without elements may have any length and any strides.
    let batch = if m == 0 || n == 0 { batch.min(1) } else { batch };
    for at in 0..batch {
        p.at.batch = at;
        let from = |stride: i64| (at as isize).wrapping_mul(stride as isize);
        p.a.0 = a.0.wrapping_offset(from(f.a_strides[0]));
        if !c.0.is_null() {
            p.c.0 = c.0.wrapping_offset(from(f.c_strides[0]));
        }
        // SAFETY: guaranteed by the caller.
        let status = unsafe { packed(runtime, &p) };
        if status != STATUS_OK {
            return status;
        }
    }
    STATUS_OK
}

macro_rules! fused_entry {
    ($name:ident, $ty:ty) => {
        /// A batch of products whose results an epilogue finishes tile by tile, while they are in
        /// the nearest cache. Returns a kernel status, possibly that of the epilogue.
        ///
        /// # Safety
        /// The runtime is valid; all addressed elements are valid, including whole panels; C
        /// overlaps neither A nor B; the epilogue accepts its operands, and tiles of this type.
        pub unsafe extern "C" fn $name(
            runtime: *const KernelRuntime,
            product: *const FusedGemm,
        ) -> i64 {
            // SAFETY: guaranteed by the caller.
            unsafe { fused::<$ty>(runtime, &*product) }
        }
    };
}

fused_entry!(pliant_gemm_fused_f32, f32);
fused_entry!(pliant_gemm_fused_f64, f64);
