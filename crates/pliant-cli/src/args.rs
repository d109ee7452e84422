//! What the command line looks like.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Compile tensor programs with symbolic shapes once, and run them at every shape.
#[derive(Parser)]
#[command(name = "pliant", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Run single passes on a script and print what they make of it.
    Opt(OptArgs),
    /// Parse and verify scripts.
    Check(CheckArgs),
    /// Compile a script to an executable file.
    Compile(CompileArgs),
    /// Run a function of a script or an executable file.
    Run(RunArgs),
    /// Print a stage of the compilation of a script.
    Dump(DumpArgs),
}

/// How to compile.
#[derive(Args)]
pub struct BuildArgs {
    /// What code is generated for.
    #[arg(long, default_value = "cranelift")]
    pub target: String,
    /// How graph functions are executed.
    #[arg(long, default_value = "bytecode")]
    pub exec_mode: String,
    /// The passes on the graph: default, zero, minimum.
    #[arg(long, default_value = "default")]
    pub pipeline: String,
    /// Threads to compile and run with.
    #[arg(long)]
    pub threads: Option<NonZeroUsize>,
    /// Write every stage of the compilation into this directory.
    #[arg(long, value_name = "DIR")]
    pub dump_ir: Option<PathBuf>,
    /// Print how long each phase took.
    #[arg(long)]
    pub timing: bool,
}

/// Arguments of `pliant opt`.
#[derive(Args)]
#[command(
    after_help = "Example: pliant opt --passes=LegalizeOps,ToNonDataflow,CallTIRRewrite model.py"
)]
pub struct OptArgs {
    /// The script; `-` reads standard input.
    #[arg(required_unless_present = "list")]
    pub file: Option<PathBuf>,
    /// Passes or pipelines, in order, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub passes: Vec<String>,
    /// List all passes and pipelines.
    #[arg(long)]
    pub list: bool,
    /// Write the result there instead of to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the module after every pass, to standard error.
    #[arg(long)]
    pub print_after_all: bool,
    /// Do not verify the module after every pass.
    #[arg(long)]
    pub no_verify: bool,
    /// Print how long each pass took.
    #[arg(long)]
    pub timing: bool,
}

/// Arguments of `pliant check`.
#[derive(Args)]
pub struct CheckArgs {
    /// The scripts.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// Arguments of `pliant compile`.
#[derive(Args)]
pub struct CompileArgs {
    /// The script.
    pub file: PathBuf,
    /// The executable file to write.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// How to compile.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// What inputs that are not given are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fill {
    /// Pseudo-random numbers in [0, 1), the same at every run; integers 0 and 1.
    Random,
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
}

/// Arguments of `pliant run`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pliant run model.py --input ids=ids.npy\n  pliant run model.plx --func main --shape batch=2 --shape seq=16 --repeat 100"
)]
pub struct RunArgs {
    /// A script, or an executable file that `pliant compile` wrote.
    pub file: PathBuf,
    /// The function to run.
    #[arg(long, default_value = "main")]
    pub func: String,
    /// An input from a NumPy file.
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    pub inputs: Vec<String>,
    /// The value of a symbol, for inputs that are not given.
    #[arg(long = "shape", value_name = "SYMBOL=N")]
    pub shapes: Vec<String>,
    /// What inputs that are not given are made of.
    #[arg(long, value_enum, default_value_t = Fill::Random)]
    pub fill: Fill,
    /// Write the result to a NumPy file; results of a tuple get their index before the extension.
    #[arg(long, value_name = "FILE.npy")]
    pub save: Option<PathBuf>,
    /// Run so often and print the times.
    #[arg(long, value_name = "N")]
    pub repeat: Option<NonZeroU32>,
    /// How to compile.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant dump`.
#[derive(Args)]
pub struct DumpArgs {
    /// The script.
    pub file: PathBuf,
    /// The stage: `input`, the name of a pass of the build (the module after it), `loops` (lowered loop functions) or
    /// `bytecode`.
    #[arg(long, default_value = "bytecode")]
    pub stage: String,
}
