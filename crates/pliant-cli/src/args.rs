//! The subcommands and options of the command `pliant`, as `clap` parses them.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pliant::RunOptions;

/// Compile tensor programs with symbolic shapes once, and run them at every shape.
///
/// A MODEL is an ONNX file (.onnx), a script (.py, or - for standard input), or a program that `pliant compile` wrote
/// (anything else).
#[derive(Parser)]
#[command(
    name = "pliant",
    version,
    max_term_width = 100,
    after_help = "Examples:
  pliant check model.onnx                                   report all problems at once
  pliant run model.onnx --input x=x.npy --save y.npy
  pliant bench model.onnx --shape batch=1..32,seq=16..512 --plot times.png
  pliant compile model.onnx -o model.plx && pliant run model.plx --shape batch=4,seq=100
  pliant diff model.onnx --against onnxruntime --shape batch=2

Exit codes: 0 success, 1 an error in a model, an input or a file, or a comparison that differs, 2 an error
in the command line, 70 a bug of the compiler, 124 a run exceeded --time-limit, 130 interrupted."
)]
pub struct Cli {
    /// The subcommand to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `pliant`.
#[derive(Subcommand)]
pub enum Command {
    /// Report everything that prevents models and scripts from being compiled.
    Check(CheckArgs),
    /// Compile a model to an executable file.
    Compile(CompileArgs),
    /// Run a model.
    Run(RunArgs),
    /// Time a model over a range of shapes.
    Bench(BenchArgs),
    /// Print which calls of a model run in kernels, which stay loops and why, and which loops are slow.
    Explain(ExplainArgs),
    /// Print a stage of the compilation of a model.
    Dump(DumpArgs),
    /// Run single passes on a model and print the result.
    Opt(OptArgs),
    /// Compare an ONNX model with another runtime and find the first node that differs.
    Diff(DiffArgs),
    /// Show the time of a run by function.
    Profile(ProfileArgs),
    /// Write an HTML page that shows the graph, every stage, the rules and the times of a model.
    Explore(ExploreArgs),
    /// Measure the peak rates and bandwidths of this machine, and the latencies of its worker threads.
    Hwbench(HwbenchArgs),
}

/// Options of the compilation.
#[derive(Args)]
pub struct BuildArgs {
    /// The code generator: auto, cranelift, llvm.
    #[arg(long, default_value = "auto")]
    pub target: String,
    /// How graph functions are executed.
    #[arg(long, default_value = "bytecode")]
    pub exec_mode: String,
    /// The pipeline of graph passes: default, zero or minimum (`pliant opt --list` describes them).
    #[arg(long, default_value = "default")]
    pub pipeline: String,
    /// The number of threads for compilation and runs.
    #[arg(long, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
    /// Write every stage of the compilation into this directory.
    #[arg(long, value_name = "DIR")]
    pub dump_ir: Option<PathBuf>,
    /// Allow the import of an ONNX model to specialize declared symbols to a fixed size; otherwise
    /// this is an error.
    #[arg(long)]
    pub allow_specialization: bool,
    /// Print the time of each phase.
    #[arg(long)]
    pub timing: bool,
}

/// Options of a run: the function and its inputs.
#[derive(Args)]
pub struct FeedArgs {
    /// The function to run.
    #[arg(long, default_value = "main")]
    pub func: String,
    /// An input from a NumPy file: the name of the input and the file. May be repeated; repeating a name adds the next tensor of a
    /// sequence.
    #[arg(long = "input", value_name = "NAME=FILE.npy")]
    pub inputs: Vec<String>,
    /// The values of symbols, for generated inputs: `batch=4,seq=128`.
    #[arg(long = "shape", value_name = "SYMBOL=N,...")]
    pub shapes: Vec<String>,
    /// The values of the inputs that no --input specifies.
    #[arg(long, value_enum, default_value_t = Fill::Random)]
    pub fill: Fill,
    /// The time limit of each run of the model; exceeding it gives exit code 124. It does not apply
    /// to the compilation.
    #[arg(long, value_name = "SECONDS", value_parser = time_limit, allow_negative_numbers = true)]
    pub time_limit: Option<Duration>,
}

impl FeedArgs {
    /// The run options that the command line selects: the time limit.
    pub fn run_options(&self) -> RunOptions {
        RunOptions { time_limit: self.time_limit, ..RunOptions::default() }
    }
}

/// The values of generated inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fill {
    /// Pseudo-random numbers in [0, 1), the same in every run; for integers, 0 or 1.
    Random,
    /// All elements are 0.
    Zeros,
    /// All elements are 1.
    Ones,
}

