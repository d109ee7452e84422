//! Models from the grammar of the fuzz target `onnx_grammar`: each is imported, compiled and run, or rejected.

use std::path::Path;

use prost::Message;

use crate::onnx_grammar::model;
use crate::onnx_grammar::run_model::{LastStage, run};

/// Returns 20 to 519 random bytes, from a xorshift generator.
fn random_bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let count = 20 + next() % 500;
    (0..count).map(|_| (next() >> 24) as u8).collect()
}

#[test]
fn generated_models_run_or_are_rejected() {
    let mut ran = 0;
    for seed in 1..1500 {
        match run(&model(&random_bytes(seed)).encode_to_vec()) {
            Ok(reached) => ran += usize::from(reached == LastStage::Ran),
            Err(bug) => panic!("seed {seed}: {bug}"),
        }
    }
    // Some models must run; otherwise only the importer is tested.
    assert!(ran >= 50, "only {ran} ran");
}

#[test]
fn models_that_revealed_bugs_run_or_are_rejected() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/onnx_grammar");
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        let outcome = run(&std::fs::read(&path).unwrap());
        assert!(outcome.is_ok(), "{}: {outcome:?}", path.display());
        count += 1;
    }
    assert!(count > 0, "{} is empty", dir.display());
}
