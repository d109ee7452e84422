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
//! | [`hardware`] | measurements of the machine's peak performance |
//! | [`lanes`] | a vector register of each instruction set behind one trait |
//! | [`math`] | elementary functions as sequences of simple operations, scalar or vector |
//! | [`narrow`] | products of float32 by constants stored in fewer bits |
//! | [`pool`] | pooling of images with channels last |
//! | [`product`] | the product kernels, for packed and for non-constant operands |
//! | [`quantized`] | products of 8-bit integers |
//! | [`recurrent`] | LSTM, GRU and plain recurrent layers of float32 |
//! | [`resize`] | images of another size |
//! | [`rows`] | kernels on rows: sorting, positions of extremes, Fourier transforms |
//! | [`rules`] | which implementation of a kernel runs for which shape, with measurements |
//! | [`scalar`] | scalar elementary functions and number formats without machine instructions |
//! | `scratch` | per-thread scratch memory that a kernel keeps between calls |
//! | [`vector`] | elementary functions over slices |
//! | [`tensor_arg`] | checks a tensor argument against what a kernel expects |

// Hot loops count by index: without link-time optimization, `zip` is a call in functions with more instructions than the
// target's, which made grouped convolution twenty times slower.
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
pub mod math;
pub mod matmul;
pub mod narrow;
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

/// The entry points of all kernels, by name.
static ENTRIES: &[(&str, Entry)] = &[
    named::<attention::ScaledDotProduct>(),
    named::<convolution::Conv>(),
    named::<matmul::Matmul>(),
    named::<matmul::PackedMatmul>(),
    named::<narrow::BFloat16Weight>(),
    named::<narrow::Int4Weight>(),
    named::<narrow::Int8Weight>(),
    named::<pack_int8::PackInt8>(),
    named::<pool::Pool>(),
    named::<quantized::Int8Conv>(),
    named::<quantized::Int8Product>(),
    named::<recurrent::call::Recurrent>(),
    named::<resize::Resize>(),
    named::<rows::arg_reduce::ArgReduce>(),
    named::<rows::fft::Fft>(),
    named::<rows::sort::Sort>(),
    named::<softmax::Softmax>(),
    named::<transpose::Transpose>(),
];

/// The entry point of the kernel with that name.
pub fn entry_of(name: &str) -> Option<Entry> {
    ENTRIES.iter().find(|(own, _)| *own == name).map(|(_, entry)| *entry)
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
