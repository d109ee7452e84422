//! Source locations: [`Span`], and [`SourceMap`] with the files that spans refer to.

use std::sync::Arc;

/// The id of a source file in a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A byte range of a source file. Code that the compiler generates has the location [`Span::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The id of the source file that contains the bytes.
    pub file: FileId,
    /// The offset of the first byte in the file.
    pub start: u32,
    /// The offset after the last byte in the file.
    pub end: u32,
}

impl Span {
    /// The location of code without a source file.
    pub const NONE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    /// Whether the span is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self.file.0 == u32::MAX
    }

    /// The smallest span that covers both spans, which must be in the same file.
    pub fn join(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        if other.is_none() || other.file != self.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Default for Span {
    fn default() -> Self {
        Span::NONE
    }
}

/// A source text. `first_line` and `dedent` locate it in a larger file, for example a decorated function in a script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceFile {
    /// The path of the file, or a name in angle brackets.
    pub name: Arc<str>,
    /// The source text.
    pub text: Arc<str>,
    /// The line number in the user's file at which the text starts; 1 if the text is the whole file.
    pub first_line: u32,
    /// The number of columns of indentation that were removed from every line of the text.
    pub dedent: u32,
}

/// A source file of a [`SourceMap`], with the offsets at which its lines start.
#[derive(Clone, Debug)]
struct Entry {
    file: SourceFile,
    /// The byte offset at which each line of the text starts.
    starts: Arc<[u32]>,
    /// Whether the source is a graph of an imported model. If so, each line of the text is the name of a node.
    graph: bool,
}

impl Entry {
    fn new(file: SourceFile, graph: bool) -> Entry {
        let breaks = file.text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(_, next)| next)).collect();
        Entry { file, starts, graph }
    }
}

/// The source files of one compilation. Clones share the texts.
///
/// # Examples
/// ```
/// use pliant_diag::{SourceFile, SourceMap, Span};
///
/// let mut sources = SourceMap::new();
/// let text = "x = 1\ny = 2\n".into();
/// let file = sources.add(SourceFile { name: "model.py".into(), text, first_line: 1, dedent: 0 });
/// // The variable `y` is at the start of the second line.
/// assert_eq!(sources.line_column(Span { file, start: 6, end: 7 }), Some((2, 1)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<Entry>,
    /// The number of files removed by [`forget_oldest`](SourceMap::forget_oldest).
    forgotten: u32,
}

