//! The number of threads of worker teams, determined from the available CPUs and environment variables.
//!
//! The number of chunks into which one loop is split is not decided here, but in `worker_threads.rs`.
//!
//! Options override this number: `CompileOptions::threads` in Rust (`threads` in Python, `--threads` on the command line), and the
//! field `threads` of `pliant_options` in C. The program then uses the team with that number of threads
//! ([`shared_team`](crate::shared_team)). `VmOptions::team` selects the team of a single VM.

use std::thread::available_parallelism;

/// The name of the environment variable that limits the number of threads of Pliant.
const PLIANT_VARIABLE: &str = "PLIANT_NUM_THREADS";
/// The name of the environment variable that limits the number of threads of OpenMP programs.
/// Pliant respects this limit, too.
const OPENMP_VARIABLE: &str = "OMP_NUM_THREADS";
/// Maximum number of threads of a team. A larger request is probably a typing error and is clamped.
pub const MAX_THREADS: usize = 1024;

/// Returns the number of threads of the global team: the number of CPUs available to the process,
/// considering its CPU affinity and container quota. A smaller positive `PLIANT_NUM_THREADS` or
/// `OMP_NUM_THREADS` reduces the number.
pub fn default_threads() -> usize {
    let granted = available_parallelism().map_or(1, usize::from);
    let limits = [PLIANT_VARIABLE, OPENMP_VARIABLE]
        .into_iter()
        .filter_map(|name| limit(name).ok().flatten());
    limits.fold(granted, usize::min).min(MAX_THREADS)
}

/// Checks that `PLIANT_NUM_THREADS` is valid. The compiler and the loader call this function,
/// because [`default_threads`] ignores an invalid value. `OMP_NUM_THREADS` is not checked, because
/// other programs use it, too.
///
/// # Errors
/// The value is not a positive number. The error is a message with the name and the value.
pub fn check_threads() -> Result<(), String> {
    limit(PLIANT_VARIABLE).map(drop)
}

/// Returns the thread limit that an environment variable sets; `None` if the variable is absent or empty. A value that
/// is not a positive number is an error.
fn limit(name: &str) -> Result<Option<usize>, String> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match text.to_str().and_then(parse_count) {
        Some(threads) => Ok(Some(threads)),
        None => Err(format!(
            "the environment variable {name} is {text:?}, but must be a positive number of threads"
        )),
    }
}

/// Parses a thread count. From a list such as `4,2`, which OpenMP accepts for nested loops, takes the first number.
/// Returns `None` unless it is a positive number.
fn parse_count(text: &str) -> Option<usize> {
    text.split(',').next()?.trim().parse().ok().filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_limits_are_positive_numbers() {
        assert_eq!(parse_count(" 3 "), Some(3));
        assert_eq!(parse_count("4,2"), Some(4));
        for bad in ["0", "-1", "two", ""] {
            assert_eq!(parse_count(bad), None);
        }
        assert!((1..=MAX_THREADS).contains(&default_threads()));
    }
}
