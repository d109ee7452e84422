//! The libFuzzer target for saved executables: see `pliant_fuzz::targets::executable`.
#![no_main]

use pliant_fuzz::targets::executable;
use pliant_fuzz::targets::random_numbers::Rng;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    executable::run(bytes);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mutant = executable::mutate(&data[..size], &data[..size], &mut Rng::new(seed.into()));
    let size = mutant.len().min(max_size);
    data[..size].copy_from_slice(&mutant[..size]);
    size
});
