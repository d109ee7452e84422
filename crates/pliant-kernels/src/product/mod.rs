//! Matrix products of float32 and float64.
//!
//! | module | owns |
//! |---|---|
//! | [`tile`] | the micro-kernel, with an instance for each height and width, and its dispatch over instruction sets |
//! | [`rows`] | how rows are cut into slivers |
//! | [`packed`] | products with a right operand packed at compile time |
//! | [`near`] | copies of rows of A that would share cache sets |
//! | [`varying`] | products of two non-constant operands |
//! | [`share`] | how the worker team shares products |

pub mod near;
pub mod packed;
pub mod rows;
pub mod share;
pub mod tile;
pub mod varying;

pub use packed::{PackedProduct, slice_rows, steps};
pub use tile::Element;
