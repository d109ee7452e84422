//! [`ImportDeadline`]: enforces the time limit of an import.

use std::time::{Duration, Instant};

use crate::import_error::Problem;
use crate::import_limits::Limits;

/// The deadline of an import, which is checked before each node.
#[derive(Debug)]
pub(crate) struct ImportDeadline {
    deadline: Option<(Instant, Duration)>,
    expired: bool,
}

impl ImportDeadline {
    pub(crate) fn new(limits: &Limits) -> Self {
        let deadline = limits.time.and_then(|t| Some((Instant::now().checked_add(t)?, t)));
        ImportDeadline { deadline, expired: false }
    }

    /// Whether there is time left to convert another node.
    ///
    /// # Errors
    /// The first call after the deadline returns an error; later calls return `false`.
    pub(crate) fn has_time(&mut self) -> Result<bool, Problem> {
        match self.deadline {
            Some((deadline, allowed)) if !self.expired && Instant::now() >= deadline => {
                self.expired = true;
                let seconds = allowed.as_secs_f64();
                Err(Problem::invalid(format!(
                    "the import took longer than the limit of {seconds} seconds (Limits.time; Limits.seconds in Python)"
                )))
            }
            _ => Ok(!self.expired),
        }
    }
}
