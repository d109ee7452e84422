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
//! | `dependences` | which buffers statements read and write, and whether a block can be moved |
//! | `loop_tree`, `buffers` | what the primitives share |
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
mod buffers;
mod cache;
mod compute_at;
mod dependences;
mod error;
mod fuse;
mod inline;
mod loop_kinds;
mod loop_tree;
mod reductions;
mod reorder;
mod schedule;
mod split;

pub use error::ScheduleError;
pub use schedule::{Annotated, BlockRef, LoopRef, Schedule};
pub use split::Remainder;
