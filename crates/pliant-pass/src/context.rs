//! [`PassContext`]: what the passes of one run share.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use pliant_ir::{AttrValue, OpRegistry};

use crate::cancel::CancelToken;
use crate::error::PassError;
use crate::evaluate::Evaluate;
use crate::instrument::Instrument;
use crate::remark::Remarks;

/// Options, instruments and cancellation of one run of passes.
#[derive(Clone)]
pub struct PassContext {
    /// Passes of a higher level are left out; 2 unless said otherwise.
    pub opt_level: u8,
    /// Passes to run whatever their level.
    pub required: IndexSet<String>,
    /// Passes to leave out; a pass that is required as well runs.
    pub disabled: IndexSet<String>,
    /// Settings that single passes look up by name.
    pub config: IndexMap<Arc<str>, AttrValue>,
    /// What watches the passes, in order.
    pub instruments: Vec<Arc<dyn Instrument>>,
    /// Where modules are written that a failing pass of the user's received; the directory for temporary files
    /// where none is given.
    pub dump_dir: Option<PathBuf>,
    /// Runs what passes want to know the result of; they have the reference interpreter without.
    pub evaluator: Option<Arc<dyn Evaluate>>,
    /// Stops the run from outside.
    pub cancel: CancelToken,
    /// What passes did, missed and noticed.
    pub remarks: Arc<Remarks>,
    /// The operator library.
    pub ops: &'static dyn OpRegistry,
}

impl PassContext {
    /// A context of level 2 with that operator library and no instruments.
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

    /// The same with one more instrument.
    pub fn with_instrument(mut self, instrument: Arc<dyn Instrument>) -> Self {
        self.instruments.push(instrument);
        self
    }

    /// The same with that token.
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Whether a pass of that name and level runs here.
    pub fn enables(&self, name: &str, opt_level: u8) -> bool {
        self.required.contains(name)
            || (opt_level <= self.opt_level && !self.disabled.contains(name))
    }

    /// A setting read as a bool.
    pub fn flag(&self, key: &str, default: bool) -> bool {
        self.config.get(key).and_then(AttrValue::as_bool).unwrap_or(default)
    }

    /// Whether passes may leave work to the library's kernels.
    pub fn kernels(&self) -> bool {
        self.flag(crate::config::KERNELS, true)
    }

    /// Whether constant right operands of products of float32 are rounded to bfloat16.
    pub fn rounds_to_bfloat16(&self) -> bool {
        let precision = self.config.get(crate::config::PRECISION).and_then(AttrValue::as_str);
        matches!(precision, Some("bfloat16" | "bf16"))
    }

    /// The tiles of Winograd's algorithm: `2x2`, `4x4` or `off`.
    pub fn winograd(&self) -> &str {
        self.config.get(crate::config::WINOGRAD).and_then(AttrValue::as_str).unwrap_or("2x2")
    }

    /// A setting read as a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.config.get(key)?.as_int().and_then(|n| u64::try_from(n).ok())
    }

    /// # Errors
    /// [`PassError::Cancelled`] when someone asked to stop.
    pub fn check_cancelled(&self) -> Result<(), PassError> {
        if self.cancel.is_cancelled() { Err(PassError::Cancelled) } else { Ok(()) }
    }
}
