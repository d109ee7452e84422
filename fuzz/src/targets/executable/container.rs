//! The container format of saved executables: splits files into sections, and writes files with valid checksums.

use std::sync::OnceLock;

/// Bytes before the section table.
const FIXED: usize = 32;
const ENTRY: usize = 24;
const HEADER: usize = FIXED + 3 * ENTRY + 4;
const ALIGN: usize = 64;

/// Program, constants and kernels.
pub type Sections = [Vec<u8>; 3];

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 8)?;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

/// The sections; none if the table points outside of the file. Checksums are ignored.
pub fn take_apart(bytes: &[u8]) -> Option<Sections> {
    let section = |i: usize| {
        let (start, len) =
            (number(bytes, FIXED + i * ENTRY + 8)?, number(bytes, FIXED + i * ENTRY + 16)?);
        bytes.get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
    };
    Some([section(0)?, section(1)?, section(2)?])
}

/// The first bytes of each file that this build writes: magic, version, number of sections, hash of the schema.
fn head() -> &'static [u8] {
    static HEAD: OnceLock<Vec<u8>> = OnceLock::new();
    HEAD.get_or_init(|| {
        let text = "from pliant.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n    \
                    def main(x: R.Tensor((1,), \"float32\")) -> R.Tensor((1,), \"float32\"):\n        return x\n";
        let module = pliant::parse("head.py", text).expect("the script is right").module;
        let compiled = pliant::compile(module, &pliant::CompileOptions::default());
        let bytes = compiled.and_then(|c| c.to_bytes()).expect("the module compiles");
        bytes[..24].to_vec()
    })
}

/// A file with these sections.
pub fn put_together(sections: &Sections) -> Vec<u8> {
    let (mut table, mut end) = (Vec::new(), HEADER);
    for (kind, section) in (1u32..).zip(sections) {
        let start = end.next_multiple_of(ALIGN);
        end = start + section.len();
        table.extend(kind.to_le_bytes());
        table.extend(crc32fast::hash(section).to_le_bytes());
        table.extend((start as u64).to_le_bytes());
        table.extend((section.len() as u64).to_le_bytes());
    }
    let mut out = head().to_vec();
    out.extend((end as u64).to_le_bytes());
    out.extend(table);
    out.extend(crc32fast::hash(&out).to_le_bytes());
    for section in sections {
        out.resize(out.len().next_multiple_of(ALIGN), 0);
        out.extend(section);
    }
    out
}
