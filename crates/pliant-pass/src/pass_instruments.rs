//! Instruments observe passes: they dump, print or verify the module before or after each pass.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_ir::IRModule;

use crate::pass::PassInfo;
use crate::pass_context::PassContext;
use crate::pass_error::PassError;

/// An observer that is called before and after every pass. A sequence of passes is itself a pass: it is observed before its first
/// pass and after its last one.
///
/// # Example
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use pliant_ir::IRModule;
/// use pliant_pass::{Instrument, ModulePass, PassContext, PassError, PassInfo, Sequential};
///
/// /// Lists the passes that run.
/// #[derive(Default)]
/// struct Names(Mutex<Vec<String>>);
///
/// impl Instrument for Names {
///     fn before(&self, pass: &PassInfo<'_>, _: &IRModule, _: &PassContext) -> Result<(), PassError> {
///         self.0.lock().unwrap().push(pass.name.to_string());
///         Ok(())
///     }
/// }
///
/// let names = Arc::new(Names::default());
/// let mut context = PassContext::new(pliant_ops::registry());
/// context.instruments.push(names.clone());
/// Sequential::new("nothing", Vec::new()).apply(IRModule::default(), &context).unwrap();
/// assert_eq!(*names.0.lock().unwrap(), ["nothing"]);
/// ```
pub trait Instrument: Send + Sync {
    /// Decides whether a pass runs. A pass is skipped if any instrument returns false. This method is called before
    /// [`before`](Self::before), and it is not called for passes in [`PassContext::required`].
    ///
    /// # Errors
    /// If this method returns an error, no further pass runs.
    fn should_run(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<bool, PassError> {
        let _ = (pass, module, ctx);
        Ok(true)
    }

    /// Runs before a pass, with the module that the pass will transform.
    ///
    /// # Errors
    /// If this method returns an error, no further pass runs.
    fn before(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        let _ = (pass, module, ctx);
        Ok(())
    }

    /// Runs after a pass, with the resulting module.
    ///
    /// # Errors
    /// If this method returns an error, no further pass runs.
    fn after(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        let _ = (pass, module, ctx);
        Ok(())
    }

    /// Runs instead of [`after`](Self::after) if the pass or one of its instruments failed.
    fn failed(&self, pass: &PassInfo<'_>) {
        let _ = pass;
    }
}

/// Writes the module after every pass to a numbered file `NN-pass.py` in a directory, and the input of the first pass to
/// `00-input.py`.
pub struct DumpIr {
    dir: PathBuf,
    count: AtomicUsize,
}

impl DumpIr {
    /// Creates an instrument that writes to `dir`. The directory is created when the first file is written.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        DumpIr { dir: dir.into(), count: AtomicUsize::new(0) }
    }

    /// Writes the script of a compilation stage. The instrument calls this after each pass, and the compiler calls it directly for
    /// stages that are not passes.
    ///
    /// # Errors
    /// A user error if the file cannot be written.
    pub fn write(&self, stage: &str, text: &str) -> Result<(), PassError> {
        self.write_as(stage, "py", text)
    }

    /// Writes the text of a stage that is not a script, with the given file extension.
    ///
    /// # Errors
    /// A user error if the file cannot be written.
    pub fn write_as(&self, stage: &str, extension: &str, text: &str) -> Result<(), PassError> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{number:02}-{}.{extension}", file_name(stage)));
        std::fs::create_dir_all(&self.dir).and_then(|()| std::fs::write(&path, text)).map_err(|e| {
            PassError::user(format!("cannot write the IR dump {}: {e}", path.display()))
        })
    }
}

impl Instrument for DumpIr {
    fn before(
        &self,
        _: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        if self.count.load(Ordering::Relaxed) == 0 {
            self.write("input", &crate::module_text::module_text(module, ctx.ops))?;
        }
        Ok(())
    }

    fn after(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        self.write(pass.name, &crate::module_text::module_text(module, ctx.ops))
    }
}

/// Converts the name of a pass or stage to a part of a file name.
pub(crate) fn file_name(stage: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    stage.chars().map(safe).take(80).collect()
}

/// Prints the module to standard error before or after passes.
pub struct PrintIr {
    /// Whether the module is printed before passes.
    pub before: bool,
    /// Whether the module is printed after passes.
    pub after: bool,
    /// The names of the passes for which the module is printed; all passes if empty.
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
        let text =
            format!("# {when} {pass}\n{}\n", crate::module_text::module_text(module, ctx.ops));
        std::io::stderr().write_all(text.as_bytes()).map_err(|e| {
            PassError::user(format!("cannot print the IR to the standard error stream: {e}"))
        })
    }
}

impl Instrument for PrintIr {
    fn before(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        if self.before { self.print("before", pass.name, module, ctx) } else { Ok(()) }
    }

    fn after(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        if self.after { self.print("after", pass.name, module, ctx) } else { Ok(()) }
    }
}

/// Verifies the module after every pass except user-defined ones. A violation is an internal error of the pass. The results of
/// user-defined passes are verified when they run, and violations are errors of their authors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verify;

impl Instrument for Verify {
    fn after(
        &self,
        pass: &PassInfo<'_>,
        module: &IRModule,
        ctx: &PassContext,
    ) -> Result<(), PassError> {
        if pass.user_defined {
            return Ok(());
        }
        let problems = crate::module_text::verify(module, ctx.ops);
        if problems.is_empty() {
            return Ok(());
        }
        Err(PassError::Internal {
            pass: pass.name.into(),
            message: format!(
                "the module that the pass returned is not well-formed: {}",
                problems.join("; ")
            ),
            dump: crate::module_dump_files::write(pass.name, "after", module, ctx),
        })
    }
}
