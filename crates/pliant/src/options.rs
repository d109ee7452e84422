//! The options of a compilation: [`CompileOptions`], [`Target`], [`ExecMode`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use pliant_diag::SourceMap;
use pliant_ir::AttrValue;
use pliant_pass::{CancelToken, Instrument, ModulePass, Sequential};

use crate::error::Error;

/// The target of code generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The host CPU, with the embedded Cranelift code generator.
    #[default]
    Cranelift,
}

impl Target {
    /// The target with that name, and a note if it substitutes another one.
    ///
    /// # Errors
    /// A user error if the target does not exist.
    pub fn parse(name: &str) -> Result<(Target, Option<String>), Error> {
        let kind = name.split_whitespace().next().unwrap_or("");
        match kind {
            "" | "cranelift" | "cpu" | "native" => Ok((Target::Cranelift, None)),
            "llvm" | "c" => Ok((
                Target::Cranelift,
                Some(format!(
                    "target '{kind}' is not built in; cranelift generates the code instead"
                )),
            )),
            _ => Err(Error::option(
                format!("there is no target '{name}'"),
                "use \"cranelift\" (this machine's processor); \"llvm\" is accepted as a synonym",
            )),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Target::Cranelift => "cranelift",
        }
    }
}

/// How graph functions are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecMode {
    /// As bytecode of the virtual machine.
    #[default]
    Bytecode,
    /// As native code: the same instructions, with native control flow.
    Compiled,
}

impl ExecMode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ExecMode::Bytecode => "bytecode",
            ExecMode::Compiled => "compiled",
        }
    }

    /// The mode with that name.
    ///
    /// # Errors
    /// A user error if the mode does not exist.
    pub fn parse(name: &str) -> Result<ExecMode, Error> {
        match name {
            "" | "bytecode" => Ok(ExecMode::Bytecode),
            "compiled" => Ok(ExecMode::Compiled),
            _ => Err(Error::option(
                format!("there is no exec_mode '{name}'"),
                "use \"bytecode\" or \"compiled\"",
            )),
        }
    }
}

/// The graph passes of a compilation.
#[derive(Clone)]
pub enum Pipeline {
    /// A sequence by name (see [`pliant_opt::pipelines`]).
    Named(String),
    /// The user's own passes. The minimum build follows, which skips what is already lowered;
    /// include [`pipeline`](crate::pipeline)`("default")` for the optimisations of a normal build.
    Passes(Arc<dyn ModulePass>),
}

impl From<&str> for Pipeline {
    fn from(name: &str) -> Self {
        Pipeline::Named(name.into())
    }
}

impl From<String> for Pipeline {
    fn from(name: String) -> Self {
        Pipeline::Named(name)
    }
}

impl From<Sequential> for Pipeline {
    fn from(passes: Sequential) -> Self {
        Pipeline::Passes(Arc::new(passes))
    }
}

impl From<Box<dyn ModulePass>> for Pipeline {
    fn from(pass: Box<dyn ModulePass>) -> Self {
        Pipeline::Passes(pass.into())
    }
}

/// How to compile a module.
#[derive(Clone, Default)]
pub struct CompileOptions {
    /// The target of code generation.
    pub target: Target,
    /// How graph functions are executed.
    pub exec_mode: ExecMode,
    /// The graph passes; `None` for the pipeline `default`.
    pub pipeline: Option<Pipeline>,
    /// The number of threads that compile, and that run parallel loops of VMs created from the
    /// result; default: all.
    pub threads: Option<usize>,
    /// The optimisation level; default: 2.
    pub opt_level: Option<u8>,
    /// Passes to skip.
    pub disabled_passes: Vec<String>,
    /// Passes to run at any level.
    pub required_passes: Vec<String>,
    /// Settings of single passes, by name.
    pub config: IndexMap<Arc<str>, AttrValue>,
    /// The instruments, which observe the passes.
    pub instruments: Vec<Arc<dyn Instrument>>,
    /// Whether to verify the module after every pass; default: in debug builds.
    pub verify: Option<bool>,
    /// The directory to which every stage is written; overrides `PLIANT_DUMP_IR`.
    pub dump_dir: Option<PathBuf>,
    /// The time limit of the compilation, checked between passes and functions.
    pub time: Option<Duration>,
    /// Cancels the compilation from outside.
    pub cancel: CancelToken,
    /// The sources that the module was parsed from, such as [`Script::sources`](crate::Script).
    /// With them, errors at run time contain source lines. The program keeps file names and line
    /// numbers, not the text.
    pub sources: Option<Arc<SourceMap>>,
}

impl CompileOptions {
    /// Options for a target and a mode given by name. The notes state what was substituted.
    ///
    /// # Errors
    /// A user error if a name does not exist.
    pub fn from_names(
        target: &str,
        exec_mode: &str,
    ) -> Result<(CompileOptions, Vec<String>), Error> {
        let (target, note) = Target::parse(target)?;
        let exec_mode = ExecMode::parse(exec_mode)?;
        let options = CompileOptions { target, exec_mode, ..CompileOptions::default() };
        Ok((options, note.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_and_mode_names_are_parsed_or_rejected_with_help() {
        let (options, notes) = CompileOptions::from_names("llvm -mcpu=native", "compiled").unwrap();
        assert_eq!(options.target, Target::Cranelift);
        assert_eq!(options.exec_mode, ExecMode::Compiled);
        assert_eq!(notes.len(), 1);
        assert!(CompileOptions::from_names("cranelift", "bytecode").unwrap().1.is_empty());
        let error = Target::parse("cuda").unwrap_err().to_string();
        assert!(
            error.contains("there is no target 'cuda'") && error.contains("cranelift"),
            "{error}"
        );
        assert!(ExecMode::parse("fast").is_err());
    }
}
