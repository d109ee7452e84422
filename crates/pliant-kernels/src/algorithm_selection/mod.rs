//! The rules by which kernels choose their algorithm from the shape at run time, and the
//! measurements behind each rule.
//!
//! A kernel file describes how an implementation works. This folder decides which implementation runs, how it is blocked and into
//! how many pieces the work is divided for the threads. Tile sizes of micro-kernels (six rows by 64 columns, 32 rows of a tile
//! register) are defined with the micro-kernels. The rule by which groups of a convolution share weight panels is in
//! `pliant_tensor`, because the compiler also packs constants by it. [`convolution`] re-exports the rule. The blocking of products
//! in generated code is in `pliant-tir/src/schedule/gemm_blocking.rs`. Choices that determine how weights are packed, such as
//! Winograd's algorithm, are made at compile time (`pliant-machine/src/compile_time_profitability.rs`).
//!
//! Sizes of blocks and numbers of pieces derive from the machine ([`pliant_machine`]). Other
//! constants are ratios of work, for example the number of rows from which a copy is cheaper than
//! reading in place.
//!
//! Quoted titles are tables in `docs/internals/measurements`. Measurements without the name of a
//! CPU are from the machine of those pages: Emerald Rapids, with AVX-512 and AMX, 48 KB of
//! first-level and 2 MB of second-level cache, two threads. Ratios "with one thread" compare builds
//! that differ in the rule. They ran alternately on a loaded machine, and vary by up to 10 %. "Not
//! measured" means that only the stated reason supports the value.
//!
//! | module | owns |
//! |---|---|
//! | [`partition`] | pieces of work for the worker team, and pieces of matrix products by packed panels |
//! | [`gemm`] | pieces of a batch of products with any strides |
//! | [`packed_operand_matmul`] | block sizes of matrix products with a packed operand |
//! | [`row_copies`] | when rows of A (the left operand) are copied |
//! | [`non_constant_operands`] | whether B (the right operand) is packed if both operands are non-constant |
//! | [`tile_registers`] | the choice between tile registers (AMX) and vector instructions |
//! | [`quantized`] | matrix products of 8-bit integers |
//! | [`low_precision_weights`] | matrix products by constants of 4, 8 or 16 bits |
//! | [`attention`] | blocks of rows and keys |
//! | [`convolution`] | tiles, lines, groups, and the block sizes of Winograd's algorithm |
//! | [`recurrent`] | ranges of steps |
//! | [`arg_reduce`] | pieces of rows, and parts into which long rows are divided |
//! | [`fft`] | pieces of rows |
//! | [`resize`] | pieces of rows |
//! | [`softmax`] | pieces of rows |
//! | [`sort`] | algorithms and pieces of rows |
//! | [`transpose`] | tiles and pieces of copies |

pub mod arg_reduce;
pub mod attention;
pub mod convolution;
pub mod fft;
pub mod gemm;
pub mod low_precision_weights;
pub mod non_constant_operands;
pub mod packed_operand_matmul;
pub mod partition;
pub mod quantized;
pub mod recurrent;
pub mod resize;
pub mod row_copies;
pub mod softmax;
pub mod sort;
pub mod tile_registers;
pub mod transpose;
