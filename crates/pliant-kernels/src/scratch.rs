//! Memory of a thread that a kernel keeps from call to call, so that it allocates only when it needs more than ever before.

use std::cell::RefCell;

/// A line of the caches.
#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Scratch memory; a kernel has its own, by `thread_local!`.
pub struct Scratch(RefCell<Vec<Line>>);

impl Scratch {
    /// Nothing yet.
    pub const fn new() -> Scratch {
        Scratch(RefCell::new(Vec::new()))
    }

    /// Calls `f` with room for so many elements, which begins a line of the caches and holds what was left there, or zeros.
    ///
    /// # Panics
    /// Within a call of its own.
    pub fn with<T: Copy, R>(&self, len: usize, f: impl FnOnce(*mut T) -> R) -> R {
        const { assert!(align_of::<T>() <= align_of::<Line>()) };
        let mut lines = self.0.borrow_mut();
        let wanted = len.saturating_mul(size_of::<T>()).div_ceil(size_of::<Line>());
        if lines.len() < wanted {
            lines.resize(wanted, Line([0; 64]));
        }
        f(lines.as_mut_ptr().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_a_line_and_is_kept() {
        let scratch = Scratch::new();
        let first = scratch.with(3, |p: *mut f32| {
            // SAFETY: there is room for three.
            unsafe { p.add(2).write(7.0) };
            p.addr()
        });
        assert!(first.is_multiple_of(64));
        // SAFETY: as above.
        let again = scratch.with(3, |p: *mut f32| (p.addr(), unsafe { p.add(2).read() }));
        assert_eq!(again, (first, 7.0));
        // SAFETY: there is room for so many.
        scratch.with(100_000, |p: *mut u64| unsafe { p.add(99_999).write(1) });
    }
}
