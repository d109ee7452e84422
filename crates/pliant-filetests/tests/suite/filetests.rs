//! Runs every test under `tests/filetests`. `PLIANT_FILETEST` selects files by a part of the path,
//! `PLIANT_BLESS=1` updates the expectations.

use std::path::Path;

use pliant_machine::{Caches, Isa, Machine, Rates};

/// The machine description for which the expectations were generated, since schedules depend on it.
fn reference_machine() -> Machine {
    let caches = Caches { l1: 48 << 10, l2: 2 << 20, l3: 32 << 20 };
    let rates = Rates::estimate(Isa::Avx512);
    Machine { name: "reference", isa: Isa::Portable, caches, cores: 2, rates }
}

#[test]
fn all_file_tests_pass() {
    assert!(reference_machine().set_host(), "the host description was already in use");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let filter = std::env::var("PLIANT_FILETEST").unwrap_or_default();
    let bless = std::env::var("PLIANT_BLESS").is_ok_and(|v| v == "1");
    let report = pliant_filetests::run_all(&root, &filter, bless).expect("the tests can be read");
    let ran = report.passed.len() + report.failed.len() + report.blessed.len();
    assert!(ran > 0, "no test matches '{filter}'");
    if !report.failed.is_empty() {
        let list: Vec<String> = report
            .failed
            .iter()
            .map(|(file, why)| {
                let file = file.strip_prefix(&root).unwrap_or(file);
                format!("---- {} ----\n{why}", file.display())
            })
            .collect();
        panic!("{} of {ran} file tests failed:\n{}", report.failed.len(), list.join("\n"));
    }
}
