//! What a compilation and a model have done so far.

use std::time::Duration;

use pliant_pass::TimingEntry;

use crate::explain::Explanation;

/// The facts of one compilation.
#[derive(Clone, Debug, Default)]
pub struct CompileStats {
    /// The phases in order, passes under the phase they belong to.
    pub phases: Vec<TimingEntry>,
    /// From the call to the result.
    pub total: Duration,
    /// Graph functions in the program.
    pub functions: usize,
    /// Loop functions compiled to machine code.
    pub kernels: usize,
    /// What was offloaded, what was kept and why; empty for a program that was loaded.
    pub explanation: Explanation,
}

impl CompileStats {
    /// The phases as an indented table, the total last.
    pub fn render(&self) -> String {
        let mut out = pliant_pass::timing::render(&self.phases);
        out.push_str(&format!("{:>10.3} ms  total\n", self.total.as_secs_f64() * 1e3));
        out
    }
}

/// What a model has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelStats {
    /// How often it was compiled or loaded: once, whatever the shapes it ran at.
    pub compilations: u64,
    /// How often it ran.
    pub runs: u64,
}
