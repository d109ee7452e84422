//! Memory of running programs: a pool of blocks per thread, without locks, with a bound on what it keeps.
//!
//! A storage that dies goes to the pool of the thread that drops it, and the next one of a similar size takes it from
//! there. What the pool keeps is bounded ([`set_pool_limit`]); larger blocks go back to the system at once, so memory
//! follows the shapes in use.

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_tensor::{ALIGNMENT, AlignedBuf, Storage, TensorError, on_shortage};

/// Bytes that each thread's pool keeps by default.
const DEFAULT_LIMIT: usize = 64 << 20;
/// Sizes are rounded up to one of four steps per power of two, so a block is at most a quarter too large.
const CLASSES: usize = 4 * usize::BITS as usize;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// Sets how many bytes of free memory each thread keeps for its next run (64 MiB at first).
pub fn set_pool_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Bytes of free memory that this thread keeps.
pub fn pooled_bytes() -> usize {
    POOL.try_with(|pool| pool.borrow().bytes).unwrap_or(0)
}

/// Gives the free memory that this thread keeps back to the system.
pub fn release_pooled() {
    let _ = POOL.try_with(|pool| std::mem::take(&mut *pool.borrow_mut()));
}

struct Pool {
    free: Vec<Vec<AlignedBuf>>,
    bytes: usize,
}

impl Default for Pool {
    fn default() -> Pool {
        // What is kept for later may be what is missing.
        on_shortage(release_pooled);
        Pool { free: (0..CLASSES).map(|_| Vec::new()).collect(), bytes: 0 }
    }
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::new(Pool::default());
}

/// The class of a request and the size of its blocks; `None` if the size cannot be rounded.
fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let bytes = bytes.max(ALIGNMENT);
    let log = (bytes - 1).ilog2();
    // Between 2^log and 2^(log + 1), in steps of a quarter; at least 16 bytes each, as the smallest log is 5.
    let step = 1usize << (log - 2);
    let size = bytes.checked_next_multiple_of(step)?;
    let quarter = (size - (1 << log)) / step;
    Some((4 * log as usize + quarter, size))
}

impl Pool {
    fn take(&mut self, class: usize) -> Option<AlignedBuf> {
        let block = self.free[class].pop()?;
        self.bytes -= block.len();
        Some(block)
    }

    fn give(&mut self, block: AlignedBuf) {
        let limit = LIMIT.load(Ordering::Relaxed);
        let Some((class, size)) = class_of(block.len()) else { return };
        if size != block.len() || size > limit {
            return;
        }
        // The largest blocks make room first: they are the dearest to keep and the rarest to fit.
        let mut largest = CLASSES;
        while self.bytes + size > limit {
            match self.free[..largest].last_mut().map(Vec::pop) {
                Some(Some(old)) => self.bytes -= old.len(),
                Some(None) => largest -= 1,
                None => return,
            }
        }
        self.bytes += size;
        self.free[class].push(block);
    }
}

fn take_block(bytes: usize) -> Result<AlignedBuf, TensorError> {
    let (class, size) = class_of(bytes).ok_or(TensorError::OutOfMemory { bytes })?;
    match POOL.try_with(|pool| pool.borrow_mut().take(class)) {
        Ok(Some(block)) => Ok(block),
        // Zeroed, so that what a kernel leaves unwritten is never uninitialised memory.
        _ => AlignedBuf::zeroed(size),
    }
}

fn give_block(block: AlignedBuf) {
    // While the thread ends there is no pool any more, and the block is freed.
    let _ = POOL.try_with(|pool| pool.borrow_mut().give(block));
}

/// A storage of at least `bytes` bytes from this thread's pool; its contents are arbitrary.
pub(crate) fn alloc_storage(bytes: usize) -> Result<Storage, TensorError> {
    Ok(Storage::from_buf(take_block(bytes)?, Some(give_block)))
}

/// Scratch blocks start with one cache line that holds the block's owner.
const HEADER: usize = ALIGNMENT;
const _: () = assert!(size_of::<AlignedBuf>() <= HEADER, "the owner fits the header");

/// `KernelRuntime::alloc_workspace`: scratch memory from this thread's pool.
pub(crate) unsafe extern "C" fn alloc_workspace(bytes: u64) -> *mut c_void {
    let size = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(HEADER));
    let Some(Ok(block)) = size.map(take_block) else { return std::ptr::null_mut() };
    let start = block.as_ptr();
    // SAFETY: the block has the header's bytes, aligned for its owner; ownership moves into it.
    unsafe {
        start.cast::<ManuallyDrop<AlignedBuf>>().write(ManuallyDrop::new(block));
        start.add(HEADER).cast()
    }
}

/// `KernelRuntime::free_workspace`.
pub(crate) unsafe extern "C" fn free_workspace(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the pointer came from `alloc_workspace`, so the owner stands in the header before it.
    let block = unsafe { block.cast::<u8>().sub(HEADER).cast::<AlignedBuf>().read() };
    give_block(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_at_most_a_quarter() {
        let mut last = 0;
        for bytes in (0..100_000).chain([1 << 20, (1 << 20) + 1, 1 << 40]) {
            let (class, size) = class_of(bytes).unwrap();
            assert!(size >= bytes && size >= 64, "{bytes}");
            assert!(bytes <= 64 || size <= bytes + bytes / 4, "{bytes} {size}");
            assert_eq!(class_of(size), Some((class, size)), "{bytes}");
            assert!(class >= last && class < CLASSES);
            last = class;
        }
        assert_eq!(class_of(usize::MAX), None);
    }

    #[test]
    fn blocks_are_reused_and_bounded() {
        std::thread::spawn(|| {
            let first = alloc_storage(1000).unwrap();
            let at = first.as_ptr();
            drop(first);
            assert_eq!(pooled_bytes(), 1024);
            assert_eq!(alloc_storage(900).unwrap().as_ptr(), at);
            let big: Vec<_> = (0..5).map(|_| alloc_storage(20 << 20).unwrap()).collect();
            drop(big);
            assert!(pooled_bytes() <= DEFAULT_LIMIT);
            drop(alloc_storage(DEFAULT_LIMIT + 1).unwrap());
            assert!(pooled_bytes() <= DEFAULT_LIMIT);
            release_pooled();
            assert_eq!(pooled_bytes(), 0);
            assert!(alloc_storage(usize::MAX).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn workspaces_come_and_go() {
        // SAFETY: each block is written within its size and freed once.
        unsafe {
            let a = alloc_workspace(100);
            a.cast::<u8>().write_bytes(7, 100);
            assert_eq!(a as usize % 64, 0);
            free_workspace(a);
            assert_eq!(alloc_workspace(100), a);
            free_workspace(a);
            assert!(alloc_workspace(u64::MAX).is_null());
            free_workspace(std::ptr::null_mut());
        }
    }
}
