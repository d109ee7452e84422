//! [`ScheduleError`]: the reason why a schedule primitive cannot be applied.

use std::fmt;
use std::sync::Arc;

/// The reason why a schedule primitive cannot be applied. The loop function is then unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// The name of the primitive, such as `reorder`.
    pub primitive: &'static str,
    /// The name of the loop function.
    pub function: Arc<str>,
    /// A description of the reason, which names the loops and blocks.
    pub message: String,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in '{}': {}", self.primitive, self.function, self.message)
    }
}

impl std::error::Error for ScheduleError {}

/// The result of a step of a schedule primitive: a value, or a description of the reason why the primitive cannot be applied.
pub(crate) type Step<T> = Result<T, String>;
