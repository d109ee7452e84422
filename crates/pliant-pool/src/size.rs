//! The number of threads of a team.

use std::thread::available_parallelism;

/// The environment variable that limits the number of threads.
const OURS: &str = "PLIANT_NUM_THREADS";
/// The variable with which OpenMP programs limit their threads; it is respected too.
const OPENMP: &str = "OMP_NUM_THREADS";
/// Maximum size of a team. A larger request is probably a typing error and is clamped.
pub const MAX_THREADS: usize = 1024;

/// The number of threads of the global team: the number of CPUs available to this process, which
/// respects CPU affinity and the container's quota, or less if `PLIANT_NUM_THREADS` or
/// `OMP_NUM_THREADS` is a smaller positive number.
pub fn default_threads() -> usize {
    let granted = available_parallelism().map_or(1, usize::from);
    let limits = [OURS, OPENMP].into_iter().filter_map(|name| limit(name).ok().flatten());
    limits.fold(granted, usize::min).min(MAX_THREADS)
}

/// Checks `PLIANT_NUM_THREADS`. [`default_threads`] ignores an invalid value, so compiling and
/// loading call this first. `OMP_NUM_THREADS` is not checked, because other programs use it too.
///
/// # Errors
/// A message if the value is not a positive number.
pub fn check_threads() -> Result<(), String> {
    limit(OURS).map(drop)
}

/// The limit that a variable sets; `None` if the variable is absent or empty.
fn limit(name: &str) -> Result<Option<usize>, String> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match text.to_str().and_then(requested) {
        Some(threads) => Ok(Some(threads)),
        None => Err(format!("{name} is {text:?}, which is no positive number")),
    }
}

/// A positive number, or the first of a list of them: OpenMP accepts a list for nested loops.
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
