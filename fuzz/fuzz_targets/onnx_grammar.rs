//! The libFuzzer target for generated ONNX models: see `pliant_fuzz::onnx_grammar`. Run it with `-rss_limit_mb=4096
//! -timeout=60`, since valid models may create large tensors and loop for long.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pliant_fuzz::run_grammar(bytes);
});
