//! How many threads a team should have here.

use std::thread::available_parallelism;

/// The environment variable that limits the number of threads.
const OURS: &str = "PLIANT_NUM_THREADS";
/// That of every OpenMP program, which does too.
const OPENMP: &str = "OMP_NUM_THREADS";
/// No team is larger; a larger request is a typing error, and gets this many.
pub const MAX_THREADS: usize = 1024;

/// The number of threads of the global team: what the system grants this process (CPU affinity and the container's CPU
/// quota are respected), or less where `PLIANT_NUM_THREADS` or `OMP_NUM_THREADS` is a smaller positive number.
pub fn default_threads() -> usize {
    let granted = available_parallelism().map_or(1, usize::from);
    let limits = [OURS, OPENMP].into_iter().filter_map(|name| limit(name).ok().flatten());
    limits.fold(granted, usize::min).min(MAX_THREADS)
}

/// What is wrong with `PLIANT_NUM_THREADS`, which is no positive number; [`default_threads`] leaves it out then. Compiling and
/// loading ask first. Of `OMP_NUM_THREADS`, which is for others too, nothing is said.
pub fn check_threads() -> Result<(), String> {
    limit(OURS).map(drop)
}

/// The limit that a variable sets: none where it is absent or empty.
fn limit(name: &str) -> Result<Option<usize>, String> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match text.to_str().and_then(requested) {
        Some(threads) => Ok(Some(threads)),
        None => Err(format!("{name} is {text:?}, which is no positive number")),
    }
}

/// A positive number, or the first of a list, which OpenMP takes for nested loops.
fn requested(text: &str) -> Option<usize> {
    text.split(',').next()?.trim().parse().ok().filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_must_be_a_positive_number() {
        assert_eq!(requested(" 3 "), Some(3));
        assert_eq!(requested("4,2"), Some(4));
        for bad in ["0", "-1", "two", ""] {
            assert_eq!(requested(bad), None);
        }
        assert!((1..=MAX_THREADS).contains(&default_threads()));
    }
}
