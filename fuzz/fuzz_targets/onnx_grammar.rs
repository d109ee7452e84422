//! See `pliant_fuzz::onnx_grammar`. Run it with `-rss_limit_mb=4096 -timeout=60`: a correct model may loop for long.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pliant_fuzz::grammar(bytes);
});
