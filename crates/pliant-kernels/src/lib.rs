//! Prebuilt kernels and helper functions that generated code calls by name.
//!
//! | module | owns |
//! |---|---|
//! | [`registry`] | the table of symbols that a code generator links: name, address, signature |
//! | `amx` | products in tile registers of x86-64 |
//! | [`gemm`] | [`LibraryGemm`], matrix products with any strides, on the worker team |
//! | [`attention`] | attention of float32 |
//! | [`convolution`] | convolution of float32 |
//! | [`epilogue`] | scale, bias, residual and activation of results, tile by tile |
//! | [`hardware`] | measurements of the peak performance of the machine |
//! | [`lanes`] | vectors of all instruction sets behind one trait |
//! | [`math`] | elementary functions as sequences of simple operations, scalar or vector |
//! | [`low_precision_weights`] | products of float32 by constants of 4, 8 or 16 bits |
//! | [`pool`] | pooling of images with channels last |
//! | [`product`] | the product kernels, for packed and for non-constant operands |
//! | [`quantized`] | products of 8-bit integers |
//! | [`recurrent`] | LSTM, GRU and plain recurrent layers of float32 |
//! | [`resize`] | resizing of images |
//! | [`rows`] | kernels on rows: sorting, argmin and argmax, Fourier transforms |
//! | [`rules`] | the rules that choose an implementation by shape, with measurements |
//! | [`scalar`] | scalar elementary functions, and conversions of float16 |
//! | `scratch` | per-thread scratch memory that a kernel keeps between calls |
//! | [`vector`] | elementary functions over slices |
//! | [`tensor_arg`] | the check of a tensor argument |

// Hot loops use indices: without link-time optimisation, `zip` is not inlined into functions that enable more
// instructions than the target, which made grouped convolution twenty times slower.
#![allow(clippy::needless_range_loop, reason = "see above")]

#[cfg(target_arch = "x86_64")]
mod amx;
pub mod attention;
pub mod convolution;
pub mod entry;
pub mod epilogue;
pub mod gemm;
pub mod hardware;
pub mod lanes;
pub mod low_precision_weights;
pub mod math;
pub mod matmul;
pub mod pack_int8;
pub mod pool;
pub mod product;
pub mod quantized;
pub mod recurrent;
pub mod registry;
pub mod resize;
pub mod rows;
pub mod rules;
pub mod scalar;
mod scratch;
pub mod softmax;
pub mod tensor_arg;
pub mod transpose;
pub mod vector;

pub use entry::Entry;
pub use gemm::{Gemm, LibraryGemm, library_gemm};
pub use registry::{ExternFn, ExternTy, SymbolError, extern_fn, extern_fns, register_symbol};

use entry::named;

/// The names and the entry points of all kernels.
static ENTRIES: &[(&str, Entry)] = &[
    named::<attention::ScaledDotProduct>(),
    named::<convolution::Conv>(),
    named::<matmul::Matmul>(),
    named::<matmul::PackedMatmul>(),
    named::<low_precision_weights::BFloat16Weight>(),
    named::<low_precision_weights::Int4Weight>(),
    named::<low_precision_weights::Int8Weight>(),
    named::<pack_int8::PackInt8>(),
    named::<pool::Pool>(),
    named::<quantized::Int8Conv>(),
    named::<quantized::Int8Product>(),
    named::<recurrent::entry_point::Recurrent>(),
    named::<resize::Resize>(),
    named::<rows::arg_reduce::ArgReduce>(),
    named::<rows::fft::Fft>(),
    named::<rows::sort::Sort>(),
    named::<softmax::Softmax>(),
    named::<transpose::Transpose>(),
];

/// The entry point of the kernel with this name.
pub fn entry_of(name: &str) -> Option<Entry> {
    ENTRIES.iter().find(|(kernel, _)| *kernel == name).map(|(_, entry)| *entry)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_declared_kernel_has_an_entry_point() {
        for kernel in pliant_kernel_api::KERNELS {
            assert!(super::entry_of(kernel.name).is_some(), "{}", kernel.name);
        }
    }
}
