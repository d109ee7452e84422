//! Operators on images, one file per family.

pub mod col2im;
mod cubic;
pub mod grid;
pub mod resize;
mod resize_kernel;
