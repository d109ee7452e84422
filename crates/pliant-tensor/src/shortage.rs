//! A memory reserve for failed system allocations. Code that cannot handle a failed allocation
//! continues on the reserve until it reaches a point where it can return an error.
//!
//! If a program has [`Allocator`] as its global allocator and has called [`prepare`], a failed
//! small allocation does not abort it: the reserve is freed and the allocation is retried. From
//! then on [`check`] fails until a new reserve can be allocated. Compilations and runs call
//! [`check`] where they can stop with an error.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::TensorError;

/// The size of the reserve in bytes. The C allocator maps a block of this size separately, so
/// freeing it returns its address space. Its pages are never touched.
const RESERVE: usize = 40 << 20;
/// A failed allocation that is larger than this is not retried; callers handle such failures.
const SMALL: usize = 4 << 20;

static KEPT: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Whether an allocation has failed and no new reserve has been allocated since.
static SHORT: AtomicBool = AtomicBool::new(false);
/// Whether [`prepare`] was called.
static PREPARED: AtomicBool = AtomicBool::new(false);

fn layout() -> Layout {
    const { Layout::new::<[u8; RESERVE]>() }
}

/// Allocates the reserve. If there is no memory for it, [`check`] fails until there is.
pub fn prepare() {
    PREPARED.store(true, Ordering::Relaxed);
    if !set_aside() {
        SHORT.store(true, Ordering::Relaxed);
    }
}

/// Allocates the reserve if there is none. Returns whether there is one now.
fn set_aside() -> bool {
    if !KEPT.load(Ordering::Relaxed).is_null() {
        return true;
    }
    // SAFETY: the size of the layout is not zero.
    let block = unsafe { System.alloc(layout()) };
    if block.is_null() {
        return false;
    }
    let others = KEPT.compare_exchange(null_mut(), block, Ordering::AcqRel, Ordering::Relaxed);
    if others.is_err() {
        // SAFETY: allocated above, with this layout, and not shared.
        unsafe { System.dealloc(block, layout()) };
    }
    true
}

/// Whether memory is short: an allocation has failed and the reserve is in use. Cheaper than
/// [`check`].
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Fails if memory is short and no new reserve can be allocated.
///
/// # Errors
/// `OutOfMemory` if memory is short.
pub fn check() -> Result<(), TensorError> {
    if !is_short() {
        return Ok(());
    }
    if set_aside() {
        SHORT.store(false, Ordering::Relaxed);
        return Ok(());
    }
    Err(TensorError::OutOfMemory { bytes: RESERVE })
}

/// The system allocator, except that a failed small allocation frees the reserve and is retried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// Frees the reserve and retries a failed allocation.
#[cold]
fn again(bytes: usize, alloc: impl Fn() -> *mut u8) -> *mut u8 {
    if bytes > SMALL || !PREPARED.load(Ordering::Relaxed) {
        return null_mut();
    }
    SHORT.store(true, Ordering::Relaxed);
    let block = KEPT.swap(null_mut(), Ordering::AcqRel);
    if !block.is_null() {
        // SAFETY: allocated by `set_aside` with this layout; the swap gave this thread ownership.
        unsafe { System.dealloc(block, layout()) };
    }
    // Retry in any case, because another thread may have freed the reserve.
    alloc()
}

// SAFETY: every method calls the system allocator with the caller's arguments.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let alloc = || unsafe { System.alloc(layout) };
        let block = alloc();
        if block.is_null() { again(layout.size(), alloc) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let alloc = || unsafe { System.alloc_zeroed(layout) };
        let block = alloc();
        if block.is_null() { again(layout.size(), alloc) } else { block }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; a failed call leaves the block unchanged.
        let alloc = || unsafe { System.realloc(ptr, layout, new_size) };
        let block = alloc();
        if block.is_null() { again(new_size, alloc) } else { block }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn the_reserve_is_spent_on_small_allocations_and_set_aside_again() {
        prepare();
        assert!(!is_short() && check().is_ok());
        assert!(!KEPT.load(Ordering::Relaxed).is_null());
        // A large allocation fails without using the reserve.
        assert!(again(SMALL + 1, || unreachable!("large allocations are not retried")).is_null());
        assert!(!is_short());
        let calls = Cell::new(0);
        let alloc = || {
            calls.set(calls.get() + 1);
            null_mut()
        };
        // Allocations of other tests may reallocate the reserve immediately.
        let is_spent = (1..=1000).any(|attempt| {
            assert!(again(8, alloc).is_null());
            assert!(calls.get() <= attempt);
            is_short() && KEPT.load(Ordering::Relaxed).is_null()
        });
        assert!(is_spent);
        check().expect("this machine has memory");
        assert!(!is_short() && !KEPT.load(Ordering::Relaxed).is_null());
    }

    #[test]
    fn allocations_are_forwarded_to_the_system() {
        let layout = Layout::from_size_align(100, 64).expect("a layout");
        // SAFETY: the block is written within its size and freed with its layout.
        unsafe {
            let block = Allocator.alloc_zeroed(layout);
            assert_eq!(block.add(99).read(), 0);
            block.write(7);
            let block = Allocator.realloc(block, layout, 200);
            assert_eq!(block.read(), 7);
            Allocator.dealloc(block, Layout::from_size_align(200, 64).expect("a layout"));
        }
    }
}
