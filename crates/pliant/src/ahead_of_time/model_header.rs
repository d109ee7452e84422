//! The C header of a program that was compiled ahead of time.

use pliant_runtime::{Signature, entry_function};

/// Returns the text of the C header of a program, which declares the program as `name`. `signatures` are those of its functions.
pub(super) fn text(name: &str, signatures: &[Signature]) -> String {
    let guard = format!("PLIANT_PROGRAM_{name}_H");
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("/* The program {name}, compiled by Pliant {version}.\n");
    let entry = entry_function(signatures);
    if let Some(entry) = entry {
        text += " *\n * Inputs:\n";
        for (i, (input, info)) in entry.feed_names().iter().zip(&entry.inputs).enumerate() {
            text += &format!(" *   {i}  {}: {}\n", comment(input), comment(&info.ty));
        }
        text += &format!(" *\n * Result: {}\n", comment(&entry.output.ty));
        for (i, output) in entry.output_names.iter().enumerate() {
            text += &format!(" *   {i}  {}\n", comment(output));
        }
    }
    text += &format!(" */\n#ifndef {guard}\n#define {guard}\n\n#include \"pliant.h\"\n\n");
    text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    text += &format!("extern const pliant_program {name}_program;\n");
    text += "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
    text
}

/// Returns `text` for use in a C comment: replaces or separates the characters that could end the comment, join lines or change the
/// direction of text.
fn comment(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let printable: String = printable
        .map(|c| match c {
            // A backslash at the end of a line joins it with the next one.
            '\\' => '/',
            // These characters change the direction of the text behind them.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ' ',
            other => other,
        })
        .collect();
    let without_trigraphs = printable.replace("??", "? ?").replace("??", "? ?");
    without_trigraphs.replace("*/", "* /").replace("/*", "/ *").replace("*/", "* /")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_the_comment() {
        for hostile in [
            "*/ int x; /*",
            "*/*/",
            "/*/",
            "a\n#error",
            "**//",
            "end\\",
            "*\\\n/",
            "y???/",
            "\u{202e}",
        ] {
            let safe = comment(hostile);
            let ends = safe.contains("*/")
                || safe.contains("/*")
                || safe.contains(['\n', '\\', '\u{202e}'])
                || safe.contains("??");
            assert!(!ends, "{hostile:?} became {safe:?}");
        }
    }
}