/// Arguments of `pliant explain`.
#[derive(Args)]
#[command(after_help = "Example:
  pliant explain model.onnx")]
pub struct ExplainArgs {
    /// The model: an ONNX file or a script.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant opt`.
#[derive(Args)]
#[command(after_help = "Examples:
  pliant opt --passes=LegalizeOps,ToNonDataflow,CallTIRRewrite model.py
  pliant opt --passes=FuseOps model.onnx -o fused.py
  pliant opt --list
  pliant opt --list-rules")]
pub struct OptArgs {
    /// The model: an ONNX file or a script.
    #[arg(required_unless_present_any = ["list", "list_rules"], value_name = "MODEL")]
    pub file: Option<PathBuf>,
    /// Passes or pipelines, in order, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub passes: Vec<String>,
    /// List all passes and pipelines.
    #[arg(long)]
    pub list: bool,
    /// List the rules that offload operators to kernels.
    #[arg(long)]
    pub list_rules: bool,
    /// Write the result to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the module after every pass, to standard error.
    #[arg(long)]
    pub print_after_all: bool,
    /// Do not verify the module after every pass.
    #[arg(long)]
    pub no_verify: bool,
    /// Print the time of each pass.
    #[arg(long)]
    pub timing: bool,
}

/// Arguments of `pliant check`.
#[derive(Args)]
#[command(
    after_help = "For an ONNX file the report lists unsupported operators, attributes and element types with
their nodes, and the rules of ONNX that the file breaks. For a script it lists errors with their lines.

Examples:
  pliant check model.onnx
  pliant check model.onnx --reduce problems/     write a minimal model for each problem
  pliant check *.onnx kernels.py"
)]
pub struct CheckArgs {
    /// The models.
    #[arg(required = true, value_name = "MODEL")]
    pub files: Vec<PathBuf>,
    /// For each problem of an ONNX file, write a minimal model that shows it into this directory.
    #[arg(long, value_name = "DIR")]
    pub reduce: Option<PathBuf>,
    /// Allow the import of an ONNX model to specialize declared symbols to a fixed size, and report
    /// this only as a warning; otherwise this is a problem.
    #[arg(long)]
    pub allow_specialization: bool,
    /// Report every violation of the ONNX specification as a problem. By default, violations that ONNX Runtime tolerates are
    /// warnings.
    #[arg(long)]
    pub strict: bool,
}

/// What `pliant compile` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum EmitKind {
    /// A program without machine code.
    Program,
    /// An object file.
    Obj,
    /// A static library.
    Static,
    /// A shared library.
    Shared,
    /// An executable.
    Exe,
}

/// Arguments of `pliant compile`.
#[derive(Args)]
#[command(
    after_help = "The program keeps every symbolic dimension, so it runs at all shapes. With --shape, a symbol with one size
becomes that constant; a symbol with a range is checked at run time.

With --emit, the file contains machine code and needs no compiler to run: an object file (obj), a static or shared library with a
C interface (static, shared), or an executable that reads NumPy files (exe). Beside objects and libraries, two headers are
written: pliant.h, and the header of the program, such as model.h for libmodel.so.

