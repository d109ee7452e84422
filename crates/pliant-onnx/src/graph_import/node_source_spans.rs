//! [`SourceSpans`]: the source locations of bindings, as spans in a text with one node label per line.

use pliant_diag::{FileId, Span};
use rustc_hash::FxHashMap;

use crate::node::label;
use crate::proto::NodeProto;

/// The text with the labels of the nodes converted so far. A node that is converted repeatedly, in a loop body or a function, keeps
/// its span.
#[derive(Debug, Default)]
pub(super) struct SourceSpans {
    /// The file to which spans refer. If it is `None`, bindings have no source locations.
    pub file: Option<FileId>,
    /// The labels of the nodes, one per line.
    pub text: String,
    /// The span of the label of the node that is being converted.
    pub current: Span,
    spans: FxHashMap<String, Span>,
}

impl SourceSpans {
    /// Creates an empty span for bindings that are created for inputs. Messages about these bindings name the input instead.
    pub fn input_span(&mut self) -> Span {
        let Some(file) = self.file else { return Span::NONE };
        if self.text.is_empty() {
            // The first line is reserved for the empty span.
            self.text.push('\n');
        }
        Span { file, start: 0, end: 0 }
    }

    /// The span of a node's label. The label is appended to the text if the node is new.
    pub fn node_span(&mut self, node: &NodeProto) -> Span {
        let Some(file) = self.file else { return Span::NONE };
        let name = label(node).replace(|c: char| c.is_control(), " ");
        if let Some(&span) = self.spans.get(&name) {
            return span;
        }
        let start = self.text.len();
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(start + name.len())) else {
            return Span::NONE;
        };
        self.text.push_str(&name);
        self.text.push('\n');
        let span = Span { file, start, end };
        self.spans.insert(name, span);
        span
    }
}
