//! See `pliant_fuzz::targets::kernels`.
#![no_main]

use pliant_fuzz::targets::kernels;
use pliant_fuzz::targets::rng::Rng;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    kernels::run(bytes);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    let new = kernels::mutate(&data[..size], &data[..size], &mut Rng::new(seed.into()));
    let size = new.len().min(most);
    data[..size].copy_from_slice(&new[..size]);
    size
});
