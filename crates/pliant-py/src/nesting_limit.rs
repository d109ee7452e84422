//! The limit on the nesting depth of values. It prevents stack overflows, since values are converted, compared and printed
//! recursively.

use std::cell::Cell;

use crate::error::{Error, Result};

/// The maximum nesting depth of tuples, types and lists.
pub const MAX_NESTING: u32 = 200;

/// The error for a value that is nested too deeply.
pub fn too_deep(what: &str) -> Error {
    Error::Value(format!("{what} are nested more than {MAX_NESTING} levels deep"))
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One level of a recursive conversion. The level ends when this value is dropped.
pub struct NestingLevel(());

impl NestingLevel {
    /// Enters one more level of nested values.
    ///
    /// # Errors
    /// `ValueError` if the depth exceeds [`MAX_NESTING`].
    pub fn enter(what: &str) -> Result<NestingLevel> {
        let depth = DEPTH.get();
        if depth >= MAX_NESTING {
            return Err(too_deep(what));
        }
        DEPTH.set(depth + 1);
        Ok(NestingLevel(()))
    }
}

impl Drop for NestingLevel {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
