//! Prebuilt kernels and helper functions that generated code calls by name.
//!
//! | module | owns |
//! |---|---|
//! | [`extern_function_table`] | the table of functions that generated code may call: name, address, signature |
//! | `amx` | matrix products in the tile registers of x86-64 |
//! | [`batched_gemm`] | [`LibraryGemm`]: batches of matrix products with any strides, on the worker team |
//! | [`attention`] | attention of float32 |
//! | [`convolution`] | convolution of float32 |
//! | [`epilogue`] | scale, bias, residual and activation of results, tile by tile |
//! | [`hardware`] | measurements of the peak performance of the machine |
//! | [`simd`] | vectors of all instruction sets behind one trait |
//! | [`math`] | elementary functions as sequences of simple operations, scalar or vector |
//! | [`low_precision_weights`] | matrix products of float32 by weights of 4, 8 or 16 bits |
//! | [`pooling`] | pooling of images |
//! | [`matmul`] | matrix products with a packed operand or with non-constant operands |
//! | [`quantized`] | matrix products and convolutions of 8-bit integers |
//! | [`recurrent`] | LSTM, GRU and plain recurrent layers of float32 |
//! | [`resize`] | resizing of images |
//! | [`row_kernels`] | kernels on rows: sorting, argmin and argmax, Fourier transforms |
//! | [`algorithm_selection`] | the rules that choose an implementation by shape, with measurements |
//! | [`scalar_math`] | scalar elementary functions, and conversions of float16 |
//! | `scratch_memory` | per-thread scratch memory that a kernel keeps between calls |
//! | [`vector_math`] | elementary functions (such as `exp`) over slices |
//! | [`tensor_argument_check`] | the check of a tensor argument of generated code |
//!
//! # Examples
//! ```
//! use pliant_kernels::{Gemm, library_gemm};
//!
//! let (a, b, mut c) = ([1.0f32, 2.0, 3.0, 4.0], [5.0f32, 6.0], [0.0f32; 2]);
//! let (a, b, results) = ((a.as_ptr(), 2, 1), (b.as_ptr(), 1, 1), (c.as_mut_ptr(), 1, 1));
//! let product = Gemm { m: 2, n: 1, k: 2, a, b, c: results, accumulate: false };
//! // SAFETY: all elements are valid, and C overlaps neither A nor B.
//! let status = unsafe { library_gemm().sgemm(&product) };
//! assert_eq!((status, c), (0, [17.0, 39.0]));
//! ```

// Hot loops use indices: without link-time optimization, `zip` is not inlined into functions that enable more
// instructions than the target, which made grouped convolution twenty times slower.
#![allow(clippy::needless_range_loop, reason = "see above")]

pub mod algorithm_selection;
#[cfg(target_arch = "x86_64")]
mod amx;
pub mod attention;
pub mod batched_gemm;
pub mod convolution;
pub mod epilogue;
pub mod extern_function_table;
pub mod hardware;
pub mod kernel_entry_points;
pub mod lookup;
pub mod low_precision_weights;
pub mod math;
pub mod matmul;
pub mod matmul_entry_points;
pub mod pack_int8;
pub mod pooling;
pub mod quantized;
pub mod recurrent;
pub mod resize;
pub mod row_kernels;
pub mod scalar_math;
mod scratch_memory;
pub mod simd;
pub mod softmax;
pub mod tensor_argument_check;
pub mod transpose;
pub mod vector_math;

pub use batched_gemm::{Gemm, LibraryGemm, library_gemm};
pub use extern_function_table::{
    ExternFn, ExternTy, SymbolError, extern_fn, extern_fns, register_symbol,
};
pub use kernel_entry_points::Entry;

use kernel_entry_points::Implementation;
use pliant_exec::abi::{KernelRuntime, PackedWord};

