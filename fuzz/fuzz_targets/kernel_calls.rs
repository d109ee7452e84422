//! See `pliant_fuzz::targets::kernel_calls`.
#![no_main]

use pliant_fuzz::targets::kernel_calls;
use pliant_fuzz::targets::rng::Rng;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    kernel_calls::run(bytes);
});

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
    let new = kernel_calls::mutate(&data[..size], &data[..size], &mut Rng::new(seed.into()));
    let size = new.len().min(most);
    data[..size].copy_from_slice(&new[..size]);
    size
});
