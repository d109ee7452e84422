//! Optimisation remarks for `explain`: which rules were applied, which ones did not apply and why, and what is slow in the
//! generated code.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_ir::Span;

/// What a remark reports: a rewrite, a missed rewrite, or slow code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// A rule has rewritten a part of the program.
    Applied,
    /// A rule handles this kind of computation, but could not rewrite it.
    Missed,
    /// A property of the generated code that costs time.
    Analysis,
}

/// A remark that a pass makes about a part of the program.
#[derive(Clone, Debug)]
pub struct Remark {
    /// What the remark reports.
    pub kind: RemarkKind,
    /// The name of the rule, or of the pass if it has no rules.
    pub rule: Arc<str>,
    /// The function of the module that contains `subject`.
    pub function: Arc<str>,
    /// The operator or variable to which the remark refers.
    pub subject: Arc<str>,
    /// The source location of the subject.
    pub span: Span,
    /// The replacement if a rule was applied, the reason if it was not, or the finding of an analysis.
    pub message: String,
}

/// The remarks of a compilation, in the order of the passes.
#[derive(Debug, Default)]
pub struct Remarks(Mutex<Vec<Remark>>);

impl Remarks {
    /// Adds a remark.
    pub fn add(&self, remark: Remark) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(remark);
    }

    /// All remarks that have been added so far.
    pub fn all(&self) -> Vec<Remark> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
