//! Renders diagnostics as text: file, line, column, source lines with a caret, and the help text.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source_spans::{FileId, SourceFile, SourceMap, Span};

/// Maximum number of source lines printed for one diagnostic.
const MAX_LINES: usize = 40;

/// Renders a diagnostic with its source lines, with or without colours. The text ends with a newline.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, colour: bool) -> String {
    let title = match &diagnostic.function {
        Some(name) if source_of(diagnostic, sources).is_none() => {
            format!("in function '{name}': {}", diagnostic.message)
        }
        _ => diagnostic.message.clone(),
    };
    let level = match diagnostic.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let mut group: Group<'_> = Group::with_title(level.primary_title(title).id(diagnostic.code));
    for window in windows(diagnostic, sources) {
        let mut snippet =
            Snippet::source(window.text).line_start(window.first_line).path(window.name).fold(true);
        for (range, primary, label) in window.marks {
            let kind = if primary { AnnotationKind::Primary } else { AnnotationKind::Context };
            snippet = snippet.annotation(kind.span(range).label(label));
        }
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.clone()));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.clone()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.decor_style(DecorStyle::Ascii).render(&[group]);
    text.push('\n');
    text
}

/// Renders all diagnostics, separated by blank lines.
pub fn render_all(diagnostics: &[Diagnostic], sources: &SourceMap, colour: bool) -> String {
    let texts: Vec<String> = diagnostics.iter().map(|d| render(d, sources, colour)).collect();
    texts.join("\n")
}

fn source_of<'a>(diagnostic: &Diagnostic, sources: &'a SourceMap) -> Option<&'a SourceFile> {
    sources.get(diagnostic.span.file)
}

/// An excerpt of a source file, with the ranges that a diagnostic marks in it. Each range has a flag for the primary location, and
/// the text beside it.
struct Window {
    name: String,
    first_line: usize,
    text: String,
    marks: Vec<(Range<usize>, bool, Option<String>)>,
}

/// Collects the source excerpts that a diagnostic marks, one per file. The file of the primary
/// location comes first.
fn windows(diagnostic: &Diagnostic, sources: &SourceMap) -> Vec<Window> {
    let mut marks = vec![(diagnostic.span, true, diagnostic.label.clone())];
    marks.extend(diagnostic.labels.iter().map(|l| (l.span, false, Some(l.text.clone()))));
    let mut files: Vec<FileId> = Vec::new();
    for (span, ..) in &marks {
        if !files.contains(&span.file) {
            files.push(span.file);
        }
    }
    files
        .into_iter()
        .filter_map(|id| {
            let file = sources.get(id)?;
            let marks = marks.iter().filter(|m| m.0.file == id);
            Some(window(
                file,
                &marks.map(|m| (clamp(file, m.0), m.1, m.2.clone())).collect::<Vec<_>>(),
            ))
        })
        .collect()
}

/// The byte range of a span in the text of its file, clamped to the text and moved to character boundaries.
fn clamp(file: &SourceFile, span: Span) -> Range<usize> {
    let boundary = |mut i: usize| {
        i = i.min(file.text.len());
        while !file.text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let (start, end) = (boundary(span.start as usize), boundary(span.end as usize));
    start..end.max(start)
}

/// Cuts the lines that contain the marked ranges out of a file. The lines keep their original indentation. Each mark is a range, a
/// flag for the primary location, and the text beside the range.
fn window(file: &SourceFile, marks: &[(Range<usize>, bool, Option<String>)]) -> Window {
    let text = &file.text;
    let first = marks.iter().map(|m| m.0.start).min().unwrap_or(0);
    let last = marks.iter().map(|m| m.0.end).max().unwrap_or(0);
    let start = text[..first].rfind('\n').map_or(0, |i| i + 1);
    let end = text[last..].find('\n').map_or(text.len(), |i| last + i);
    let indent = " ".repeat(file.dedent as usize);
    let mut out = String::new();
    let mut line_starts = Vec::new();
    for (n, line) in text[start..end].split('\n').enumerate() {
        if n >= MAX_LINES {
            break;
        }
        if n > 0 {
            out.push('\n');
        }
        let from = line.as_ptr() as usize - text.as_ptr() as usize;
        out.push_str(&indent);
        line_starts.push((from, out.len()));
        out.push_str(line);
    }
    let to_output = |at: usize| {
        let line = line_starts.iter().rev().find(|(from, _)| *from <= at);
        line.map_or(0, |(from, to)| to + (at - from)).min(out.len())
    };
    let marks = marks.iter().map(|(r, p, l)| {
        let (a, b) = (to_output(r.start), to_output(r.end));
        (a..b.max(a), *p, l.clone())
    });
    let first_line = file.first_line as usize + text[..start].matches('\n').count();
    Window { name: file.name.to_string(), first_line, marks: marks.collect(), text: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> (SourceMap, FileId) {
        let mut map = SourceMap::new();
        let file = map.add(SourceFile {
            name: "model.py".into(),
            text: "def f(x):\n    y = R.ad(x, x)\n    return y\n".into(),
            first_line: 11,
            dedent: 4,
        });
        (map, file)
    }

    #[test]
    fn the_source_line_is_printed_with_a_caret() {
        let (map, file) = map();
        let d = Diagnostic::error(crate::error_codes::PL0104, "no operator 'ad'")
            .with_span(Span { file, start: 18, end: 22 })
            .with_label("not found")
            .with_help("did you mean 'add'?");
        let expected = "\
error[PL0104]: no operator 'ad'
  --> model.py:12:13
   |
12 |         y = R.ad(x, x)
   |             ^^^^ not found
   |
   = help: did you mean 'add'?
";
        assert_eq!(render(&d, &map, false), expected);
    }

    #[test]
    fn missing_sources_and_invalid_spans_are_accepted() {
        let (map, file) = map();
        let d = Diagnostic::error(crate::error_codes::PL0203, "no variable 'z'").in_function("f");
        let text = render(&d, &map, false);
        assert_eq!(text, "error[PL0203]: in function 'f': no variable 'z'\n");
        for (start, end) in [(0, 10_000), (5000, 3), (44, 44), (0, 43)] {
            let d = Diagnostic::warning(crate::error_codes::PL0203, "x").with_span(Span {
                file,
                start,
                end,
            });
            assert!(render(&d, &map, true).contains("model.py"));
        }
    }
}
