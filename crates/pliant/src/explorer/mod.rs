//! [`Exploration`]: compiles a module, records everything that a reader of the compilation needs, and writes it as one HTML page.
//!
//! The page has the graph of the module, the text of every stage, the remarks of the passes, and the profile of a run if there is
//! one. It loads nothing from a network.

mod graph_nodes;
mod stage_recorder;

use std::sync::Arc;

use pliant_diag::SourceMap;
use pliant_ir::IRModule;
use pliant_pass::RemarkKind;
use pliant_vm::{RunOptions, Value, VmError};
use serde_json::{Value as Json, json};

use self::stage_recorder::StageRecorder;
use crate::compile::compile;
use crate::compile_options::CompileOptions;
use crate::compiled_module::CompiledModule;
use crate::error::Error;
use crate::function_profile::{Profile, machine_peak_flops, profile};
use crate::hardware;

/// The page without data. [`Exploration::page`] replaces the placeholders.
const TEMPLATE: &str = include_str!("page.html");

/// A compilation with its stages, and optionally a profile.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Exploration};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let page = Exploration::compile(module, &CompileOptions::default())?.page("double");
/// assert!(page.starts_with("<!doctype html>"));
/// assert!(page.contains("LegalizeOps"));
/// # Ok(())
/// # }
/// ```
pub struct Exploration {
    compiled: CompiledModule,
    stages: Arc<StageRecorder>,
    graph: Json,
    sources: Option<Arc<SourceMap>>,
    profile: Option<Profile>,
}

impl Exploration {
    /// Compiles a module and records the text of every stage.
    ///
    /// # Errors
    /// The errors of [`compile`].
    pub fn compile(module: IRModule, options: &CompileOptions) -> Result<Exploration, Error> {
        let stages = Arc::new(StageRecorder::default());
        let sources = options.sources.clone();
        let graph = graph_nodes::functions(&module, sources.as_deref());
        let mut options = options.clone();
        options.instruments.push(stages.clone());
        let compiled = compile(module, &options)?;
        stages.add_text("Bytecode", compiled.executable().as_text());
        Ok(Exploration { compiled, stages, graph, sources, profile: None })
    }

    /// Returns the compiled program.
    pub fn compiled(&self) -> &CompiledModule {
        &self.compiled
    }

    /// Profiles `runs` runs of a function, for the page.
    ///
    /// # Errors
    /// The errors of [`profile`], and `Runtime` if host functions are not registered.
    pub fn profile(
        &mut self,
        function: &str,
        args: &[Value],
        runs: u32,
        options: &RunOptions,
    ) -> Result<(), Error> {
        let vm = self.compiled.vm()?;
        let measured: Result<Profile, VmError> = profile(&vm, function, args, runs, options);
        self.profile = Some(measured?);
        Ok(())
    }

    /// Returns the page. `title` is the name of the model.
    pub fn page(&self, title: &str) -> String {
        let stats = self.compiled.stats();
        let machine = hardware::Machine::host();
        let data = json!({
            "title": title,
            "version": env!("CARGO_PKG_VERSION"),
            "machine": format!("{}, {} cores, {}", machine.name, machine.cores, machine.isa.name()),
            "compileSeconds": stats.total.as_secs_f64(),
            "loopFunctions": stats.kernels,
            "phases": stats.phases.iter().map(|p| json!([p.name, p.duration.as_secs_f64()])).collect::<Vec<_>>(),
            "functions": self.graph,
            "remarks": self.remarks(),
            "stages": self.stages.to_json(),
            "sources": self.source_texts(),
            "profile": self.profile.as_ref().map(profile_json),
        });
        // A script element ends at "</script", whatever the script says.
        let data = data.to_string().replace('<', "\\u003c");
        // A placeholder in the title must not be replaced.
        let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('@', "&#64;");
        TEMPLATE.replace("@TITLE@", &title).replacen("@DATA@", &data, 1)
    }

    /// The remarks of the passes: what was offloaded to kernels, what was not and why, and slow loops.
    fn remarks(&self) -> Json {
        let remarks = &self.compiled.stats().explanation.remarks;
        let remark = |r: &pliant_pass::Remark| {
            let kind = match r.kind {
                RemarkKind::Applied => "applied",
                RemarkKind::Missed => "missed",
                RemarkKind::Analysis => "slow",
            };
            json!({
                "kind": kind,
                "rule": &*r.rule,
                "function": &*r.function,
                "subject": &*r.subject,
                "message": r.message,
                "lines": graph_nodes::location(self.sources.as_deref(), r.span),
            })
        };
        remarks.iter().map(remark).collect()
    }

    /// The texts to which the nodes refer: lines of scripts, or names of ONNX nodes.
    fn source_texts(&self) -> Json {
        let graph = self.graph.to_string();
        let files = self.sources.iter().flat_map(|sources| sources.files());
        let used = files.filter(|file| graph.contains(&json!(&*file.name).to_string()));
        used.map(|f| json!({"name": &*f.name, "first": f.first_line, "text": &*f.text})).collect()
    }
}

fn profile_json(profile: &Profile) -> Json {
    let memory_level = hardware::LEVELS.last().map_or(1 << 28, |level| level.1);
    let bandwidth = hardware::read_bandwidth(memory_level, hardware::default_threads());
    let call = |c: &crate::function_profile::CalleeProfile| {
        json!({
            "name": c.name,
            "calls": c.calls,
            "seconds": c.time.as_secs_f64(),
            "flops": c.flops,
            "bytes": c.bytes,
            "locations": c.locations,
        })
    };
    let event = |e: &crate::call_recorder::CallRecord| {
        json!({
            "name": e.name,
            "start": e.start.as_secs_f64(),
            "seconds": e.time.as_secs_f64(),
            "location": e.location,
            "tensors": e.tensors,
            "memory": e.memory,
        })
    };
    json!({
        "runs": profile.runs,
        "seconds": profile.total.as_secs_f64(),
        "peakFlops": machine_peak_flops(),
        "bandwidth": bandwidth,
        "calls": profile.callees.iter().map(call).collect::<Vec<_>>(),
        "events": profile.events.iter().map(event).collect::<Vec<_>>(),
    })
}
