//! Schedules loop functions and lowers them from blocks with axes to loops with explicit vectors, the input of code generators.
//!
//! [`pipeline::PASSES`] is the table of all passes. [`lower`] runs them in order. Each pass has its own file:
//!
//! | file | contents |
//! |---|---|
//! | `inline` | InlineInjective: computes elementwise stages inside their readers |
//! | `reuse_output` | ReuseOutput: stores matrix products in the output that an elementwise stage computes from them |
//! | `clear_scratch` | ClearScratch: zero-fills scratch buffers that are not provably written before they are read |
//! | `full_writes` | finds buffers that are written completely before they are read |
//! | `check_bounds` | CheckBounds: inserts a run-time check of each index that is not provably in bounds |
//! | `guards` | the bindings and checks in front of a statement |
//! | `index_facts`, `overflow_analysis` | facts about indices and sizes, and integer arithmetic that cannot overflow |
//! | `slow_inner_loops` | finds slow innermost loops, for `explain` |
//! | `kernel_checks` | inserts assertions in front of all kernel calls, for test builds |
//! | `schedule/` | DefaultSchedule: schedules stages (`stage`) by rules |
//! | `lower_init`, `convert_blocks` | LowerInitBlock and ConvertBlocksToLoops: lower blocks to loops |
//! | `unroll`, `flatten`, `simplify`, `vectorize` | lower loops to the lowered form |
//! | `stack_guard` | runs recursion over deeply nested functions on large stacks |
//! | `lowered` | the definition of the lowered form, and its verifier |

pub mod accesses;
pub mod check_bounds;
mod clear_scratch;
pub mod convert_blocks;
pub mod error;
pub mod flatten;
pub mod format_expr;
pub mod full_writes;
pub mod guards;
mod index_facts;
pub mod inline;
pub mod kernel_checks;
pub mod lower_init;
pub mod lowered;
pub mod overflow_analysis;
pub mod pipeline;
pub mod reuse_output;
pub mod schedule;
pub mod simplify;
pub mod slow_inner_loops;
pub mod stack_guard;
pub mod unroll;
pub mod vectorize;
pub mod walk;

pub use error::LowerError;
pub use pipeline::{PASSES, PrimPass, lower, lower_observed, pass};
