//! A memory reserve for failed allocations. Code that cannot handle a failed allocation continues on the reserve until it reaches a
//! point where it can return an error.
//!
//! A program uses [`Allocator`] as its global allocator and calls [`prepare`]. Then a failed small allocation does not abort the
//! program: the reserve is freed and the allocation is retried. From then on, [`check`] fails until a new reserve can be allocated.
//! Compilations and runs call [`check`] where they can stop with an error.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::TensorError;

/// Size in bytes of the memory reserve, which is freed when an allocation fails. The C allocator maps a block of this size
/// separately, so freeing it returns its address space. Its pages are never touched.
const RESERVE_SIZE: usize = 40 << 20;
/// Maximum size in bytes of a failed allocation that is retried. Callers handle failures of larger allocations.
const MAX_RETRIED: usize = 4 << 20;

static RESERVE_BLOCK: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Whether an allocation has failed and no new memory reserve has been allocated since.
static SHORT: AtomicBool = AtomicBool::new(false);
/// Whether [`prepare`] was called.
static PREPARED: AtomicBool = AtomicBool::new(false);

fn layout() -> Layout {
    const { Layout::new::<[u8; RESERVE_SIZE]>() }
}

/// Allocates the memory reserve, which is freed when an allocation fails. If there is not enough memory for the reserve, [`check`]
/// fails until there is.
pub fn prepare() {
    PREPARED.store(true, Ordering::Relaxed);
    if !allocate_reserve() {
        SHORT.store(true, Ordering::Relaxed);
    }
}

/// Allocates the memory reserve (a block that is freed when an allocation fails) if there is none. Returns whether there is a
/// reserve afterwards.
fn allocate_reserve() -> bool {
    if !RESERVE_BLOCK.load(Ordering::Relaxed).is_null() {
        return true;
    }
    // SAFETY: the size of the layout is not zero.
    let block = unsafe { System.alloc(layout()) };
    if block.is_null() {
        return false;
    }
    let others =
        RESERVE_BLOCK.compare_exchange(null_mut(), block, Ordering::AcqRel, Ordering::Relaxed);
    if others.is_err() {
        // SAFETY: allocated above, with this layout, and not shared.
        unsafe { System.dealloc(block, layout()) };
    }
    true
}

/// Whether memory is low: an allocation has failed, for which the memory reserve was freed. Cheaper than [`check`], because it does
/// not try to allocate a new reserve.
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Fails unless `bytes` bytes can be allocated at the moment. Code that aborts when an allocation fails is called only after this
/// check, with the amount that it usually needs.
///
/// # Errors
/// `OutOfMemory` if the memory cannot be allocated.
///
/// # Panics
/// If `bytes` is 0 or larger than `isize::MAX`.
pub fn check_available(bytes: usize) -> Result<(), TensorError> {
    assert!(bytes > 0, "the size of the allocation must be positive");
    let layout = Layout::array::<u8>(bytes).expect("the size of the allocation must fit in isize");
    // Without `black_box`, the optimizer would remove the allocation and assume that it succeeded.
    // SAFETY: the size of the layout is not zero.
    let block = black_box(unsafe { System.alloc(layout) });
    if block.is_null() {
        return Err(TensorError::OutOfMemory { bytes });
    }
    // SAFETY: allocated above, with this layout. The pages were not touched.
    unsafe { System.dealloc(block, layout) };
    Ok(())
}

/// Fails if an earlier allocation failed, so that the memory reserve was freed, and no new reserve can be allocated.
///
/// # Errors
/// `OutOfMemory` if memory is low.
pub fn check() -> Result<(), TensorError> {
    if !is_short() {
        return Ok(());
    }
    if allocate_reserve() {
        SHORT.store(false, Ordering::Relaxed);
        return Ok(());
    }
    Err(TensorError::OutOfMemory { bytes: RESERVE_SIZE })
}

/// The system allocator, except that a failed small allocation frees the reserve and is retried.
///
/// # Examples
/// ```standalone_crate
/// use pliant_tensor::memory_reserve::{Allocator, check, prepare};
///
/// #[global_allocator]
/// static ALLOCATOR: Allocator = Allocator;
///
/// fn main() {
///     prepare();
///     assert!(check().is_ok());
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

/// Frees the reserve and retries a failed allocation of `bytes` bytes.
#[cold]
fn retry(bytes: usize, alloc: impl Fn() -> *mut u8) -> *mut u8 {
    if bytes > MAX_RETRIED || !PREPARED.load(Ordering::Relaxed) {
        return null_mut();
    }
    SHORT.store(true, Ordering::Relaxed);
    let block = RESERVE_BLOCK.swap(null_mut(), Ordering::AcqRel);
    if !block.is_null() {
        // SAFETY: allocated by `allocate_reserve` with this layout; the swap gave this thread ownership.
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
        if block.is_null() { retry(layout.size(), alloc) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: guaranteed by the caller.
        let alloc = || unsafe { System.alloc_zeroed(layout) };
        let block = alloc();
        if block.is_null() { retry(layout.size(), alloc) } else { block }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: guaranteed by the caller; a failed call leaves the block unchanged.
        let alloc = || unsafe { System.realloc(ptr, layout, new_size) };
        let block = alloc();
        if block.is_null() { retry(new_size, alloc) } else { block }
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
    fn more_memory_than_the_address_space_is_not_available() {
        assert!(check_available(1 << 20).is_ok());
        let error = check_available(1 << 60).expect_err("no machine has so much memory");
        assert!(matches!(error, TensorError::OutOfMemory { bytes } if bytes == 1 << 60));
    }

    #[test]
    fn failed_small_allocations_use_the_reserve_which_is_allocated_again() {
        prepare();
        assert!(!is_short() && check().is_ok());
        assert!(!RESERVE_BLOCK.load(Ordering::Relaxed).is_null());
        // A large allocation fails without using the reserve.
        assert!(
            retry(MAX_RETRIED + 1, || unreachable!("large allocations are not retried")).is_null()
        );
        assert!(!is_short());
        let calls = Cell::new(0);
        let alloc = || {
            calls.set(calls.get() + 1);
            null_mut()
        };
        // Allocations of other tests may reallocate the reserve immediately.
        let is_spent = (1..=1000).any(|attempt| {
            assert!(retry(8, alloc).is_null());
            assert!(calls.get() <= attempt);
            is_short() && RESERVE_BLOCK.load(Ordering::Relaxed).is_null()
        });
        assert!(is_spent);
        check().expect("there is memory");
        assert!(!is_short() && !RESERVE_BLOCK.load(Ordering::Relaxed).is_null());
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