/// Defines an entry point with an exported symbol for each kernel in a list of symbols and implementations, and the
/// table [`ENTRIES`] of all entry points. Object code refers to each entry point by its symbol, so that a linker omits
/// the kernels that a program does not call.
macro_rules! kernels {
    ($($symbol:literal = $implementation:ty;)*) => {
        /// The symbols, the names and the entry points of all kernels.
        static ENTRIES: &[(&str, &str, Entry)] = &[$({
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn kernel(
                runtime: *const KernelRuntime,
                args: *const PackedWord,
                count: u64,
            ) -> i64 {
                // SAFETY: guaranteed by the caller.
                unsafe { kernel_entry_points::entry::<$implementation>(runtime, args, count) }
            }
            ($symbol, <$implementation>::KERNEL.name, kernel)
        }),*];
    };
}

kernels! {
    "pliant_kernel_attention" = attention::ScaledDotProduct;
    "pliant_kernel_conv" = convolution::Conv;
    "pliant_kernel_matmul" = matmul_entry_points::Matmul;
    "pliant_kernel_matmul_packed" = matmul_entry_points::PackedMatmul;
    "pliant_kernel_lookup" = lookup::Lookup;
    "pliant_kernel_matmul_bfloat16_weight" = low_precision_weights::BFloat16Weight;
    "pliant_kernel_matmul_int4_weight" = low_precision_weights::Int4Weight;
    "pliant_kernel_matmul_int8_weight" = low_precision_weights::Int8Weight;
    "pliant_kernel_pack_int8" = pack_int8::PackInt8;
    "pliant_kernel_pool" = pooling::Pool;
    "pliant_kernel_conv_int8" = quantized::Int8Conv;
    "pliant_kernel_matmul_int8" = quantized::Int8Product;
    "pliant_kernel_recurrent" = recurrent::entry_point::Recurrent;
    "pliant_kernel_resize" = resize::Resize;
    "pliant_kernel_arg_reduce" = row_kernels::arg_reduce::ArgReduce;
    "pliant_kernel_fft" = row_kernels::fft::Fft;
    "pliant_kernel_sort" = row_kernels::sort::Sort;
    "pliant_kernel_softmax" = softmax::Softmax;
    "pliant_kernel_transpose" = transpose::Transpose;
}

/// Returns the entry point of the kernel `name`, or `None`.
///
/// # Examples
/// ```
/// use pliant_exec::abi::{KernelRuntime, PACKED_INT, PACKED_MEMORY, PackedWord};
///
/// // A descriptor is an address, a data type (DLPack's code and bits of float32) and the dims.
/// let (x, mut out) = ([0.0f32; 2], [0.0f32; 2]);
/// let float32 = i64::from(u16::from_le_bytes([2, 32]));
/// let memory = [[x.as_ptr() as i64, float32, 1, 2], [out.as_mut_ptr() as i64, float32, 1, 2]];
/// let tensor = |at: usize| memory[at].as_ptr() as u64;
/// let args = [(PACKED_MEMORY, tensor(0), 2), (PACKED_MEMORY, tensor(1), 2), (PACKED_INT, 0, 0)]
///     .map(|(kind, word, len)| PackedWord { kind, word, len });
/// let softmax = pliant_kernels::entry_of("softmax").expect("a declared kernel");
/// // SAFETY: the arguments match the declaration of the kernel, and the memory is valid.
/// let status = unsafe { softmax(&KernelRuntime::serial(), args.as_ptr(), 3) };
/// assert!(status == 0 && out.iter().all(|y| (*y - 0.5).abs() < 1e-6));
/// ```
pub fn entry_of(name: &str) -> Option<Entry> {
    ENTRIES.iter().find(|(_, kernel, _)| *kernel == name).map(|(_, _, entry)| *entry)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_declared_kernel_has_an_entry_point() {
        for kernel in pliant_kernel_api::KERNELS {
            assert!(super::entry_of(kernel.name).is_some(), "{}", kernel.name);
        }
        for (symbol, name, _) in super::ENTRIES {
            assert_eq!(*symbol, pliant_exec::ahead_of_time_abi::kernel_symbol(name));
        }
    }
}
