//! The libFuzzer target for scripts: see `pliant_fuzz::targets::script`.
#![no_main]

use pliant_fuzz::targets::random_numbers::Rng;
use pliant_fuzz::targets::script;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    script::run(bytes);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mutant = script::mutate(&data[..size], &data[..size], &mut Rng::new(seed.into()));
    let size = mutant.len().min(max_size);
    data[..size].copy_from_slice(&mutant[..size]);
    size
});
