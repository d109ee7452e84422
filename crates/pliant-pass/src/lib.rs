//! The pass infrastructure: passes, sequences of passes, and instruments that observe them.
//!
//! | module | contains |
//! |---|---|
//! | [`pass`] | [`ModulePass`], [`FunctionPass`], [`Sequential`] |
//! | [`pass_context`] | [`PassContext`]: options, instruments, cancellation |
//! | [`cancel_token`] | [`CancelToken`]: cancels a compilation |
//! | [`pass_instruments`] | observers of passes: dumping, printing, verifying |
//! | [`pass_timing`] | the instrument that measures passes |
//! | [`pass_error`] | [`PassError`]: the error of a pass |
//! | [`compile_time_evaluation`] | the interface for executing parts of a program during compilation |
//! | [`pattern`] | the dataflow pattern language: matching and rewriting |
//! | [`pass_settings`] | the table of settings |
//! | [`module_dump_files`] | writes modules to files for debugging |
//! | `verify_user_passes` | verification and error reports of user-defined passes |
//! | [`argument_writing_functions`] | [`MayWrite`]: the functions that may write to their arguments |
//! | [`binding_rewrites`] | helpers to rewrite graph functions binding by binding without recursion |
//! | [`optimization_remarks`] | optimization remarks, for `explain` |
//! | [`module_text`] | scripts and violations of modules as text |
//!
//! The concrete passes are in `pliant-opt`, on which this crate does not depend.

pub mod argument_writing_functions;
pub mod binding_rewrites;
pub mod cancel_token;
pub mod compile_time_evaluation;
pub mod module_dump_files;
pub mod module_text;
pub mod optimization_remarks;
pub mod pass;
pub mod pass_context;
pub mod pass_error;
pub mod pass_instruments;
pub mod pass_settings;
pub mod pass_timing;
pub mod pattern;
mod verify_user_passes;

pub use argument_writing_functions::MayWrite;
pub use cancel_token::CancelToken;
pub use compile_time_evaluation::Evaluate;
pub use optimization_remarks::{Remark, RemarkKind, Remarks};
pub use pass::{FunctionPass, ModulePass, PassInfo, Sequential};
pub use pass_context::PassContext;
pub use pass_error::{PassError, Problem, Unsupported};
pub use pass_instruments::{DumpIr, Instrument, PrintIr, Verify};
pub use pass_timing::{Timing, TimingEntry};
