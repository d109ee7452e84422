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

/// The source files that spans of one compilation point into.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).expect("fewer than 2^32 source files"));
        self.files.push(file);
        id
    }

    /// The file, if the id is of this map.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// Line (from 1, in the user's file) and column (from 1) of the start of a span.
    pub fn line_column(&self, span: Span) -> Option<(u32, u32)> {
        let file = self.get(span.file)?;
        let before = file.text.get(..span.start as usize)?;
        let line = before.matches('\n').count() as u32;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32;
        Some((file.first_line + line, column + file.dedent + 1))
    }
}
