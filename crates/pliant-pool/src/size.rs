//! How many threads a team should have here.

use std::thread::available_parallelism;

/// The environment variable that overrides the number of threads.
const VARIABLE: &str = "PLIANT_NUM_THREADS";
/// No team is larger; a larger request is a typing error.
const MAX_THREADS: usize = 1024;

/// The number of threads of the global team: `PLIANT_NUM_THREADS` where it is a positive number, else what the
/// system grants this process (CPU affinity and the container's CPU quota are respected).
pub fn default_threads() -> usize {
    requested(std::env::var(VARIABLE).ok().as_deref())
        .unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
        .min(MAX_THREADS)
}

fn requested(text: Option<&str>) -> Option<usize> {
    text?.trim().parse().ok().filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_must_be_a_positive_number() {
        assert_eq!(requested(Some(" 3 ")), Some(3));
        for bad in ["0", "-1", "two", ""] {
            assert_eq!(requested(Some(bad)), None);
        }
        assert_eq!(requested(None), None);
        assert!((1..=MAX_THREADS).contains(&default_threads()));
    }
}
