//! Kernels that compute the rows of a tensor independently of each other.
//!
//! | module | owns |
//! |---|---|
//! | [`arg_reduce`] | the positions of the largest or smallest elements |
//! | [`fft`] | discrete Fourier transforms |
//! | [`sort`] | sorted elements and their positions |
//! | `vectorized` | loops that are compiled for each instruction set |
//! | `view` | the addresses of rows |

pub mod arg_reduce;
pub mod fft;
pub mod sort;
mod vectorized;
mod view;
