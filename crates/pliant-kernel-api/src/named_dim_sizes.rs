//! The sizes of the named dims of the operands in a kernel call.

use crate::MAX_OPERANDS;

/// Maximum number of distinct dim names of a kernel.
const MAX_NAMES: usize = 2 * MAX_OPERANDS;

/// Returns a hash of a dim or operand name, by which names are compared. Comparing ids is faster
/// than comparing names. An id combines the length and the first 4 and last 4 bytes of a name,
/// without a leading `*`. The names of one kernel must have different ids, which a test checks.
#[inline]
pub(crate) const fn name_id(name: &str) -> u64 {
    let bytes = match name.as_bytes() {
        [b'*', bytes @ ..] => bytes,
        bytes => bytes,
    };
    let (mut id, mut at) = (bytes.len() as u64, 0);
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64);
        return (first | last << 32) ^ id << 24;
    }
    while at < bytes.len() {
        id = id << 8 | bytes[at] as u64;
        at += 1;
    }
    id
}

/// The sizes of the named dims of a kernel call.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    ids: [u64; MAX_NAMES],
    sizes: [i64; MAX_NAMES],
    len: usize,
}

impl Sizes {
    /// Creates an empty table of dim sizes.
    pub fn new() -> Self {
        Sizes { ids: [0; MAX_NAMES], sizes: [0; MAX_NAMES], len: 0 }
    }

    /// Returns the size of a dim; `None` if no operand of the call has a dim of this name.
    #[inline(always)]
    pub fn find(&self, name: &str) -> Option<i64> {
        self.find_id(name_id(name))
    }

    #[inline]
    fn find_id(&self, id: u64) -> Option<i64> {
        let at = self.ids[..self.len].iter().position(|&known| known == id)?;
        Some(self.sizes[at])
    }

    /// Returns the size of a dim; 0 if no operand of the call has a dim of this name.
    #[inline(always)]
    pub fn get(&self, name: &str) -> i64 {
        self.find(name).unwrap_or(0)
    }

    /// Records the size of a named dim of the call. If a different size of the dim is recorded already, returns the recorded size
    /// as the error.
    pub(crate) fn unify(&mut self, name: &str, size: i64) -> Result<(), i64> {
        let id = name_id(name);
        match self.find_id(id) {
            Some(known) if known != size => Err(known),
            Some(_) => Ok(()),
            None => {
                if self.len < MAX_NAMES {
                    (self.ids[self.len], self.sizes[self.len]) = (id, size);
                    self.len += 1;
                }
                Ok(())
            }
        }
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes::new()
    }
}
