//! The entry points of the declared kernels for matrix products of floats.

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS};
use pliant_kernel_api::kernels::matmul::{KERNEL, PACKED};
use pliant_kernel_api::{Call, Kernel, Sizes, View};
use pliant_tensor::DType;

use crate::batched_gemm::{Gemm, Product, gemm_batch, packed};
use crate::kernel_entry_points::Implementation;
use crate::matmul::PackedProduct;

/// The implementation of the kernel `matmul`: batches of matrix products.
pub struct Matmul;

impl Implementation for Matmul {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match operands(call) {
                Some((DType::Float32, views)) => batch::<f32>(runtime, views, call, sizes),
                Some((DType::Float64, views)) => batch::<f64>(runtime, views, call, sizes),
                _ => STATUS_BAD_ARGUMENTS,
            }
        }
    }
}

/// The implementation of the kernel `matmul_packed`: a matrix product whose right operand is packed
/// in panels.
pub struct PackedMatmul;

impl Implementation for PackedMatmul {
    const KERNEL: &'static Kernel = &PACKED;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match operands(call) {
                Some((DType::Float32, views)) => packed_product::<f32>(runtime, views, call, sizes),
                Some((DType::Float64, views)) => packed_product::<f64>(runtime, views, call, sizes),
                _ => STATUS_BAD_ARGUMENTS,
            }
        }
    }
}

/// Returns the data type of a call's operands, and the operands `x`, `weight` and `out`; `None` if
/// one is missing.
fn operands(call: &Call) -> Option<(DType, [&View; 3])> {
    let views = [call.operand("x")?, call.operand("weight")?, call.operand("out")?];
    Some((views[0].dtype, views))
}

/// Returns the number of rows, the number of columns and the inner size of a matrix product.
fn dims(sizes: &Sizes) -> [usize; 3] {
    [sizes.get("rows") as usize, sizes.get("columns") as usize, sizes.get("inner") as usize]
}

/// The stride of an operand along a dim, in elements.
fn stride(view: &View, dim: usize) -> isize {
    view.strides()[dim] as isize
}

/// Computes a batch of matrix products with elements of type `T`.
///
/// # Safety
/// The call was checked, and its operands have elements of type `T`.
unsafe fn batch<T: Product>(
    runtime: &KernelRuntime,
    [x, weight, out]: [&View; 3],
    call: &Call,
    sizes: &Sizes,
) -> i64 {
    let [m, n, k] = dims(sizes);
    let g = Gemm {
        m,
        n,
        k,
        a: (x.data.cast_const().cast::<T>(), stride(x, 1), stride(x, 2)),
        b: (weight.data.cast_const().cast::<T>(), stride(weight, 1), stride(weight, 2)),
        c: (out.data.cast::<T>(), stride(out, 1), stride(out, 2)),
        accumulate: call.int("accumulate") != 0,
    };
    let strides = [x, weight, out].map(|view| stride(view, 0));
    // SAFETY: the check covers every element, and ensures that `out` shares no memory with the other operands.
    unsafe { gemm_batch(runtime, sizes.get("batch"), g, strides) }
}

/// Computes a matrix product with elements of type `T` and a packed right operand.
///
/// # Safety
/// The conditions of [`batch`] hold.
unsafe fn packed_product<T: Product>(
    runtime: &KernelRuntime,
    [x, weight, out]: [&View; 3],
    call: &Call,
    sizes: &Sizes,
) -> i64 {
    let a = (x.data.cast_const().cast::<T>(), stride(x, 0), stride(x, 1));
    let b = (weight.data.cast_const().cast::<T>(), sizes.get("width") as usize);
    let product = PackedProduct::new(dims(sizes), a, b, (out.data.cast::<T>(), stride(out, 0)));
    let product = PackedProduct { accumulate: call.int("accumulate") != 0, ..product };
    // SAFETY: as in `batch`; the operand has whole panels.
    unsafe { packed(runtime, &product) }
}
