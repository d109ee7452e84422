//! Bytes to the importer: a module, or an error, and the report agrees.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pliant::onnx::{self, ImportOptions, Limits, Model};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { tensor_bytes: 1 << 20, nodes: 10_000, decoded_bytes: 64 << 20, ..Limits::default() };
    let Ok(model) = Model::from_bytes(bytes.to_vec(), limits) else { return };
    let imported = onnx::import(&model, &ImportOptions::default());
    assert_eq!(imported.is_ok(), onnx::check(&model, &ImportOptions::default()).is_ok());
});
