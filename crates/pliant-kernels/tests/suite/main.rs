//! The tests of the kernels, linked into one program.

mod attention;
mod convolution;
mod epilogue;
mod guard_pages;
mod inlined_intrinsics;
mod integer_convolution;
mod low_precision_weights;
mod non_constant_operands;
mod packed;
mod quantized;
mod recurrent;
mod vector;
