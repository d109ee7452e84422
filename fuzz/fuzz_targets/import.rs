//! The libFuzzer target for the import of ONNX models: see `pliant_fuzz::import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pliant_fuzz::import(bytes);
});
