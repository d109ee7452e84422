//! The options of a compilation: [`CompileOptions`], [`Target`], [`ExecMode`]. `Target::resolve` decides which code generator
//! compiles a program first, from the target, the build and the environment variable `PLIANT_TIER`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use pliant_diag::SourceMap;
use pliant_ir::AttrValue;
use pliant_pass::{CancelToken, Instrument, ModulePass, Sequential};

use crate::error::Error;

/// The code generator that compiles loop functions. All of them generate code for the host CPU.
///
/// # Examples
/// ```
/// use pliant::Target;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (target, note) = Target::parse("cranelift")?;
/// assert_eq!(target, Target::Cranelift);
/// assert!(note.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The code generator that the environment variable [`TIER_VARIABLE`] names. If it is not set: Cranelift. In builds with
    /// LLVM, LLVM then compiles the loop functions in the background and replaces their code while the program runs.
    #[default]
    Auto,
    /// Cranelift, which compiles fast. Its vectors have 128 bits. Only in builds with the feature `cranelift`.
    #[cfg(feature = "cranelift")]
    Cranelift,
    /// LLVM, which uses the widest vectors of the CPU. Only in builds with the feature `llvm`.
    #[cfg(feature = "llvm")]
    Llvm,
}

/// The environment variable that selects the code generator of [`Target::Auto`]: `cranelift`, `llvm` or `auto`.
///
/// # Examples
/// ```
/// use std::process::Command;
///
/// use pliant::{TIER_VARIABLE, Target};
///
/// // Another program, whose target `auto` means the first code generator of this build.
/// let mut command = Command::new("inference-server");
/// command.env(TIER_VARIABLE, Target::built_in()[0].name());
/// assert!(command.get_envs().any(|(name, _)| name == "PLIANT_TIER"));
/// ```
pub const TIER_VARIABLE: &str = "PLIANT_TIER";

impl Target {
    /// Parses the name of a target. Also returns a note if the name is accepted but another target
    /// is used instead, such as Cranelift for `llvm` in builds without LLVM.
    ///
    /// # Errors
    /// A user error if the target does not exist.
    pub fn parse(name: &str) -> Result<(Target, Option<String>), Error> {
        let kind = name.split_whitespace().next().unwrap_or("");
        match kind {
            "" | "auto" | "cpu" | "native" => Ok((Target::Auto, None)),
            #[cfg(feature = "cranelift")]
            "cranelift" => Ok((Target::Cranelift, None)),
            #[cfg(feature = "llvm")]
            "llvm" => Ok((Target::Llvm, None)),
            #[cfg(not(feature = "llvm"))]
            "llvm" => Ok((
                Target::fastest_compiler(),
                Some(
                    "target 'llvm' is not built in; cranelift generates the code instead (`make llvm` builds Pliant with LLVM)"
                        .into(),
                ),
            )),
            "c" => Ok((
                Target::Auto,
                Some("there is no target 'c'; a just-in-time compiler generates the code instead".into()),
            )),
            _ => Err(Error::option(
                format!("there is no target '{name}'"),
                "use \"auto\", \"cranelift\" or \"llvm\"; all of them generate code for this machine's processor",
            )),
        }
    }

    /// The code generators of this build.
    pub fn built_in() -> Vec<Target> {
        vec![
            #[cfg(feature = "cranelift")]
            Target::Cranelift,
            #[cfg(feature = "llvm")]
            Target::Llvm,
        ]
    }

    /// The name of the target, which [`parse`](Self::parse) accepts.
    pub fn name(self) -> &'static str {
        match self {
            Target::Auto => "auto",
            #[cfg(feature = "cranelift")]
            Target::Cranelift => "cranelift",
            #[cfg(feature = "llvm")]
            Target::Llvm => "llvm",
        }
    }

    /// Returns the code generator that compiles a program before it runs.
    ///
    /// # Errors
    /// The errors of [`resolve`](Self::resolve).
    pub(crate) fn first_tier(self) -> Result<Target, Error> {
        self.resolve().map(|target| match target {
            Target::Auto => Target::fastest_compiler(),
            other => other,
        })
    }

    /// Returns the code generator of this build that compiles fastest: Cranelift if it is built in, otherwise LLVM.
    pub(crate) fn fastest_compiler() -> Target {
        #[cfg(feature = "cranelift")]
        return Target::Cranelift;
        #[cfg(not(feature = "cranelift"))]
        return Target::Llvm;
    }

    /// Returns the target that [`TIER_VARIABLE`] names instead of [`Target::Auto`], and every other target unchanged.
    ///
    /// # Errors
    /// [`TIER_VARIABLE`] does not name a code generator of this build.
    pub(crate) fn resolve(self) -> Result<Target, Error> {
        if self != Target::Auto {
            return Ok(self);
        }
        let tier = std::env::var(TIER_VARIABLE).unwrap_or_default();
        let tier = tier.trim();
        let targets = [Target::Auto].into_iter().chain(Target::built_in());
        match targets.into_iter().find(|t| tier == t.name() || tier.is_empty()) {
            Some(target) => Ok(target),
            None => Err(Error::option(
                format!("{TIER_VARIABLE} is '{tier}', which is not a code generator of this build"),
                if cfg!(feature = "llvm") {
                    "set it to \"cranelift\", \"llvm\" or \"auto\""
                } else {
                    "set it to \"cranelift\"; `make llvm` builds Pliant with LLVM"
                },
            )),
        }
    }
}

