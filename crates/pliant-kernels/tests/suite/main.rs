//! The tests of the kernels, linked into one program.

mod attention;
mod convolution;
mod epilogue;
mod guard_pages;
mod int8_convolution;
mod int8_matmul;
mod low_precision_matmul;
mod non_constant_matmul;
mod packed_matmul;
mod recurrent_layers;
mod simd_intrinsics_inlined;
mod vector_math;
