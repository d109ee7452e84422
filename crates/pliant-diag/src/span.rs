//! Where something was written: [`Span`], and the source files that spans point into.

use std::sync::Arc;

/// A source file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A byte range of a source file. [`Span::NONE`] stands for things that nobody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of something that nobody wrote.
    pub const NONE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

    /// Whether it points nowhere.
    pub fn is_none(self) -> bool {
        self.file.0 == u32::MAX
    }

    /// The smallest span over both; they must be of one file.
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

/// One source text. `first_line` and `first_column` place it in a larger file (a decorated function inside a
/// user's script).
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its path, or a name in angle brackets.
    pub name: Arc<str>,
    /// Its text.
    pub text: Arc<str>,
    /// The number of its first line in the user's file; 1 for a whole file.
    pub first_line: u32,
    /// How many columns of indentation were taken off each line.
    pub dedent: u32,
}

/// The source files that spans of one compilation point into. Cloning shares their texts.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    /// The files, and where the lines of each start.
    files: Vec<(SourceFile, Arc<[u32]>)>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).expect("fewer than 2^32 source files"));
        let breaks = file.text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(_, next)| next)).collect();
        self.files.push((file, starts));
        id
    }

    /// The file, if the id is of this map.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize).map(|(file, _)| file)
    }

    /// Line (from 1, in the user's file) and column (from 1) of the start of a span.
    pub fn line_column(&self, span: Span) -> Option<(u32, u32)> {
        let (file, starts) = self.files.get(span.file.0 as usize)?;
        let line = starts.partition_point(|&start| start <= span.start).checked_sub(1)?;
        let before = file.text.get(starts[line] as usize..span.start as usize)?;
        let column = before.chars().count() as u32;
        Some((file.first_line + line as u32, column + file.dedent + 1))
    }

    /// The name of the file, and the first and the last line (from 1, in the user's file) of a span.
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
    fn lines_and_columns_count_from_the_users_file() {
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
        // After a letter of two bytes; inside it is nowhere.
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
}
