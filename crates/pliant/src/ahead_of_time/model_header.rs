//! The C header of a program that was compiled ahead of time.

use pliant_runtime::{Signature, entry_function};

/// Returns the text of the header. `name` is the name of the program in C.
pub(super) fn text(name: &str, signatures: &[Signature]) -> String {
    let guard = format!("{}_H", name.to_ascii_uppercase());
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

/// Returns text that cannot end a comment of C.
fn comment(text: &str) -> String {
    let printable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    // A backslash at the end of a line joins it with the next one.
    let printable: String = printable.map(|c| if c == '\\' { '/' } else { c }).collect();
    printable.replace("*/", "* /").replace("/*", "/ *").replace("*/", "* /")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_the_comment() {
        for hostile in ["*/ int x; /*", "*/*/", "/*/", "a\n#error", "**//", "end\\", "*\\\n/"] {
            let safe = comment(hostile);
            let ends = safe.contains("*/") || safe.contains("/*") || safe.contains(['\n', '\\']);
            assert!(!ends, "{hostile:?} became {safe:?}");
        }
    }
}
