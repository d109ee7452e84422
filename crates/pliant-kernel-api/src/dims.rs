//! The sizes of named dims in a call.

use crate::MAX_OPERANDS;

/// The most dim names of a kernel.
const MAX_NAMES: usize = 2 * MAX_OPERANDS;

/// The sizes of the named dims of a call.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    list: [(&'static str, i64); MAX_NAMES],
    len: usize,
}

impl Sizes {
    pub(crate) fn new() -> Self {
        Sizes { list: [("", 0); MAX_NAMES], len: 0 }
    }

    /// The size of a dim; `None` for a name that no present operand has.
    pub fn find(&self, name: &str) -> Option<i64> {
        self.list[..self.len].iter().find(|(n, _)| *n == name).map(|(_, size)| *size)
    }

    /// The size of a dim; 0 for a name that no present operand has.
    pub fn get(&self, name: &str) -> i64 {
        self.find(name).unwrap_or(0)
    }

    /// Enters the size of a dim. If it has another size already, returns that size.
    pub(crate) fn unify(&mut self, name: &'static str, size: i64) -> Result<(), i64> {
        match self.find(name) {
            Some(known) if known != size => Err(known),
            Some(_) => Ok(()),
            None => {
                if let Some(entry) = self.list.get_mut(self.len) {
                    *entry = (name, size);
                    self.len += 1;
                }
                Ok(())
            }
        }
    }
}
