//! Optimization remarks: what passes did, what they could not do and why, and what they noticed, for `explain`.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_ir::Span;

/// What a remark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// A rule replaced a part of the program.
    Applied,
    /// A rule is meant for a part of the program and did not replace it.
    Missed,
    /// A property of the generated code that costs time.
    Analysis,
}

/// A remark of a pass.
#[derive(Clone, Debug)]
pub struct Remark {
    /// What it says.
    pub kind: RemarkKind,
    /// The rule; the pass if it has no rules.
    pub rule: Arc<str>,
    /// The function of the module that it is about.
    pub function: Arc<str>,
    /// The operator or variable that it is about.
    pub subject: Arc<str>,
    /// Where the subject is in the source of the program.
    pub span: Span,
    /// The replacement, the reason or the finding.
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

    /// All remarks so far.
    pub fn all(&self) -> Vec<Remark> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