Examples:
  pliant compile model.onnx -o model.plx --timing
  pliant compile model.onnx -o model.plx --shape batch=1..32,seq=128
  pliant compile model.onnx -o libmodel.so --emit shared --target-cpu x86-64-v3"
)]
pub struct CompileArgs {
    /// The model: an ONNX file, a script or a compiled program.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// What the file contains: a program without machine code, which Pliant runs on any machine, or machine code.
    #[arg(long, value_enum, default_value_t = EmitKind::Program)]
    pub emit: EmitKind,
    /// The CPU for which machine code is generated, such as `x86-64-v3`. Default: the host CPU.
    #[arg(long, value_name = "CPU")]
    pub target_cpu: Option<String>,
    /// The target triple of an object file, such as `aarch64-unknown-linux-gnu`. Default: the host.
    #[arg(long, value_name = "TRIPLE")]
    pub target_triple: Option<String>,
    /// The known values or ranges of symbols of an ONNX model.
    #[arg(long = "shape", value_name = "SYMBOL=N,SYMBOL=A..B,...")]
    pub shapes: Vec<String>,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant run`.
#[derive(Args)]
#[command(after_help = "Examples:
  pliant run model.onnx --input ids=ids.npy --save out.npy
  pliant run model.plx --shape batch=2,seq=16 --repeat 100
  pliant run model.onnx --shape batch=64 --time-limit 10")]
pub struct RunArgs {
    /// The model: an ONNX file, a script or a compiled program.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The inputs of the run.
    #[command(flatten)]
    pub feed: FeedArgs,
    /// Save results to NumPy files. `--save FILE.npy` saves the result, or each result of a tuple to its own file with its index
    /// before the extension (`out.0.npy`). `--save NAME=FILE.npy` saves the output with this name. May be repeated.
    #[arg(long, value_name = "[NAME=]FILE.npy")]
    pub save: Vec<String>,
    /// Run this many times and print the times.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub repeat: Option<NonZeroU32>,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant bench`.
#[derive(Args)]
#[command(
    after_help = "A range A..B contains A, 2 * A, 4 * A and so on, and B; A..B:STEP contains A, A + STEP and so on up to B.
A symbol that occurs several times takes all its values. All combinations are run with one compilation.

Examples:
  pliant bench model.onnx --shape batch=1..32,seq=16..512
  pliant bench model.onnx --shape batch=1 --shape seq=64..1024:64 --csv t.csv --json t.json --plot t.png
  pliant bench model.onnx --shape batch=1..8 --streams 4 --against onnxruntime,openvino"
)]
pub struct BenchArgs {
    /// The model: an ONNX file, a script or a compiled program.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The inputs; symbols may have ranges here: `seq=1..512`, `seq=64..1024:64`.
    #[command(flatten)]
    pub feed: FeedArgs,
    /// Seconds to measure at each shape.
    #[arg(
        long,
        default_value_t = 0.3,
        value_name = "SECONDS",
        value_parser = seconds,
        allow_negative_numbers = true
    )]
    pub time: f64,
    /// Seconds of runs before the measurement at each shape, which are not counted. There is at least one such run.
    #[arg(
        long,
        default_value_t = 0.1,
        value_name = "SECONDS",
        value_parser = seconds,
        allow_negative_numbers = true
    )]
    pub warm_up: f64,
    /// The number of threads that run the model at the same time.
    #[arg(long, default_value = "1", value_name = "N", allow_negative_numbers = true)]
    pub streams: NonZeroUsize,
    /// Other runtimes that run the same ONNX model with the same inputs, in a Python interpreter.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,...")]
    pub against: Vec<BenchPeer>,
    /// The Python interpreter that runs the other runtimes.
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Write the measurements as CSV.
    #[arg(long, value_name = "FILE.csv")]
    pub csv: Option<PathBuf>,
    /// Write the measurements as JSON.
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
    /// Plot the medians against the sizes, with a band from the shortest time to the 90th percentile.
    #[arg(long, value_name = "FILE.png", value_parser = png_path)]
    pub plot: Option<PathBuf>,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// A runtime with which `pliant bench` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchPeer {
    /// ONNX Runtime, in Python.
    Onnxruntime,
    /// OpenVINO, in Python.
    Openvino,
}

impl BenchPeer {
    /// The name of the runtime and of its Python package.
    pub fn name(self) -> &'static str {
        match self {
            BenchPeer::Onnxruntime => "onnxruntime",
            BenchPeer::Openvino => "openvino",
        }
    }
}

/// Parses a tolerance, which must not be negative.
fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(t) if t.is_finite() && t >= 0.0 => Ok(t),
        _ => Err("the tolerance must be a finite, non-negative number".into()),
    }
}

