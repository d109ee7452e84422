//! [`ImportError`]: all problems that prevent the import of a model.

use std::fmt;

/// Maximum number of problems that the text of an error lists.
const MAX_SHOWN: usize = 50;

/// The kind of a problem: what is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// The file violates the ONNX specification.
    Invalid,
    /// The file is valid but uses an unsupported feature.
    Unsupported,
    /// A bug in the importer.
    Internal,
}

/// A problem of the model or of one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The node that has the problem, as `op_type 'name'`; empty if the problem concerns the whole file or graph.
    pub node: String,
    /// The operator of the node that has the problem, prefixed with its domain unless that is ONNX's own; empty if there is no
    /// node.
    pub operator: String,
    /// A description of what is wrong.
    pub message: String,
    /// How to fix the problem.
    pub help: Option<String>,
    /// Whether the problem is only that a property of the operands is unknown before run time.
    pub needs_run_time: bool,
    /// Whether an attribute alone causes the problem. If so, the problem occurs for all inputs.
    pub in_attribute: bool,
}

impl Problem {
    /// Creates a problem for a violation of the ONNX specification, without a node.
    pub fn invalid(message: impl Into<String>) -> Self {
        Problem {
            kind: ProblemKind::Invalid,
            node: String::new(),
            operator: String::new(),
            message: message.into(),
            help: None,
            needs_run_time: false,
            in_attribute: false,
        }
    }

    /// Creates a problem with an attribute, which does not depend on the inputs of the node.
    pub fn attribute(message: impl Into<String>) -> Self {
        Problem { in_attribute: true, ..Problem::invalid(message) }
    }

    /// Creates a problem for an unsupported feature, without a node.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Problem { kind: ProblemKind::Unsupported, ..Problem::invalid(message) }
    }

    /// Creates the problem that a property of the operands is known only at run time, although the
    /// converter needs it during the import. `what` describes the property and is the subject of
    /// the message.
    pub fn known_only_at_run_time(what: &str) -> Self {
        let message =
            format!("{what} is known only at run time, but the conversion of the node needs it");
        Problem { needs_run_time: true, ..Problem::unsupported(message) }
    }

    /// Creates a problem for a bug in the component `part` of the importer.
    pub fn internal(part: &str, message: impl fmt::Display) -> Self {
        let message = format!("internal error in {part}: {message} (this is a bug in Pliant)");
        Problem { kind: ProblemKind::Internal, ..Problem::invalid(message) }
    }

    /// Adds a help text, which says how to fix the problem.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// States in which node the problem occurs, and the node's operator. Has no effect if the problem already names a node.
    #[must_use]
    pub fn at_node(mut self, node: &str, operator: &str) -> Self {
        if self.node.is_empty() {
            self.node = node.into();
            self.operator = operator.into();
        }
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.node.is_empty() {
            write!(f, "{}: ", self.node)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// All problems that prevent a model from being imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportError {
    /// The problems in the order of the nodes. There is at least one.
    pub problems: Vec<Problem>,
}

impl ImportError {
    /// Whether one of the problems is that the file violates the ONNX specification.
    pub fn is_invalid(&self) -> bool {
        self.problems.iter().any(|p| p.kind == ProblemKind::Invalid)
    }
}

impl From<Problem> for ImportError {
    fn from(problem: Problem) -> Self {
        ImportError { problems: vec![problem] }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.problems.len();
        writeln!(f, "the model cannot be imported: {n} problem{}", if n == 1 { "" } else { "s" })?;
        for problem in self.problems.iter().take(MAX_SHOWN) {
            writeln!(f, "  - {problem}")?;
        }
        match n.saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more; `pliant check` groups them"),
        }
    }
}

impl std::error::Error for ImportError {}
