//! How to compile: [`CompileOptions`], [`Target`], [`ExecMode`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use pliant_diag::SourceMap;
use pliant_ir::AttrValue;
use pliant_pass::{CancelToken, Instrument, ModulePass, Sequential};

use crate::error::Error;

/// What code is generated for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// This machine's processor, through the embedded code generator.
    #[default]
    Cranelift,
}

impl Target {
    /// The target of that name, and a note if it stands in for another.
    ///
    /// # Errors
    /// A user error for a name that is no target.
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
                "use \"cranelift\" (this machine's processor); \"llvm\" is taken to mean the same",
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

    /// The mode of that name.
    ///
    /// # Errors
    /// A user error for a name that is no mode.
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

/// The passes on the graph.
#[derive(Clone)]
pub enum Pipeline {
    /// A sequence by its name (see [`pliant_opt::pipelines`]).
    Named(String),
    /// Passes of one's own. The minimum build follows them, which leaves alone what is lowered already: put
    /// [`pipeline`](crate::pipeline)`("default")` among them for the optimisations that a build makes by itself.
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
    /// What code is generated for.
    pub target: Target,
    /// How graph functions are executed.
    pub exec_mode: ExecMode,
    /// The passes on the graph; `None` for the pipeline `default`.
    pub pipeline: Option<Pipeline>,
    /// Threads that compile, and that run parallel loops of machines made from the result; all by default.
    pub threads: Option<usize>,
    /// The optimisation level; 2 by default.
    pub opt_level: Option<u8>,
    /// Passes to leave out.
    pub disabled_passes: Vec<String>,
    /// Passes to run whatever the level.
    pub required_passes: Vec<String>,
    /// Settings that single passes look up by name.
    pub config: IndexMap<Arc<str>, AttrValue>,
    /// What watches the passes.
    pub instruments: Vec<Arc<dyn Instrument>>,
    /// Verify the module after every pass; on in debug builds.
    pub verify: Option<bool>,
    /// Where to write every stage, over `PLIANT_DUMP_IR`.
    pub dump_dir: Option<PathBuf>,
    /// How long the compilation may take. It is looked at between passes and functions.
    pub time: Option<Duration>,
    /// Stops the compilation from outside.
    pub cancel: CancelToken,
    /// The texts that the module was parsed from, such as [`Script::sources`](crate::Script): errors at run time then say
    /// at which lines they happened. The program keeps the names of the files and the lines, not the texts.
    pub sources: Option<Arc<SourceMap>>,
}

impl CompileOptions {
    /// Options for a target and a mode given by name; the notes say what stands in for what was asked.
    ///
    /// # Errors
    /// A user error for names that do not exist.
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
    fn names_are_understood_or_refused_with_advice() {
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
