//! Prebuilt kernels and helper functions that generated code calls by name.
//!
//! | module | owns |
//! |---|---|
//! | [`registry`] | the table of symbols that a code generator links: name, address, signature |
//! | `amx` | products in tile registers of x86-64 |
//! | [`gemm`] | [`LibraryGemm`], matrix products of any strides, over the worker team |
//! | [`attention`] | attention of float32 |
//! | [`convolution`] | convolution of float32 |
//! | [`epilogue`] | the C interface through which results of a product are finished tile by tile, and the common ones |
//! | [`fused`] | products with an epilogue |
//! | [`hardware`] | what the machine can do at most, measured |
//! | [`isa`] | which vector instructions the kernels use; `PLIANT_ISA` |
//! | [`lanes`] | a vector register of each instruction set behind one trait |
//! | [`math`] | elementary functions as sequences of simple operations, scalar or vector |
//! | [`narrow`] | products of float32 by constants of fewer bits |
//! | [`product`] | the product kernels, for packed and for varying operands |
//! | [`quantized`] | products of 8-bit integers |
//! | [`recurrent`] | LSTM, GRU and plain recurrent layers of float32 |
//! | [`rows`] | kernels over one row of elements: order, extremes, Fourier transforms |
//! | [`rules`] | which form of a kernel runs at which shape, with what was measured |
//! | [`scalar`] | elementary functions and number formats without machine instructions |
//! | `scratch` | memory of a thread that a kernel keeps from call to call |
//! | [`symbols`] | the names of kernels that take a structure |
//! | [`vector`] | elementary functions over slices |
//! | [`tensor_arg`] | the check of a tensor argument against what a kernel expects |

#[cfg(target_arch = "x86_64")]
mod amx;
pub mod attention;
pub mod convolution;
pub mod entry;
pub mod epilogue;
pub mod fused;
pub mod gemm;
pub mod hardware;
pub mod isa;
pub mod lanes;
pub mod math;
pub mod matmul;
pub mod narrow;
pub mod product;
pub mod quantized;
pub mod recurrent;
pub mod registry;
pub mod rows;
pub mod rules;
pub mod scalar;
mod scratch;
pub mod symbols;
pub mod tensor_arg;
pub mod transpose;
pub mod vector;

pub use entry::{Entry, entry_of};
pub use gemm::{Gemm, LibraryGemm, library_gemm};
pub use registry::{ExternFn, ExternTy, SymbolError, extern_fn, extern_fns, register_symbol};
