//! The libFuzzer target for compiling and running ONNX models: see `pliant_fuzz::run`. Run it with
//! `-rss_limit_mb=4096`, since valid models may create large tensors.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pliant_fuzz::run(bytes);
});
