//! Statistics of compilations ([`CompileStats`]) and of models ([`ModelStats`]).

use std::time::Duration;

use pliant_pass::TimingEntry;

use crate::offload_explanation::Explanation;

/// Statistics of one compilation.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, compile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let program = compile(module, &CompileOptions::default())?;
/// let stats = program.stats();
/// assert!(stats.phases.iter().any(|phase| phase.name == "MachineCode"));
/// assert!(stats.render().contains("total"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CompileStats {
    /// The phases of the compilation in order, each followed by its passes.
    pub phases: Vec<TimingEntry>,
    /// The duration of the whole compilation.
    pub total: Duration,
    /// The number of graph functions in the program.
    pub functions: usize,
    /// The number of loop functions that were compiled to machine code. Kernels of the library are not counted, in spite of the
    /// name.
    pub kernels: usize,
    /// Which calls were offloaded to kernels, and which stayed loops and why; empty for a loaded
    /// program.
    pub explanation: Explanation,
}

impl CompileStats {
    /// Formats the phases as an indented table, with the total last.
    pub fn render(&self) -> String {
        let mut out = pliant_pass::pass_timing::render(&self.phases);
        out.push_str(&format!("{:>10.3} ms  total\n", self.total.as_secs_f64() * 1e3));
        out
    }
}

/// Statistics of a model: how many programs were compiled for it, and how often it was run.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, ModelStats, Tensor, Value};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// for n in [1usize, 4] {
///     model.run("main", &[Value::Tensor(Tensor::from_slice(&[n as i64], &vec![1.0f32; n])?)])?;
/// }
/// assert_eq!(model.stats(), ModelStats { compilations: 1, runs: 2 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelStats {
    /// The number of programs that were compiled for the model: 1 for the model itself, which is compiled or loaded once for all
    /// shapes, and those that its runs compiled. A run compiles an operator or ONNX node whose ranks or types are known only at run
    /// time, once for each combination of ranks and data types, and of sizes and values if the operator needs them to be known. The
    /// run reuses a program that another model compiled.
    pub compilations: u64,
    /// How often a function of the model was run.
    pub runs: u64,
}
