//! Optimization remarks, which `pliant explain` prints. They report rewrites, kept calls, and slow loops of the generated code.
//!
//! A *kept call* is a call that a rule is meant for but does not replace. Its remark ([`RemarkKind::Missed`]) states the reason.
//! `OffloadKernels` of the crate `pliant-opt` adds the remarks of rules, the crate `pliant` those of slow loops.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_ir::Span;

/// What a remark reports: a rewrite, a call that a rule did not replace, or slow code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// A rule has rewritten a part of the program.
    Applied,
    /// A rule that is meant for this kind of call did not replace the call.
    Missed,
    /// An analysis found a property of the generated code that makes it slow.
    Analysis,
}

/// A remark that a pass makes about a part of the program.
#[derive(Clone, Debug)]
pub struct Remark {
    /// The kind of the remark: a rewrite, a call that a rule did not replace, or slow code.
    pub kind: RemarkKind,
    /// The name of the rule that the remark is about, or of the pass if the pass has no rules.
    pub rule: Arc<str>,
    /// The function of the module that contains `subject`.
    pub function: Arc<str>,
    /// The operator or variable to which the remark refers.
    pub subject: Arc<str>,
    /// The source location of the subject.
    pub span: Span,
    /// The text of the remark: the replacement if a rule was applied, the reason if it was not, or the finding of an analysis.
    pub message: String,
}

/// The list of all remarks of a compilation, in the order in which passes added them.
#[derive(Debug, Default)]
pub struct Remarks(Mutex<Vec<Remark>>);

impl Remarks {
    /// Adds a remark to the end of the list.
    pub fn add(&self, remark: Remark) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(remark);
    }

    /// All remarks that have been added so far.
    pub fn all(&self) -> Vec<Remark> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
