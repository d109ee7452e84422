//! The libFuzzer target for kernels that are called through their declarations: see
//! `pliant_fuzz::targets::kernel_calls`.
#![no_main]

use pliant_fuzz::targets::kernel_calls;
use pliant_fuzz::targets::random_numbers::Rng;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    kernel_calls::run(bytes);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mutant = kernel_calls::mutate(&data[..size], &data[..size], &mut Rng::new(seed.into()));
    let size = mutant.len().min(max_size);
    data[..size].copy_from_slice(&mutant[..size]);
    size
});