impl SourceMap {
    /// Creates an empty source map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source file. Returns its id.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        let id = u32::try_from(self.files.len()).ok().and_then(|n| n.checked_add(self.forgotten));
        self.files.push(Entry::new(file, false));
        FileId(id.expect("fewer than 2^32 source files"))
    }

    /// Adds a graph, such as a model file, as a source. [`name_nodes`](Self::name_nodes) sets the names of its nodes.
    pub fn add_graph(&mut self, name: &str) -> FileId {
        let id =
            self.add(SourceFile { name: name.into(), text: "".into(), first_line: 1, dedent: 0 });
        self.name_nodes(id, "");
        id
    }

    /// Sets the names of a graph's nodes, one per line. Spans of the graph are byte ranges of `names`.
    pub fn name_nodes(&mut self, graph: FileId, names: &str) {
        if let Some(entry) = self.index_of(graph).and_then(|i| self.files.get_mut(i)) {
            *entry = Entry::new(SourceFile { text: names.into(), ..entry.file.clone() }, true);
        }
    }

    /// The files in the order in which they were added.
    pub fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().map(|entry| &entry.file)
    }

    /// Removes the oldest `count` files and returns them. Spans in them become invalid.
    pub fn forget_oldest(&mut self, count: usize) -> Vec<SourceFile> {
        let count = count.min(self.files.len());
        self.forgotten += count as u32;
        self.files.drain(..count).map(|entry| entry.file).collect()
    }

    /// The file with the given id; `None` if the map has no such file.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.entry(id).map(|entry| &entry.file)
    }

    fn index_of(&self, id: FileId) -> Option<usize> {
        id.0.checked_sub(self.forgotten).map(|i| i as usize)
    }

    fn entry(&self, id: FileId) -> Option<&Entry> {
        self.files.get(self.index_of(id)?)
    }

    /// The line and the column at which a span starts in the user's file, both counted from 1.
    pub fn line_column(&self, span: Span) -> Option<(u32, u32)> {
        let Entry { file, starts, .. } = self.entry(span.file)?;
        let line = starts.partition_point(|&start| start <= span.start).checked_sub(1)?;
        let before = file.text.get(starts[line] as usize..span.start as usize)?;
        let column = before.chars().count() as u32;
        Some((file.first_line + line as u32, column + file.dedent + 1))
    }

    /// The names of the graph nodes that a span covers: all names if there are one or two nodes, otherwise the first and the last.
    /// `None` if the span is not in a graph.
    pub fn nodes(&self, span: Span) -> Option<String> {
        let entry = self.entry(span.file).filter(|entry| entry.graph)?;
        let (_, first, last) = self.lines(span)?;
        let name = |line: u32| {
            let start = entry.starts.get(line as usize - 1).copied().unwrap_or(u32::MAX);
            let rest = entry.file.text.get(start as usize..).unwrap_or("");
            rest.lines().next().unwrap_or("")
        };
        Some(match (first, last) {
            (first, last) if first == last => name(first).to_owned(),
            (first, last) if first + 1 == last => format!("{} or {}", name(first), name(last)),
            (first, last) => format!("one of the nodes from {} to {}", name(first), name(last)),
        })
    }

    /// The name of the user's file in which a span lies, and the first and last line of the span, counted from 1.
    pub fn lines(&self, span: Span) -> Option<(&Arc<str>, u32, u32)> {
        let (line, _) = self.line_column(span)?;
        let end = span.end.saturating_sub(1).max(span.start);
        let last = self.line_column(Span { start: end, ..span }).map_or(line, |(last, _)| last);
        Some((&self.get(span.file)?.name, line, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_removed_files_have_no_lines() {
        let mut map = SourceMap::new();
        let file = |name: &str| SourceFile {
            name: name.into(),
            text: "a\nb".into(),
            first_line: 1,
            dedent: 0,
        };
        let (a, b) = (map.add(file("a")), map.add(file("b")));
        assert_eq!(map.forget_oldest(1), [file("a")]);
        assert!(map.files().eq([&file("b")]));
        let c = map.add(file("c"));
        assert_eq!((a, b, c), (FileId(0), FileId(1), FileId(2)));
        let line = |file| map.lines(Span { file, start: 2, end: 3 }).map(|l| (&**l.0, l.1));
        assert_eq!((line(a), line(b), line(c)), (None, Some(("b", 2)), Some(("c", 2))));
    }

    #[test]
    fn lines_and_columns_are_those_of_the_users_file() {
        let mut map = SourceMap::new();
        let text = "ab\n\ncäe\n";
        map.add(SourceFile { name: "first".into(), text: "".into(), first_line: 1, dedent: 0 });
        let file = map.add(SourceFile {
            name: "m.py".into(),
            text: text.into(),
            first_line: 7,
            dedent: 4,
        });
        let at = |start| map.line_column(Span { file, start, end: start });
        assert_eq!(at(0), Some((7, 5)));
        assert_eq!(at(2), Some((7, 7)));
        assert_eq!(at(3), Some((8, 5)));
        assert_eq!(at(4), Some((9, 5)));
        // The offset after a two-byte letter is valid; the one inside it is not.
        assert_eq!(at(7), Some((9, 7)));
        assert_eq!(at(6), None);
        assert_eq!(at(9), Some((10, 5)));
        assert_eq!(at(10), None);
        let lines = |start, end| map.lines(Span { file, start, end }).map(|l| (&**l.0, l.1, l.2));
        assert_eq!(lines(4, 5), Some(("m.py", 9, 9)));
        assert_eq!(lines(0, 3), Some(("m.py", 7, 7)));
        assert_eq!(lines(0, 5), Some(("m.py", 7, 9)));
        assert_eq!(map.lines(Span::NONE), None);
        assert_eq!(map.line_column(Span { file: FileId(0), start: 0, end: 0 }), Some((1, 1)));
    }

    #[test]
    fn spans_of_a_graph_are_described_by_node_names() {
        let mut map = SourceMap::new();
        let file = map.add_graph("model.onnx");
        let at = |map: &SourceMap, start, end| map.nodes(Span { file, start, end });
        assert_eq!(at(&map, 0, 7).as_deref(), Some(""));
        map.name_nodes(file, "Add 'a'\nMul 'b'\nSub 'c'\n");
        assert_eq!(at(&map, 8, 15).as_deref(), Some("Mul 'b'"));
        assert_eq!(at(&map, 0, 15).as_deref(), Some("Add 'a' or Mul 'b'"));
        let all = at(&map, 0, 23);
        assert_eq!(all.as_deref(), Some("one of the nodes from Add 'a' to Sub 'c'"));
        assert_eq!(at(&map, 99, 100), None);
        let script = SourceFile { name: "s".into(), text: "x".into(), first_line: 1, dedent: 0 };
        let script = map.add(script);
        assert_eq!(map.nodes(Span { file: script, start: 0, end: 1 }), None);
    }
}
