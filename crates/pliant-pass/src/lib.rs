//! The pass infrastructure: passes, sequences of passes, and instruments that observe them.
//!
//! | module | owns |
//! |---|---|
//! | [`pass`] | [`ModulePass`], [`FunctionPass`], [`Sequential`] |
//! | [`context`] | [`PassContext`]: options, instruments, cancellation |
//! | [`cancel`] | [`CancelToken`]: cancels a compilation |
//! | [`instrument`] | observers of passes: dumping, printing, verifying |
//! | [`timing`] | the instrument that measures passes |
//! | [`error`] | [`PassError`]: the three kinds of failure |
//! | [`evaluate`] | executes parts of a program during compilation |
//! | [`pattern`] | the dataflow pattern language: matching and rewriting |
//! | [`config`] | the table of settings |
//! | [`dump`] | writes modules to files for debugging |
//! | `foreign` | user-defined passes: verification and error reporting |
//! | [`rewrite`] | helpers to rewrite graph functions binding by binding without recursion |
//! | [`remark`] | what passes did, missed and noticed, for `explain` |
//! | [`text`] | the printer and the verifier, as used by passes |
//!
//! The concrete passes are in `pliant-opt`, on which this crate does not depend.

pub mod cancel;
pub mod config;
pub mod context;
pub mod dump;
pub mod error;
pub mod evaluate;
pub mod instrument;
pub mod pass;
pub mod may_write;
pub mod pattern;
pub mod remark;
pub mod rewrite;
pub mod text;
pub mod timing;
mod user_passes;

pub use cancel::CancelToken;
pub use context::PassContext;
pub use error::{PassError, Problem, Unsupported};
pub use evaluate::Evaluate;
pub use instrument::{DumpIr, Instrument, PrintIr, Verify};
pub use pass::{FunctionPass, ModulePass, PassInfo, Sequential};
pub use may_write::MayWrite;
pub use remark::{Remark, RemarkKind, Remarks};
pub use timing::{Timing, TimingEntry};
