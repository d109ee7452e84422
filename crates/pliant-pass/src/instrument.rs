//! Instruments: what watches passes run.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pliant_ir::IRModule;

use crate::context::PassContext;
use crate::error::PassError;

/// Watches every pass of a run. Sequences of passes count as passes, so calls nest.
pub trait Instrument: Send + Sync {
    /// Called before a pass with what it receives.
    ///
    /// # Errors
    /// Any error stops the run.
    fn before(&self, pass: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        let _ = (pass, module, ctx);
        Ok(())
    }

    /// Called after a pass with what it made.
    ///
    /// # Errors
    /// Any error stops the run.
    fn after(&self, pass: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        let _ = (pass, module, ctx);
        Ok(())
    }

    /// Called instead of [`after`](Self::after) when a pass failed.
    fn failed(&self, pass: &str) {
        let _ = pass;
    }
}

/// How long one pass took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimingEntry {
    /// Its name.
    pub name: String,
    /// How many sequences it ran inside.
    pub depth: usize,
    /// From its start to its end.
    pub duration: Duration,
}

/// Times every pass.
#[derive(Default)]
pub struct Timing(Mutex<TimingState>);

#[derive(Default)]
struct TimingState {
    entries: Vec<TimingEntry>,
    open: Vec<(usize, Instant)>,
}

impl Timing {
    /// A stopwatch that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The passes seen so far in the order of their starts; the passes of a sequence follow it, one level deeper.
    pub fn entries(&self) -> Vec<TimingEntry> {
        self.state().entries.clone()
    }

    /// The entries as an indented table.
    pub fn render(&self) -> String {
        let mut out = String::new();
        for e in self.entries() {
            let ms = e.duration.as_secs_f64() * 1e3;
            out.push_str(&format!("{:>10.3} ms  {}{}\n", ms, "  ".repeat(e.depth), e.name));
        }
        out
    }

    fn state(&self) -> std::sync::MutexGuard<'_, TimingState> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn close(&self) {
        let mut state = self.state();
        if let Some((index, start)) = state.open.pop() {
            state.entries[index].duration = start.elapsed();
        }
    }
}

impl Instrument for Timing {
    fn before(&self, pass: &str, _: &IRModule, _: &PassContext) -> Result<(), PassError> {
        let mut state = self.state();
        let (depth, index) = (state.open.len(), state.entries.len());
        state.entries.push(TimingEntry { name: pass.into(), depth, duration: Duration::ZERO });
        state.open.push((index, Instant::now()));
        Ok(())
    }

    fn after(&self, _: &str, _: &IRModule, _: &PassContext) -> Result<(), PassError> {
        self.close();
        Ok(())
    }

    fn failed(&self, _: &str) {
        self.close();
    }
}

/// Writes the module after every pass as `NN-pass.py` into a directory, and the first input as `00-input.py`.
pub struct DumpIr {
    dir: PathBuf,
    count: AtomicUsize,
}

impl DumpIr {
    /// Dumps into `dir`, which is made when the first stage is written.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        DumpIr { dir: dir.into(), count: AtomicUsize::new(0) }
    }

    /// Writes one stage; passes do it themselves through the instrument, stages that are no passes call it.
    ///
    /// # Errors
    /// A user error when the file cannot be written.
    pub fn write(&self, stage: &str, text: &str) -> Result<(), PassError> {
        self.write_as(stage, "py", text)
    }

    /// Writes a stage that is no script, with the extension of its kind.
    ///
    /// # Errors
    /// A user error when the file cannot be written.
    pub fn write_as(&self, stage: &str, extension: &str, text: &str) -> Result<(), PassError> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let safe: String = stage
            .chars()
            .map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' })
            .collect();
        let path = self.dir.join(format!("{number:02}-{safe}.{extension}"));
        std::fs::create_dir_all(&self.dir).and_then(|()| std::fs::write(&path, text)).map_err(|e| {
            PassError::user(format!("cannot write the IR dump {}: {e}", path.display()))
        })
    }
}

impl Instrument for DumpIr {
    fn before(&self, _: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        if self.count.load(Ordering::Relaxed) == 0 {
            self.write("input", &crate::text::module_text(module, ctx.ops))?;
        }
        Ok(())
    }

    fn after(&self, pass: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        self.write(pass, &crate::text::module_text(module, ctx.ops))
    }
}

/// Prints the module to standard error before or after passes.
pub struct PrintIr {
    /// Print before each pass.
    pub before: bool,
    /// Print after each pass.
    pub after: bool,
    /// Only these passes; all when empty.
    pub only: Vec<String>,
}

impl PrintIr {
    fn print(
        &self,
        when: &str,
        pass: &str,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        if !self.only.is_empty() && !self.only.iter().any(|p| p == pass) {
            return Ok(());
        }
        let text = format!("# {when} {pass}\n{}\n", crate::text::module_text(module, ctx.ops));
        std::io::stderr()
            .write_all(text.as_bytes())
            .map_err(|e| PassError::user(format!("cannot print the IR: {e}")))
    }
}

impl Instrument for PrintIr {
    fn before(&self, pass: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        if self.before { self.print("before", pass, module, ctx) } else { Ok(()) }
    }

    fn after(&self, pass: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        if self.after { self.print("after", pass, module, ctx) } else { Ok(()) }
    }
}

/// Verifies the module after every pass; a failure is a bug of that pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verify;

impl Instrument for Verify {
    fn after(&self, pass: &str, module: &IRModule, ctx: &PassContext) -> Result<(), PassError> {
        let problems = crate::text::verify(module, ctx.ops);
        if problems.is_empty() {
            return Ok(());
        }
        Err(PassError::Internal {
            pass: pass.into(),
            message: format!("the result is not well-formed: {}", problems.join("; ")),
            ir: Some(crate::text::module_text(module, ctx.ops)),
        })
    }
}
