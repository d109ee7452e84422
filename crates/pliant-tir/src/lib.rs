//! Schedules loop functions and lowers them: from blocks with axes to loops with explicit vectors, the form that code generators
//! take.
//!
//! [`pipeline::PASSES`] is the table of all passes; [`lower`] runs them in order. Each pass is in its own file:
//!
//! | file | pass |
//! |---|---|
//! | `inline` | InlineInjective |
//! | `reuse_output` | ReuseOutput: a matrix product writes into the output that an elementwise stage computes from it |
//! | `clear_scratch` | ClearScratch: zero-fills scratch buffers that are not provably written before they are read |
//! | `full_writes` | which buffers are written completely before they are read |
//! | `check_bounds` | CheckBounds: an index that is not provably in bounds gets a run-time check |
//! | `guards` | the bindings and checks in front of a statement |
//! | `index_facts`, `fit` | facts about indices and sizes, and which integer arithmetic cannot overflow |
//! | `inner_loops` | what makes innermost loops slow, for `explain` |
//! | `kernel_checks` | assertions in front of all kernel calls, for test builds |
//! | `schedule/` | DefaultSchedule: rules over stages (`stage`), matrix products (`gemm`), row groups (`group`), loops (`emit`) |
//! | `lower_init`, `convert_blocks` | blocks to loops |
//! | `unroll`, `flatten`, `simplify`, `vectorize` | loops to the lowered form |
//! | `room` | large stacks for deeply nested functions |
//! | `lowered` | the definition of the lowered form, and its verifier |

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
pub mod schedule;
pub mod simplify;
pub mod text;
pub mod unroll;
pub mod vectorize;
pub mod walk;

pub use error::LowerError;
pub use pipeline::{PASSES, PrimPass, lower, lower_observed, pass};
