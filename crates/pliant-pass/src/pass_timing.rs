//! [`Timing`]: an instrument that measures the run time of passes. Passes that run inside other passes form a tree.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pliant_ir::IRModule;
use rustc_hash::FxHashMap;

use crate::pass::PassInfo;
use crate::pass_context::PassContext;
use crate::pass_error::PassError;
use crate::pass_instruments::Instrument;

/// The measured run time of one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingEntry {
    /// The name of the pass.
    pub name: String,
    /// The number of passes that enclose this one.
    pub depth: usize,
    /// The time from the start of the pass to its end.
    pub duration: Duration,
}

/// An instrument that measures the run time of every pass. Passes that run inside another pass on the same thread are its
/// children.
#[derive(Default)]
pub struct Timing(Mutex<State>);

#[derive(Default)]
struct State {
    /// The measurements in the order in which the passes started, each with the thread that ran the pass.
    entries: Vec<(ThreadId, TimingEntry)>,
    /// The running passes of each thread, outermost first, each as (index into `entries`, start time).
    running: FxHashMap<ThreadId, Vec<(usize, Instant)>>,
}

impl Timing {
    /// Creates an instrument without measurements.
    pub fn new() -> Self {
        Self::default()
    }

    /// Discards all measurements.
    pub fn reset(&self) {
        *self.state() = State::default();
    }

    /// Returns the measurements grouped by thread, in the order in which the passes started. The children of a pass follow it,
    /// with a depth that is greater by 1.
    pub fn entries(&self) -> Vec<TimingEntry> {
        let state = self.state();
        let mut threads: Vec<ThreadId> = Vec::new();
        for (thread, _) in &state.entries {
            if !threads.contains(thread) {
                threads.push(*thread);
            }
        }
        let of = |id: ThreadId| state.entries.iter().filter(move |(t, _)| *t == id);
        threads.into_iter().flat_map(of).map(|(_, entry)| entry.clone()).collect()
    }

    /// Formats the measurements as an indented table, with the time of each pass including and excluding nested passes.
    pub fn render(&self) -> String {
        render(&self.entries())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the duration of the innermost running pass of this thread.
    fn stop(&self) {
        let mut state = self.state();
        let state = &mut *state;
        // After a reset during a pass, the entry of this pass does not exist.
        let last = state.running.get_mut(&thread::current().id()).and_then(Vec::pop);
        if let Some((index, start)) = last {
            state.entries[index].1.duration = start.elapsed();
        }
    }
}

/// Formats measurements as an indented table, with the time of each pass including and excluding nested passes.
pub fn render(entries: &[TimingEntry]) -> String {
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    let mut out = String::new();
    for (i, e) in entries.iter().enumerate() {
        let inside = entries[i + 1..].iter().take_while(|inner| inner.depth > e.depth);
        let children: Vec<_> = inside.filter(|inner| inner.depth == e.depth + 1).collect();
        let own = e.duration.saturating_sub(children.iter().map(|c| c.duration).sum());
        let name = format!("{}{}", "  ".repeat(e.depth), e.name);
        out.push_str(&format!("{:>10.3} ms  {name}", ms(e.duration)));
        if !children.is_empty() {
            out.push_str(&format!(" ({:.3} ms itself)", ms(own)));
        }
        out.push('\n');
    }
    out
}

impl Instrument for Timing {
    fn before(&self, pass: &PassInfo<'_>, _: &IRModule, _: &PassContext) -> Result<(), PassError> {
        let mut state = self.state();
        let state = &mut *state;
        let thread = thread::current().id();
        let running = state.running.entry(thread).or_default();
        let entry =
            TimingEntry { name: pass.name.into(), depth: running.len(), duration: Duration::ZERO };
        running.push((state.entries.len(), Instant::now()));
        state.entries.push((thread, entry));
        Ok(())
    }

    fn after(&self, _: &PassInfo<'_>, _: &IRModule, _: &PassContext) -> Result<(), PassError> {
        self.stop();
        Ok(())
    }

    fn failed(&self, _: &PassInfo<'_>) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_contains_total_times_and_times_without_nested_passes() {
        let entry = |name: &str, depth, ms| TimingEntry {
            name: name.into(),
            depth,
            duration: Duration::from_millis(ms),
        };
        let text = render(&[entry("all", 0, 10), entry("a", 1, 3), entry("b", 1, 4)]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(lines, ["10.000 ms  all (3.000 ms itself)", "3.000 ms    a", "4.000 ms    b"]);
    }
}
