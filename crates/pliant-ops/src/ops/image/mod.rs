//! Operators on images, one file per family.

pub mod col2im;
mod cubic_weights;
pub mod grid_sample;
pub mod resize;
mod resize_kernel;
