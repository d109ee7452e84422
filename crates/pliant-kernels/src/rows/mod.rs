//! Kernels over one row of neighbouring elements, which generated code calls row by row: what loops over scalars do
//! badly.
//!
//! | module | owns |
//! |---|---|
//! | [`order`] | elements in order, and where they come from |
//! | [`extreme`] | the place of the largest or smallest element |
//! | [`fourier`] | the discrete Fourier transform |
//!
//! All are called `pliant_row_<what>_<dtype>`. Their first argument is how many elements of the row there are; addresses
//! come last. `pliant_tir::rows` knows what each address reaches, and generated code checks it before a call.

pub mod extreme;
pub mod fourier;
pub mod order;
