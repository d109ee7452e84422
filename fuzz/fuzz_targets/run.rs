//! See `pliant_fuzz::run`. Run it with `-rss_limit_mb=4096`: a model may ask for large tensors by itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    pliant_fuzz::run(bytes);
});
