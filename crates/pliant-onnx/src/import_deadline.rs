//! [`ImportDeadline`]: enforces the time limit of an import.

use std::time::{Duration, Instant};

use crate::error::Problem;
use crate::limits::Limits;

/// Checks the time between nodes.
#[derive(Debug)]
pub(crate) struct ImportDeadline {
    until: Option<(Instant, Duration)>,
    stopped: bool,
}

impl ImportDeadline {
    pub(crate) fn new(limits: &Limits) -> Self {
        let until = limits.time.and_then(|t| Some((Instant::now().checked_add(t)?, t)));
        ImportDeadline { until, stopped: false }
    }

    /// Whether there is time for another node.
    ///
    /// # Errors
    /// Once, when the time limit is reached.
    pub(crate) fn goes_on(&mut self) -> Result<bool, Problem> {
        match self.until {
            Some((until, allowed)) if !self.stopped && Instant::now() >= until => {
                self.stopped = true;
                let seconds = allowed.as_secs_f64();
                Err(Problem::invalid(format!("the import took longer than {seconds} seconds")))
            }
            _ => Ok(!self.stopped),
        }
    }
}
