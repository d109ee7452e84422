//! [`check`]: reports everything that prevents the compilation of a model.

use std::fmt;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::graph_checker;
use crate::graph_import::{ImportOptions, Importer, operator_name};
use crate::import_error::{Problem, ProblemKind};
use crate::model_file::Model;
use crate::model_reducer;
use crate::operator_schemas;
use crate::proto::{GraphProto, ModelProto};

/// Maximum number of nodes that the text of a finding lists.
const MAX_LISTED_NODES: usize = 8;

/// The result of [`check`]: facts about a model, and the problems that prevent its compilation.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name and version of the exporter, as the file states them.
    pub producer: String,
    /// The version of ONNX's own opset that the model imports.
    pub opset: Option<i64>,
    /// The number of nodes of the main graph and all subgraphs.
    pub nodes: usize,
    /// The number of occurrences of each operator, in the order of the first occurrences.
    pub operators: IndexMap<String, usize>,
    /// The problems that prevent compilation; empty if there are none.
    pub findings: Vec<Finding>,
    /// Problems that do not prevent the compilation.
    pub warnings: Vec<Problem>,
    /// The checked model, if there are findings.
    model: Option<ModelProto>,
}

/// The findings, by kind, operator, message and help.
type Findings = IndexMap<(ProblemKind, String, String, Option<String>), Finding>;

/// A problem that prevents compilation, and all nodes that have it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The operator, with its domain unless that is ONNX's own; empty if the problem concerns the file or the graph.
    pub operator: String,
    /// The description of the problem.
    pub message: String,
    /// How to fix the problem.
    pub help: Option<String>,
    /// The nodes as `op_type 'name'`; empty if the problem concerns the file or the graph.
    pub nodes: Vec<String>,
    /// A model that contains only the first node in `nodes`, if the model format can express such a model.
    pub(crate) node_model: Option<ModelProto>,
}

/// Checks that a model is well-formed, and that every node can be converted. Nodes downstream of a failed node are checked as far
/// as the file declares their input types.
///
/// # Examples
/// ```
/// use pliant_onnx::{ImportOptions, Limits, Model, check};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const RELU: &[u8] = b"\x08\x08\x3a\x25\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu\x5a\x10\x0a\x01x\x12\
/// #     \x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n\x62\x03\x0a\x01y\x42\x02\x10\x12";
/// // `RELU` contains a model with the node y = Relu(x), where x has the shape [n].
/// let model = Model::from_bytes(RELU, Limits::default())?;
/// let report = check(&model, &ImportOptions::default());
/// assert!(report.is_ok());
/// assert_eq!((report.nodes, report.operators["Relu"]), (1, 1));
/// # Ok(())
/// # }
/// ```
pub fn check(model: &Model, options: &ImportOptions) -> Report {
    let mut report = Report {
        producer: model.producer(),
        opset: model.opset(),
        nodes: 0,
        operators: IndexMap::new(),
        findings: Vec::new(),
        warnings: operator_schemas::old_opset_note(model).into_iter().collect(),
        model: None,
    };
    let checked = graph_checker::check(&model.proto, &model.limits, options.strict);
    report.warnings.extend(checked.tolerated);
    let mut findings = Findings::new();
    for problem in checked.problems {
        add_problem(&mut findings, problem, None);
    }
    if let Some(graph) = &model.proto.graph {
        report.count_operators(graph);
        if checked.within_limits {
            report.warnings.extend(conversion_problems(model, graph, options, &mut findings));
        }
    }
    report.findings = findings.into_values().collect();
    report.model = (!report.is_ok()).then(|| model.proto.clone());
    report
}

/// Converts the model, and adds each problem that occurs to `findings`. Returns the warnings.
fn conversion_problems<'m>(
    model: &'m Model,
    graph: &'m GraphProto,
    options: &ImportOptions,
    findings: &mut Findings,
) -> Vec<Problem> {
    let mut importer = Importer::recording(model);
    let (_, warnings) = importer.convert_model(graph, options);
    let (problems, recorder) = importer.into_problems_and_failures();
    let mut failures = recorder.map(|r| r.failures).unwrap_or_default().into_iter().peekable();
    for problem in problems {
        let node_model = failures.next_if(|f| f.problem == problem).and_then(|f| f.node_model);
        add_problem(findings, problem, node_model);
    }
    warnings
}

fn add_problem(findings: &mut Findings, problem: Problem, node_model: Option<ModelProto>) {
    let Problem { kind, node, operator, message, help, .. } = problem;
    let key = (kind, operator.clone(), message.clone(), help.clone());
    let finding = findings.entry(key).or_insert_with(|| {
        let nodes = Vec::new();
        Finding { kind, operator, message, help, nodes, node_model: None }
    });
    if !node.is_empty() {
        finding.nodes.push(node);
    }
    finding.node_model = finding.node_model.take().or(node_model);
}

impl Report {
    /// Whether the model can be compiled.
    pub fn is_ok(&self) -> bool {
        self.findings.is_empty()
    }

    /// Writes a small model file for each finding that a reduced model can reproduce, as
    /// `1-Operator.onnx`, and returns the paths. Problems outside of the model file, such as
    /// invalid external data, cannot be reproduced.
    ///
    /// # Errors
    /// If the directory or a file cannot be written.
    pub fn write_reduced(&self, dir: &Path) -> std::io::Result<Vec<PathBuf>> {
        match &self.model {
            Some(model) => model_reducer::write(&self.findings, model, dir),
            None => Ok(Vec::new()),
        }
    }

    fn count_operators(&mut self, graph: &GraphProto) {
        let mut pending = vec![graph];
        while let Some(graph) = pending.pop() {
            for node in &graph.node {
                self.nodes += 1;
                *self.operators.entry(operator_name(node)).or_default() += 1;
                pending.extend(node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)));
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (nodes, operators) = (many(self.nodes, "node"), many(self.operators.len(), "operator"));
        write!(f, "{nodes} of {operators}")?;
        if let Some(opset) = self.opset {
            write!(f, ", opset {opset}")?;
        }
        if !self.producer.is_empty() {
            write!(f, ", made by {}", self.producer)?;
        }
        writeln!(f)?;
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        if self.is_ok() {
            return writeln!(f, "ok: the whole model can be compiled");
        }
        let n = self.findings.len();
        writeln!(f, "{n} problem{}:", if n == 1 { "" } else { "s" })?;
        self.findings.iter().try_for_each(|finding| write!(f, "{finding}"))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ProblemKind::Invalid => "wrong",
            ProblemKind::Unsupported => "not supported",
            ProblemKind::Internal => "a bug",
        };
        match self.operator.as_str() {
            "" => writeln!(f, "- {kind}: {}", self.message)?,
            operator => {
                let n = self.nodes.len();
                let nodes = if n == 1 { "node" } else { "nodes" };
                writeln!(f, "- {kind}: {operator} ({n} {nodes}): {}", self.message)?;
            }
        }
        if let Some(help) = &self.help {
            writeln!(f, "    help: {help}")?;
        }
        for node in self.nodes.iter().take(MAX_LISTED_NODES) {
            writeln!(f, "    at {node}")?;
        }
        match self.nodes.len().saturating_sub(MAX_LISTED_NODES) {
            0 => Ok(()),
            more => writeln!(f, "    and {more} more"),
        }
    }
}