/// How the VM executes graph functions.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, ExecMode, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let exec_mode = ExecMode::parse("compiled")?;
/// let program = compile(module, &CompileOptions { exec_mode, ..CompileOptions::default() })?;
/// assert!(program.vm()?.is_native());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecMode {
    /// The VM interprets bytecode.
    #[default]
    Bytecode,
    /// The bytecode is compiled to native code: the same instructions with native control flow.
    Compiled,
}

impl ExecMode {
    /// The name of the execution mode, which [`parse`](Self::parse) accepts.
    pub fn name(self) -> &'static str {
        match self {
            ExecMode::Bytecode => "bytecode",
            ExecMode::Compiled => "compiled",
        }
    }

    /// Parses the name of an execution mode.
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

/// The graph passes that a compilation runs.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Pipeline, Sequential, compile, find_pass, pipeline};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let passes = vec![find_pass("EliminateCommonSubexpr")?, Box::new(pipeline("default")?)];
/// for pipeline in [Pipeline::from("default"), Sequential::new("mine", passes).into()] {
///     let options = CompileOptions { pipeline: Some(pipeline), ..CompileOptions::default() };
///     assert_eq!(compile(module.clone(), &options)?.signatures().len(), 1);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub enum Pipeline {
    /// A predefined pipeline, by name (see [`pliant_opt::pipelines`]).
    Named(String),
    /// Passes of the user. The lowering passes that every build needs run afterwards, and skip code
    /// that is already lowered. For the optimizations of a normal build, the user's passes must
    /// include [`pipeline`](crate::pipeline)`("default")`.
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

/// The options of a compilation.
///
/// # Examples
/// ```
/// use pliant::{CancelToken, CompileOptions, ErrorKind, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let options = CompileOptions {
///     threads: Some(1),
///     cancel: CancelToken::new(),
///     ..CompileOptions::default()
/// };
/// assert!(compile(module.clone(), &options).is_ok());
/// // Another thread can cancel the compilation.
/// options.cancel.cancel();
/// let error = compile(module, &options).err().expect("it is cancelled");
/// assert_eq!(error.kind(), ErrorKind::Interrupted);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct CompileOptions {
    /// The target of code generation.
    pub target: Target,
    /// How the VM executes graph functions.
    pub exec_mode: ExecMode,
    /// The graph passes to run; `None` for the pipeline `default`.
    pub pipeline: Option<Pipeline>,
    /// The number of threads that compile the module, and that run the parallel loops of VMs
    /// created from the result. Default: all CPUs.
    pub threads: Option<usize>,
    /// The optimization level, from 0 to 3; default: 2.
    pub opt_level: Option<u8>,
    /// Names of passes to skip.
    pub disabled_passes: Vec<String>,
    /// Names of passes to run at any optimization level.
    pub required_passes: Vec<String>,
    /// Settings of individual passes, by the name of the setting.
    pub config: IndexMap<Arc<str>, AttrValue>,
    /// Instruments that observe the passes, for example to time them.
    pub instruments: Vec<Arc<dyn Instrument>>,
    /// Whether to verify the module after every pass; default: in debug builds.
    pub verify: Option<bool>,
    /// The directory into which the text of every stage is written; overrides `PLIANT_DUMP_IR`.
    pub dump_dir: Option<PathBuf>,
    /// The time limit of the compilation, checked between passes and functions.
    pub time: Option<Duration>,
    /// A token through which another thread can cancel the compilation.
    pub cancel: CancelToken,
    /// The sources that the module was parsed from, such as [`Script::sources`](crate::Script).
    /// With them, errors at run time contain source lines. The program keeps file names and line
    /// numbers, not the text.
    pub sources: Option<Arc<SourceMap>>,
}

impl CompileOptions {
    /// Creates options for a target and an execution mode given by name. The returned notes state
    /// which names were replaced by others.
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
        assert_eq!(
            options.target.name(),
            if cfg!(feature = "llvm") { "llvm" } else { "cranelift" }
        );
        assert_eq!(options.exec_mode, ExecMode::Compiled);
        assert_eq!(notes.len(), usize::from(!cfg!(feature = "llvm")));
        assert!(CompileOptions::from_names("cranelift", "bytecode").unwrap().1.is_empty());
        let error = Target::parse("cuda").unwrap_err().to_string();
        assert!(
            error.contains("there is no target 'cuda'") && error.contains("cranelift"),
            "{error}"
        );
        assert!(ExecMode::parse("fast").is_err());
    }
}
