//! [`PassContext`]: the state shared by the passes of one run.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use pliant_ir::{AttrValue, OpRegistry};

use crate::cancel_token::CancelToken;
use crate::compile_time_evaluation::Evaluate;
use crate::optimization_remarks::Remarks;
use crate::pass_error::PassError;
use crate::pass_instruments::Instrument;

/// The options, instruments and cancellation token of one run of passes.
///
/// # Example
/// ```
/// use pliant_pass::PassContext;
///
/// let mut context = PassContext::new(pliant_ops::registry());
/// context.disabled.insert("FoldConstant".to_string());
/// assert!(!context.enables("FoldConstant", 2) && context.enables("FuseOps", 0));
/// ```
#[derive(Clone)]
pub struct PassContext {
    /// The optimization level. Passes whose own level is higher are skipped. Default: 2.
    pub opt_level: u8,
    /// The names of passes that run even if their level is higher than `opt_level` or they are disabled.
    pub required: IndexSet<String>,
    /// The names of passes to skip. Passes that are also in `required` run nevertheless.
    pub disabled: IndexSet<String>,
    /// Settings that passes look up by name.
    pub config: IndexMap<Arc<str>, AttrValue>,
    /// The instruments that observe the passes, in the order in which they are called.
    pub instruments: Vec<Arc<dyn Instrument>>,
    /// The directory for dumps of modules after failures. Default: the directory for temporary files.
    pub dump_dir: Option<PathBuf>,
    /// The evaluator that executes parts of the program during compilation. If `None`, passes use the reference interpreter.
    pub evaluator: Option<Arc<dyn Evaluate>>,
    /// The token by which the run can be cancelled.
    pub cancel: CancelToken,
    /// The remarks of the passes; see [`crate::optimization_remarks`].
    pub remarks: Arc<Remarks>,
    /// The operator library, which defines the type rules and attributes of operators.
    pub ops: &'static dyn OpRegistry,
}

impl PassContext {
    /// Creates a context of optimization level 2 with the operator library `ops` and without instruments.
    pub fn new(ops: &'static dyn OpRegistry) -> Self {
        PassContext {
            opt_level: 2,
            required: IndexSet::new(),
            disabled: IndexSet::new(),
            config: IndexMap::new(),
            instruments: Vec::new(),
            dump_dir: None,
            evaluator: None,
            cancel: CancelToken::new(),
            remarks: Arc::default(),
            ops,
        }
    }

    /// Adds an instrument after the existing ones.
    pub fn with_instrument(mut self, instrument: Arc<dyn Instrument>) -> Self {
        self.instruments.push(instrument);
        self
    }

    /// Sets the cancellation token.
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Whether a pass with the given name and optimization level is enabled.
    pub fn enables(&self, name: &str, opt_level: u8) -> bool {
        self.required.contains(name)
            || (opt_level <= self.opt_level && !self.disabled.contains(name))
    }

    /// The value of the bool setting `key`; `default` if it is not set.
    pub fn flag(&self, key: &str, default: bool) -> bool {
        self.config.get(key).and_then(AttrValue::as_bool).unwrap_or(default)
    }

    /// Whether passes may replace operators by calls of the kernel library (setting `kernels`).
    pub fn kernels(&self) -> bool {
        self.flag(crate::pass_settings::KERNELS, true)
    }

    /// Whether constant right operands of float32 matmuls are rounded to bfloat16 (setting `precision`).
    pub fn rounds_to_bfloat16(&self) -> bool {
        let precision =
            self.config.get(crate::pass_settings::PRECISION).and_then(AttrValue::as_str);
        matches!(precision, Some("bfloat16" | "bf16"))
    }

    /// The size of the output tile of Winograd's convolution algorithm: `2x2`, `4x4` or `off` (setting `winograd`).
    pub fn winograd(&self) -> &str {
        self.config.get(crate::pass_settings::WINOGRAD).and_then(AttrValue::as_str).unwrap_or("2x2")
    }

    /// The value of a numeric setting; `None` if it is absent or negative.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.config.get(key)?.as_int().and_then(|n| u64::try_from(n).ok())
    }

    /// Fails if the compilation has been cancelled.
    ///
    /// # Errors
    /// [`PassError::Cancelled`] if cancellation was requested.
    pub fn check_cancelled(&self) -> Result<(), PassError> {
        if self.cancel.is_cancelled() { Err(PassError::Cancelled) } else { Ok(()) }
    }
}
