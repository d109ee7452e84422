//! Matrix products of float32 and float64.
//!
//! | module | owns |
//! |---|---|
//! | [`micro_kernel`] | the micro-kernel, with one instance per tile size, and its dispatch over instruction sets |
//! | [`row_tiling`] | the division of rows into slivers (the rows of a tile) |
//! | [`packed_operand`] | matrix products with a right operand packed at compile time |
//! | [`contiguous_row_copies`] | copies of rows of A that would conflict in the caches |
//! | [`non_constant_operands`] | matrix products of two non-constant operands |
//! | [`work_partition`] | parallel loops, and the partition of matrix products into pieces |

pub mod contiguous_row_copies;
pub mod micro_kernel;
pub mod non_constant_operands;
pub mod packed_operand;
pub mod row_tiling;
pub mod work_partition;

pub use micro_kernel::Element;
pub use packed_operand::{PackedProduct, slice_rows, split_range};
