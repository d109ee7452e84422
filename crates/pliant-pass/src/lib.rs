//! Passes: what a pass is, how passes run one after the other, and what watches them.
//!
//! | module | owns |
//! |---|---|
//! | [`pass`] | [`ModulePass`], [`FunctionPass`], [`Sequential`] |
//! | [`context`] | [`PassContext`]: options, instruments, cancellation |
//! | [`cancel`] | [`CancelToken`]: stops a compilation from outside |
//! | [`instrument`] | what watches passes: timing, dumping, verifying |
//! | [`error`] | [`PassError`]: the three kinds of failure |
//! | [`rewrite`] | helpers to rewrite graph functions binding by binding, without recursion |
//! | [`text`] | the printer and the verifier as passes use them |
//!
//! The concrete passes live in `pliant-opt`; this crate knows none of them.

pub mod cancel;
pub mod context;
pub mod error;
pub mod instrument;
pub mod pass;
pub mod rewrite;
pub mod text;

pub use cancel::CancelToken;
pub use context::PassContext;
pub use error::{PassError, Problem, Unsupported};
pub use instrument::{DumpIr, Instrument, PrintIr, Timing, TimingEntry, Verify};
pub use pass::{FunctionPass, ModulePass, Sequential};
