//! Checks a tensor argument of a generated function. Generated code calls the check once per tensor, and compares the dims itself
//! afterwards (`pliant-codegen/src/prologue_plan.rs`).
//!
//! The operands of library kernels are checked at the entry points of the kernels (`kernel_entry_points.rs`). For operands that are
//! whole buffers, the entry points rely on the checks of the arguments described here: they compare only views (`T.view`) with the
//! size of the buffer.

use pliant_exec::abi::DLTensor;

/// The reason why a tensor argument was rejected. The numbers have the order of the code
/// generator's error messages.
#[repr(i64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorFault {
    /// The tensor has the wrong number of dims.
    Rank = 1,
    /// The tensor has the wrong element type.
    Dtype = 2,
    /// The tensor has no memory, or its elements are not row-major.
    Layout = 3,
}

/// The number of variants of [`TensorFault`].
pub const TENSOR_FAULTS: usize = 3;

/// Packs a scalar element type into a word with the layout of `DLDataType`: the type code, the
/// number of bits, and one lane.
pub fn dtype_word(code: u8, bits: u8) -> i64 {
    i64::from(code) | i64::from(bits) << 8 | 1 << 16
}

/// Checks the rank and the element type of a tensor and, if `compact` is not 0, that its elements are row-major without
/// gaps. Returns 0 or a [`TensorFault`].
///
/// # Safety
/// `tensor` is null or points to a `DLTensor` as described by the kernel ABI.
pub unsafe extern "C" fn check_tensor(
    tensor: *const DLTensor,
    ndim: i64,
    dtype: i64,
    compact: i64,
) -> i64 {
    // SAFETY: null or valid, as the caller guarantees.
    let Some(tensor) = (unsafe { tensor.as_ref() }) else { return TensorFault::Layout as i64 };
    if i64::from(tensor.ndim) != ndim {
        return TensorFault::Rank as i64;
    }
    let d = tensor.dtype;
    if i64::from(d.code) | i64::from(d.bits) << 8 | i64::from(d.lanes) << 16 != dtype {
        return TensorFault::Dtype as i64;
    }
    let n = ndim as usize;
    if n == 0 {
        return if tensor.data.is_null() { TensorFault::Layout as i64 } else { 0 };
    }
    // SAFETY: the ABI guarantees `ndim` dims and strides.
    let shape = unsafe { std::slice::from_raw_parts(tensor.shape, n) };
    if shape.contains(&0) {
        return 0;
    }
    if tensor.data.is_null() || shape.iter().any(|&d| d < 0) {
        return TensorFault::Layout as i64;
    }
    if compact != 0 && !tensor.strides.is_null() {
        // SAFETY: as for the shape.
        let strides = unsafe { std::slice::from_raw_parts(tensor.strides, n) };
        let mut expected = 1i64;
        for (&dim, &stride) in shape.iter().zip(strides).rev() {
            if dim != 1 && stride != expected {
                return TensorFault::Layout as i64;
            }
            expected = expected.wrapping_mul(dim);
        }
    }
    0
}
