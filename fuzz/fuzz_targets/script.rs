//! See `pliant_fuzz::targets::script`.
#![no_main]

use pliant_fuzz::targets::rng::Rng;
use pliant_fuzz::targets::script;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    script::run(bytes);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    let new = script::mutate(&data[..size], &data[..size], &mut Rng::new(seed.into()));
    let size = new.len().min(most);
    data[..size].copy_from_slice(&new[..size]);
    size
});
