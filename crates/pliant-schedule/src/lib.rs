//! Schedules of loop functions: primitives that transform loops and blocks and preserve the results of the function.
//!
//! [`Schedule`] lists all primitives. Each one has a file:
//!
//! | file | primitives |
//! |---|---|
//! | `split`, `fuse`, `reorder` | loops are split, fused and reordered |
//! | `loop_kinds` | `parallel`, `vectorize`, `unroll`, `bind` |
//! | `annotate` | `annotate`, `unannotate` |
//! | `inline` | `compute_inline`, `reverse_compute_inline` |
//! | `compute_at` | `compute_at`, `reverse_compute_at` |
//! | `cache` | `cache_read`, `cache_write`, `set_scope` |
//! | `reductions` | `decompose_reduction`, `rfactor` |
//! | `transform_layout`, `transform_block_layout`, `reindex`, `pad_einsum` | the primitives of these names |
//! | `blockize`, `tensorize` | the primitives of these names |
//! | `block_scope` | `get_producers`, `get_consumers`, `get_child_blocks` |
//! | `block_primitives` | the methods of [`Schedule`] for the previous three rows |
//! | `index_map` | maps of indices, and whether they are one-to-one |
//! | `tile_matcher` | whether a loop nest computes the same as the description of an intrinsic |
//! | `dependences` | which buffers statements read and write, and whether a block can be moved |
//! | `loop_tree`, `new_nest`, `buffers` | what the primitives share |
//!
//! The names and the meaning are those of TVM's `tir.Schedule`.
//!
//! # Examples
//! ```
//! use pliant_ir::{DType, IRModule};
//! use pliant_ops::te;
//! use pliant_schedule::{Remainder, Schedule};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let n = te::var("n").expr();
//! let x = te::placeholder(vec![n.clone()], DType::Float32, "x");
//! let y = te::compute(vec![n], "y", |i| x.at(i) + x.at(i));
//! let mut module = IRModule::new();
//! module.insert("double", te::create_prim_func(&[(&x).into(), (&y).into()])?);
//!
//! let mut schedule = Schedule::new(module);
//! let block = schedule.get_block("y", "double")?;
//! let loops = schedule.get_loops(&block)?;
//! let parts = schedule.split(&loops[0], &[None, Some(8)], Remainder::Predicate)?;
//! schedule.vectorize(&parts[1])?;
//! assert_eq!(schedule.get_loops(&block)?, parts);
//! # Ok(())
//! # }
//! ```

mod annotate;
mod block_primitives;
mod block_scope;
mod blockize;
mod buffers;
mod cache;
mod compute_at;
mod dependences;
mod error;
mod fuse;
mod index_map;
mod inline;
mod loop_kinds;
mod loop_tree;
mod new_nest;
mod pad_einsum;
mod reductions;
mod reindex;
mod reorder;
mod schedule;
mod split;
mod tensorize;
mod tile_matcher;
mod transform_block_layout;
mod transform_layout;

pub use buffers::BufferSelector;
pub use error::ScheduleError;
pub use index_map::IndexMap;
pub use schedule::{BlockRef, LoopOrBlock, LoopRef, Schedule};
pub use split::Remainder;
pub use tensorize::TensorIntrin;
