//! [`Places`]: where bindings come from: a text of the model's nodes, into which spans point.

use pliant_diag::{FileId, Span};
use rustc_hash::FxHashMap;

use crate::node::label;
use crate::proto::NodeProto;

/// The nodes so far. A node that is read again, in the body of a loop or a function, is the same place.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// What spans are of; without it there are none.
    pub file: Option<FileId>,
    /// One node a line.
    pub text: String,
    /// The node under way.
    pub under_way: Span,
    known: FxHashMap<String, Span>,
}

impl Places {
    /// What is made for the inputs, before any node: messages about those name the input.
    pub fn inputs(&mut self) -> Span {
        let Some(file) = self.file else { return Span::NONE };
        if self.text.is_empty() {
            // The first line names nothing.
            self.text.push('\n');
        }
        Span { file, start: 0, end: 0 }
    }

    pub fn of(&mut self, node: &NodeProto) -> Span {
        let Some(file) = self.file else { return Span::NONE };
        let name = label(node).replace(|c: char| c.is_control(), " ");
        if let Some(&span) = self.known.get(&name) {
            return span;
        }
        let start = self.text.len();
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(start + name.len())) else {
            return Span::NONE;
        };
        self.text.push_str(&name);
        self.text.push('\n');
        let span = Span { file, start, end };
        self.known.insert(name, span);
        span
    }
}
