//! Matrix products of float32 and float64.
//!
//! | module | owns |
//! |---|---|
//! | [`tile`] | the micro-kernel, with one instance per tile size, and its dispatch over instruction sets |
//! | [`slivers`] | the division of rows into slivers |
//! | [`packed`] | products with a right operand packed at compile time |
//! | [`row_copies`] | copies of rows of A that would conflict in the caches |
//! | [`non_constant`] | products of two non-constant operands |
//! | [`parallel`] | parallel loops, and the partition of products into pieces |

pub mod non_constant;
pub mod packed;
pub mod parallel;
pub mod row_copies;
pub mod slivers;
pub mod tile;

pub use packed::{PackedProduct, slice_rows, split_range};
pub use tile::Element;
