//! Schedules and lowers loop functions: from blocks with axes to loops with explicit vectors,
//! which code generators take.
//!
//! [`pipeline::PASSES`] is the table of all passes; [`lower`] runs them in order. Each is in a file of its own:
//!
//! | file | pass |
//! |---|---|
//! | `inline` | InlineInjective |
//! | `reuse_output` | ReuseOutput: a product goes into the output that elementwise work makes of it |
//! | `clear_scratch` | ClearScratch: zero-fills scratch buffers that are not provably written before they are read |
//! | `full_writes` | which buffers are written completely before they are read |
//! | `check_bounds` | CheckBounds: an index that is not provably inside becomes a run-time check, never a crash |
//! | `guards` | the bindings and checks in front of a statement |
//! | `index_facts`, `fit` | facts about indices and sizes, and which integer arithmetic cannot overflow |
//! | `inner_loops` | what makes innermost loops slow, for `explain` |
//! | `kernel_checks` | assertions in front of all kernel calls, for test builds |
//! | `schedule/` | DefaultSchedule: rules over stages (`stage`), matrix products (`gemm`), row groups (`group`), loops (`emit`) |
//! | `lower_init`, `convert_blocks` | blocks to loops |
//! | `unroll`, `flatten`, `simplify`, `vectorize` | loops to the lowered form |
//! | `rows` | what the kernels of rows reach from the addresses that they are given |
//! | `room` | large stacks for deep functions |
//! | `lowered` | the definition of that form, and its verifier |

pub mod accesses;
pub mod check_bounds;
mod clear_scratch;
pub mod convert_blocks;
pub mod error;
pub mod fit;
pub mod flatten;
pub mod full_writes;
pub mod guards;
mod index_facts;
pub mod inline;
pub mod inner_loops;
pub mod kernel_checks;
pub mod lower_init;
pub mod lowered;
pub mod pipeline;
pub mod reuse_output;
pub mod room;
pub mod rows;
pub mod schedule;
pub mod simplify;
pub mod text;
pub mod unroll;
pub mod vectorize;
pub mod walk;

pub use error::LowerError;
pub use pipeline::{PASSES, PrimPass, lower, lower_observed, pass};
