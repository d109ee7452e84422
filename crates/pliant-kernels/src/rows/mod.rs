//! Kernels on one row of contiguous elements, which generated code calls for each row, where scalar
//! loops are slow.
//!
//! | module | owns |
//! |---|---|
//! | [`order`] | sorted elements, and their original indices |
//! | [`extreme`] | the index of the largest or smallest element |
//! | [`fourier`] | the discrete Fourier transform |
//!
//! All are named `pliant_row_<what>_<dtype>`. Their first argument is the number of elements of the
//! row; addresses come last. `pliant_tir::rows` declares what each address accesses, and generated
//! code checks it before a call.

pub mod extreme;
pub mod fourier;
pub mod order;