/// Parses the path of a plot, which must be a PNG file.
fn png_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
        true => Ok(path),
        false => {
            Err("the plot is written as a PNG file, so the file name must end with .png".into())
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s.is_finite() && (0.0..=86_400.0).contains(&s) => Ok(s),
        _ => Err("the measuring time must be a number of seconds from 0 to 86400".into()),
    }
}

fn time_limit(text: &str) -> Result<Duration, String> {
    let seconds =
        text.parse().map_err(|_| "the time limit must be a number of seconds".to_string())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "the time limit must be a finite, non-negative number of seconds".to_string())
}

/// Arguments of `pliant dump`.
#[derive(Args)]
#[command(after_help = "Examples:
  pliant dump model.onnx --stage input --no-constants     the model as it was imported
  pliant dump model.onnx --stage LegalizeOps
  pliant opt --list                           the names of the passes")]
pub struct DumpArgs {
    /// The model: an ONNX file or a script.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The stage: `input`, the name of a pass of the build (the module after it), `loops` (lowered
    /// loop functions) or `bytecode`.
    #[arg(long, default_value = "bytecode")]
    pub stage: String,
    /// Omit the weights; the printed text can then not be parsed again.
    #[arg(long)]
    pub no_constants: bool,
}

/// The other runtime ("peer") with whose results `pliant diff` compares Pliant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// ONNX Runtime, in Python.
    Onnxruntime,
    /// The reference evaluator of the package `onnx`, in Python.
    Reference,
}

/// Arguments of `pliant diff`.
#[derive(Args)]
#[command(
    after_help = "The peer runs in a Python interpreter in which it is installed: --python, $PLIANT_PYTHON or python3. If an
output differs, the results of all nodes are compared, and the first node that differs is reported.

Examples:
  pliant diff model.onnx --against onnxruntime --shape batch=2,seq=16
  pliant diff model.onnx --against reference --input x=x.npy --rtol 1e-5"
)]
pub struct DiffArgs {
    /// The ONNX model.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The peer: the runtime to compare with.
    #[arg(long, value_enum, default_value_t = Peer::Onnxruntime)]
    pub against: Peer,
    /// The inputs of the run.
    #[command(flatten)]
    pub feed: FeedArgs,
    /// Tolerance relative to the peer's values.
    #[arg(long, default_value_t = 1e-4, value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: f64,
    /// Absolute tolerance of the comparison.
    #[arg(long, default_value_t = 1e-5, value_parser = tolerance, allow_negative_numbers = true)]
    pub atol: f64,
    /// The Python interpreter that runs the peer.
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant profile`.
#[derive(Args)]
#[command(after_help = "Example: pliant profile model.onnx --shape batch=1,seq=128 --top 10")]
pub struct ProfileArgs {
    /// The model: an ONNX file, a script or a compiled program.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The inputs of the run.
    #[command(flatten)]
    pub feed: FeedArgs,
    /// Number of measured runs, after one warm-up run.
    #[arg(long, default_value = "10", value_name = "N", allow_negative_numbers = true)]
    pub repeat: NonZeroU32,
    /// Number of functions to show.
    #[arg(long, default_value = "20", value_name = "N", allow_negative_numbers = true)]
    pub top: NonZeroUsize,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant explore`.
#[derive(Args)]
#[command(
    after_help = "The page loads nothing from a network. With --input or --shape, or if no input has symbols, it also shows the
times and the memory of a run.

Example: pliant explore model.onnx -o page.html --shape batch=1,seq=128"
)]
pub struct ExploreArgs {
    /// The model: an ONNX file or a script.
    #[arg(value_name = "MODEL")]
    pub file: PathBuf,
    /// The page to write.
    #[arg(short, long, value_name = "FILE.html")]
    pub output: PathBuf,
    /// The inputs of the profiled run.
    #[command(flatten)]
    pub feed: FeedArgs,
    /// Number of measured runs, after one warm-up run.
    #[arg(long, default_value = "10", value_name = "N", allow_negative_numbers = true)]
    pub repeat: NonZeroU32,
    /// Options of the compilation.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// Arguments of `pliant hwbench`.
#[derive(Args)]
#[command(after_help = "Other programs that run at the same time lower the measured rates.

Example: pliant hwbench --threads 2")]
pub struct HwbenchArgs {
    /// The maximum number of threads to measure with; default: all that this process may use.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,
}
