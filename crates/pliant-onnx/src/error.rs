//! [`ImportError`]: why a model was not taken, all of it at once.

use std::fmt;

/// Problems that the text of an error tells.
const SHOWN: usize = 50;

/// Whose matter a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProblemKind {
    /// The file breaks a rule of ONNX.
    Invalid,
    /// The file is fine; this is not supported yet.
    Unsupported,
    /// A bug of the importer.
    Internal,
}

/// One thing that keeps a model, or a node of it, from being imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whose matter it is.
    pub kind: ProblemKind,
    /// The node, as `op_type 'name'`; empty when it is the file or the graph.
    pub node: String,
    /// The operator with its domain where that is not ONNX's own; empty when there is no node.
    pub operator: String,
    /// What is wrong.
    pub message: String,
    /// What would help.
    pub help: Option<String>,
    /// Whether it is only that something is not known before the program runs.
    pub at_run: bool,
    /// Whether an attribute is wrong, whatever the node's inputs are.
    pub of_attribute: bool,
}

impl Problem {
    /// A broken rule, of no node.
    pub fn invalid(message: impl Into<String>) -> Self {
        Problem {
            kind: ProblemKind::Invalid,
            node: String::new(),
            operator: String::new(),
            message: message.into(),
            help: None,
            at_run: false,
            of_attribute: false,
        }
    }

    /// An attribute that is wrong by itself.
    pub fn attribute(message: impl Into<String>) -> Self {
        Problem { of_attribute: true, ..Problem::invalid(message) }
    }

    /// Something not supported, of no node.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Problem { kind: ProblemKind::Unsupported, ..Problem::invalid(message) }
    }

    /// Something that a conversion needs and only a run knows: `what` is the subject of the sentence.
    pub fn known_at_run(what: &str) -> Self {
        let message = format!("{what} is known only at run time");
        Problem { at_run: true, ..Problem::unsupported(message) }
    }

    /// A bug of the importer, in the part of that name.
    pub fn internal(part: &str, message: impl fmt::Display) -> Self {
        let message = format!("internal error in {part}: {message} (this is a bug in Pliant)");
        Problem { kind: ProblemKind::Internal, ..Problem::invalid(message) }
    }

    /// The same with advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, of this node, unless it names one already.
    #[must_use]
    pub fn at(mut self, node: &str, operator: &str) -> Self {
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

/// Everything that keeps a model from being imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportError {
    /// The problems, in the order of the nodes. There is at least one.
    pub problems: Vec<Problem>,
}

impl ImportError {
    /// Whether the file itself is at fault.
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
        for problem in self.problems.iter().take(SHOWN) {
            writeln!(f, "  - {problem}")?;
        }
        match n.saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more; `pliant check` groups them"),
        }
    }
}

impl std::error::Error for ImportError {}
