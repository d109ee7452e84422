//! Passes: what a pass is, how passes run one after the other, and what watches them.
//!
//! | module | owns |
//! |---|---|
//! | [`pass`] | [`ModulePass`], [`FunctionPass`], [`Sequential`] |
//! | [`context`] | [`PassContext`]: options, instruments, cancellation |
//! | [`cancel`] | [`CancelToken`]: stops a compilation from outside |
//! | [`instrument`] | what watches passes: dumping, printing, verifying |
//! | [`timing`] | the instrument that measures them |
//! | [`error`] | [`PassError`]: the three kinds of failure |
//! | [`evaluate`] | running parts of a program while it is compiled |
//! | [`pattern`] | the dataflow pattern language: matching and rewriting |
//! | [`config`] | the table of settings |
//! | [`dump`] | modules in files, for who looks for the cause of a failure |
//! | `foreign` | passes from outside: verified, their mistakes told as their author's |
//! | [`rewrite`] | helpers to rewrite graph functions binding by binding, without recursion |
//! | [`remark`] | what passes did, missed and noticed, for `explain` |
//! | [`text`] | the printer and the verifier as passes use them |
//!
//! The concrete passes live in `pliant-opt`; this crate knows none of them.

pub mod cancel;
pub mod config;
pub mod context;
pub mod dump;
pub mod error;
pub mod evaluate;
mod foreign;
pub mod instrument;
pub mod pass;
pub mod pattern;
pub mod remark;
pub mod rewrite;
pub mod text;
pub mod timing;
pub mod writers;

pub use cancel::CancelToken;
pub use context::PassContext;
pub use error::{PassError, Problem, Unsupported};
pub use evaluate::Evaluate;
pub use instrument::{DumpIr, Instrument, PrintIr, Verify};
pub use pass::{FunctionPass, ModulePass, PassInfo, Sequential};
pub use remark::{Remark, RemarkKind, Remarks};
pub use timing::{Timing, TimingEntry};
pub use writers::Writers;
