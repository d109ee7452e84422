//! The pass infrastructure: passes, sequences of passes, and instruments that observe them.
//!
//! | module | contains |
//! |---|---|
//! | [`pass`] | [`ModulePass`], [`FunctionPass`], [`Sequential`] |
//! | [`context`] | [`PassContext`]: options, instruments, cancellation |
//! | [`cancel`] | [`CancelToken`]: cancels a compilation |
//! | [`instrument`] | observers of passes: dumping, printing, verifying |
//! | [`timing`] | the instrument that measures passes |
//! | [`error`] | [`PassError`]: the error of a pass |
//! | [`evaluate`] | the interface for executing parts of a program during compilation |
//! | [`pattern`] | the dataflow pattern language: matching and rewriting |
//! | [`config`] | the table of settings |
//! | [`dump`] | writes modules to files for debugging |
//! | `user_passes` | verification and error reports of user-defined passes |
//! | [`may_write`] | [`MayWrite`]: the functions that may write to their arguments |
//! | [`rewrite`] | helpers to rewrite graph functions binding by binding without recursion |
//! | [`remark`] | optimisation remarks, for `explain` |
//! | [`module_text`] | scripts and violations of modules as text |
//!
//! The concrete passes are in `pliant-opt`, on which this crate does not depend.

pub mod cancel;
pub mod config;
pub mod context;
pub mod dump;
pub mod error;
pub mod evaluate;
pub mod instrument;
pub mod may_write;
pub mod module_text;
pub mod pass;
pub mod pattern;
pub mod remark;
pub mod rewrite;
pub mod timing;
mod user_passes;

pub use cancel::CancelToken;
pub use context::PassContext;
pub use error::{PassError, Problem, Unsupported};
pub use evaluate::Evaluate;
pub use instrument::{DumpIr, Instrument, PrintIr, Verify};
pub use may_write::MayWrite;
pub use pass::{FunctionPass, ModulePass, PassInfo, Sequential};
pub use remark::{Remark, RemarkKind, Remarks};
pub use timing::{Timing, TimingEntry};
