//! Operators on images, one file per family.

mod cubic;
pub mod grid;
pub mod resize;
