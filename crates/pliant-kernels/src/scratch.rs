//! Memory of a thread that a kernel keeps from call to call, so that it allocates only when it needs more than ever before.

use std::cell::RefCell;

use pliant_exec::abi::STATUS_NO_MEMORY;

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
    /// Returns the kernel status that it returns, or that there is no memory.
    ///
    /// # Panics
    /// Within a call of its own.
    pub fn with<T: Copy>(&self, len: usize, f: impl FnOnce(*mut T) -> i64) -> i64 {
        const { assert!(align_of::<T>() <= align_of::<Line>()) };
        let mut lines = self.0.borrow_mut();
        let wanted = len.saturating_mul(size_of::<T>()).div_ceil(size_of::<Line>());
        if let Some(more) = wanted.checked_sub(lines.len()) {
            if lines.try_reserve_exact(more).is_err() {
                return STATUS_NO_MEMORY;
            }
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
        let mut first = 0;
        let status = scratch.with(3, |p: *mut f32| {
            // SAFETY: there is room for three.
            unsafe { p.add(2).write(7.0) };
            first = p.addr();
            5
        });
        assert_eq!(status, 5);
        assert!(first.is_multiple_of(64));
        scratch.with(3, |p: *mut f32| {
            // SAFETY: as above.
            assert_eq!((p.addr(), unsafe { p.add(2).read() }), (first, 7.0));
            0
        });
        scratch.with(100_000, |p: *mut u64| {
            // SAFETY: there is room for so many.
            unsafe { p.add(99_999).write(1) };
            0
        });
    }

    #[test]
    fn what_does_not_fit_memory_is_a_status() {
        let scratch = Scratch::new();
        for len in [1 << 60, usize::MAX / 8, usize::MAX] {
            assert_eq!(scratch.with(len, |_: *mut f64| 0), STATUS_NO_MEMORY);
        }
        assert_eq!(scratch.with(1, |_: *mut f64| 0), 0);
    }
}
