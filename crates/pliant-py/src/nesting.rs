//! The bound on how deeply values may be nested in one another: conversions, comparisons and prints of them recurse.

use std::cell::Cell;

use crate::error::{Error, Result};

/// The deepest nesting of tuples, types and lists.
pub const MAX_NESTING: u32 = 200;

/// The error for what is nested more deeply.
pub fn too_deep(what: &str) -> Error {
    Error::Value(format!("{what} are nested more than {MAX_NESTING} levels deep"))
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One level of a recursive conversion; ends when dropped.
pub struct Level(());

impl Level {
    /// Goes one level deeper into nested values.
    ///
    /// # Errors
    /// `ValueError` beyond [`MAX_NESTING`].
    pub fn enter(what: &str) -> Result<Level> {
        let depth = DEPTH.get();
        if depth >= MAX_NESTING {
            return Err(too_deep(what));
        }
        DEPTH.set(depth + 1);
        Ok(Level(()))
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
