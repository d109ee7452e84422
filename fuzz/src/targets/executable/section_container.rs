//! The container format of saved executables: reads the sections of a file, and writes files with valid checksums.

use std::sync::OnceLock;

/// The length of the header before the section table, in bytes.
const FIXED_HEADER_LEN: usize = 32;
const TABLE_ENTRY_LEN: usize = 24;
const HEADER_LEN: usize = FIXED_HEADER_LEN + 3 * TABLE_ENTRY_LEN + 4;
const ALIGN: usize = 64;

/// The three sections of an executable: the program, the constants and the loop functions.
pub type Sections = [Vec<u8>; 3];

fn read_u64(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 8)?;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// Reads the sections of a file; `None` if the section table refers to bytes outside the file. Ignores checksums.
pub fn read_sections(bytes: &[u8]) -> Option<Sections> {
    let section = |i: usize| {
        let (start, len) = (
            read_u64(bytes, FIXED_HEADER_LEN + i * TABLE_ENTRY_LEN + 8)?,
            read_u64(bytes, FIXED_HEADER_LEN + i * TABLE_ENTRY_LEN + 16)?,
        );
        bytes.get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
    };
    Some([section(0)?, section(1)?, section(2)?])
}

/// Returns the first 24 bytes, which all files written by this build have in common: magic,
/// version, number of sections, schema hash.
fn file_prefix() -> &'static [u8] {
    static PREFIX: OnceLock<Vec<u8>> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let text = "from pliant.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n    \
                    def main(x: R.Tensor((1,), \"float32\")) -> R.Tensor((1,), \"float32\"):\n        return x\n";
        let module = pliant::parse("head.py", text).expect("the built-in script parses").module;
        let compiled = pliant::compile(module, &pliant::CompileOptions::default());
        let bytes = compiled.and_then(|c| c.to_bytes()).expect("the built-in script compiles");
        bytes[..24].to_vec()
    })
}

/// Encodes a file with these sections.
pub fn write_file(sections: &Sections) -> Vec<u8> {
    let (mut table, mut end) = (Vec::new(), HEADER_LEN);
    for (kind, section) in (1u32..).zip(sections) {
        let start = end.next_multiple_of(ALIGN);
        end = start + section.len();
        table.extend(kind.to_le_bytes());
        table.extend(crc32fast::hash(section).to_le_bytes());
        table.extend((start as u64).to_le_bytes());
        table.extend((section.len() as u64).to_le_bytes());
    }
    let mut out = file_prefix().to_vec();
    out.extend((end as u64).to_le_bytes());
    out.extend(table);
    out.extend(crc32fast::hash(&out).to_le_bytes());
    for section in sections {
        out.resize(out.len().next_multiple_of(ALIGN), 0);
        out.extend(section);
    }
    out
}
