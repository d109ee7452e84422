//! Per-thread scratch memory that a kernel keeps between calls, so that it allocates only if it needs more than in
//! earlier calls.
//!
//! All scratch memory is freed when a VM is dropped ([`pliant_pool::release`]), so that no data of a program remains.

use std::cell::OnceCell;

use pliant_exec::abi::STATUS_NO_MEMORY;
use pliant_pool::{ThreadCache, ThreadCaches, on_release};
use pliant_tensor::poison;

/// Memory with the size and the alignment of a cache line.
#[derive(Clone)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The scratch memory of all kernels and threads, so that it can be freed.
static CACHES: ThreadCaches<Vec<Line>> = ThreadCaches::new();

/// The scratch memory of one kernel. The kernel declares a `thread_local!` variable of this type.
pub struct Scratch(OnceCell<ThreadCache<Vec<Line>>>);

impl Scratch {
    /// Creates an empty scratch memory; the first use allocates it.
    pub const fn new() -> Scratch {
        Scratch(OnceCell::new())
    }

    /// Calls `f` with memory for `len` elements. The memory is aligned to a cache line and has
    /// arbitrary contents. Returns the kernel status of `f`, or the status for out of memory.
    pub fn with<T: Copy>(&self, len: usize, f: impl FnOnce(*mut T) -> i64) -> i64 {
        const { assert!(align_of::<T>() <= align_of::<Line>()) };
        let wanted = len.saturating_mul(size_of::<T>()).div_ceil(size_of::<Line>());
        let cache = self.0.get_or_init(|| {
            on_release(|| CACHES.empty(std::mem::take));
            CACHES.claim()
        });
        match cache.enter() {
            Some(mut lines) => with_lines(&mut lines, wanted, |p| f(p.cast())),
            // This is a nested call, or another thread is emptying the cache.
            None => with_lines(&mut Vec::new(), wanted, |p| f(p.cast())),
        }
    }
}

fn with_lines(lines: &mut Vec<Line>, wanted: usize, f: impl FnOnce(*mut Line) -> i64) -> i64 {
    if let Some(more) = wanted.checked_sub(lines.len()) {
        if lines.try_reserve_exact(more).is_err() {
            return STATUS_NO_MEMORY;
        }
        lines.resize(wanted, Line([0; 64]));
    }
    // SAFETY: there are `wanted` lines.
    unsafe { poison(lines.as_mut_ptr().cast(), wanted * size_of::<Line>()) };
    f(lines.as_mut_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_reused() {
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
            assert_eq!(p.addr(), first);
            // A nested call has its own memory.
            scratch.with(3, |p: *mut f32| {
                assert_ne!(p.addr(), first);
                0
            })
        });
        scratch.with(100_000, |p: *mut u64| {
            // SAFETY: there is room for all elements.
            unsafe { p.add(99_999).write(1) };
            0
        });
    }

    #[test]
    fn memory_is_freed_on_all_threads() {
        let scratch = Scratch::new();
        let mark = |p: *mut u64| {
            // SAFETY: there is memory for 1000 elements.
            unsafe { p.add(999).write(1) };
            0
        };
        scratch.with(1000, mark);
        std::thread::spawn(pliant_pool::release).join().expect("it ends");
        let cache = scratch.0.get().expect("it was used").enter().expect("it is idle");
        assert_eq!(cache.capacity(), 0);
    }

    #[test]
    fn allocation_failure_is_a_status() {
        let scratch = Scratch::new();
        for len in [1 << 60, usize::MAX / 8, usize::MAX] {
            assert_eq!(scratch.with(len, |_: *mut f64| 0), STATUS_NO_MEMORY);
        }
        assert_eq!(scratch.with(1, |_: *mut f64| 0), 0);
    }
}
