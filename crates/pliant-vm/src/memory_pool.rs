//! Memory of running programs: each thread has a lock-free pool of free blocks with a size limit.
//!
//! A released storage goes to the pool of the releasing thread. The next storage of a similar size reuses it. At the end of a run,
//! the pool keeps blocks up to the limit ([`set_pool_limit`]), or up to the memory that each of the last two runs needed if that is
//! larger. It returns all other blocks to the system. So repeated runs of the same size allocate no memory, and the system gets
//! back the memory that only one large run needed. During a run, the pool keeps blocks up to [`RUNNING_FACTOR`] times the limit,
//! and blocks that this run or the last one needed. Returning blocks that the next layer or the next run needs would cause page
//! faults and zero-filling: 6 % of the time of DenseNet-121 with two images of 256 x 320.
//!
//! A block belongs to the VM that allocated it; no other VM reuses it. When a VM is dropped, its
//! blocks are removed from the pools of all threads ([`Owner`]).

use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_pool::{CacheGuard, ThreadCache, ThreadCaches};
use pliant_tensor::{ALIGNMENT, AlignedBuf, Storage, TensorError, on_low_memory, poison};

use crate::memory_owner_ids::{KERNEL_OWNER, NO_OWNER, end_owner, is_live, new_owner};

/// Default size limit of a thread's pool in bytes.
const DEFAULT_LIMIT: usize = 64 << 20;
/// The factor by which a thread's pool may exceed the size limit while a VM runs on the thread.
const RUNNING_FACTOR: usize = 4;
/// Number of size classes: four per power of two. Rounding up to a size class wastes at most a
/// quarter of a block.
const CLASSES: usize = 4 * usize::BITS as usize;

/// Minimum number of bytes of a request that may take a block of a larger size class.
const MIN_SHARED_BYTES: usize = 64 << 10;
/// The number of larger size classes in which a request of at least [`MIN_SHARED_BYTES`] looks for a free block. Blocks are
/// up to 4 times as large as requested.
const SHARED_CLASSES: usize = 8;

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// Sets the size limit of each thread's pool, in bytes. Default: 64 MiB.
pub fn set_pool_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Returns the size of this thread's pool in bytes.
pub fn pooled_bytes() -> usize {
    with_pool(|pool| pool.bytes).unwrap_or(0)
}

/// Returns the memory in this thread's pool to the system.
pub fn release_pooled() {
    drop(with_pool(Pool::take_all));
}

/// Returns all pooled and cached memory to the system. A thread on which a VM is running returns
/// its memory when the run ends.
fn release_all() {
    release_pooled();
    POOLS.empty(Pool::take_all);
    pliant_pool::release();
}

#[derive(Default)]
struct Pool {
    /// Free blocks by size class. Empty until the first block is freed.
    free: Vec<Vec<AlignedBuf>>,
    bytes: usize,
    /// The owner id of the VM that runs on this thread; [`NO_OWNER`] if no VM runs.
    running: u64,
    /// The number of bytes of memory that the current run on this thread has taken from the pool or newly allocated, and not
    /// released.
    taken: usize,
    /// The maximum of `taken` during the current run, or during the last run if none is running.
    peak: usize,
    /// The maximum of `taken` during the run before the run that `peak` describes.
    last_peak: usize,
}

/// The memory pools of all threads.
static POOLS: ThreadCaches<Pool> = ThreadCaches::new();

thread_local! {
    /// This thread's pool of free blocks.
    static CACHE: OnceCell<ThreadCache<Pool>> = const { OnceCell::new() };
    /// A pointer to this thread's pool, set while a VM runs on the thread and no code is using the
    /// pool. During that time, [`RunGuard`] keeps the pool acquired. The cell has no destructor, so
    /// access is cheap.
    static CURRENT: Cell<Option<NonNull<Pool>>> = const { Cell::new(None) };
}

/// Acquires this thread's pool. Returns `None` during thread exit and while the pool is in use.
#[cold]
fn enter() -> Option<CacheGuard<'static, Pool>> {
    let claim = || {
        // Release pooled memory when the process runs short of memory.
        on_low_memory(release_all);
        POOLS.claim()
    };
    CACHE.try_with(|cache| cache.get_or_init(claim).enter()).ok().flatten()
}

/// Calls `f` with this thread's pool. Returns `None`, without calling `f`, during thread exit and while the pool is in use.
#[inline(always)]
fn with_pool<R>(f: impl FnOnce(&mut Pool) -> R) -> Option<R> {
    let Some(mut pool) = CURRENT.take() else {
        return enter().map(|mut pool| f(&mut pool));
    };
    // SAFETY: `RunGuard` keeps the pool entered and clears the pointer before leaving it. The
    // pointer was taken, so there is no second reference.
    let result = f(unsafe { pool.as_mut() });
    CURRENT.set(Some(pool));
    Some(result)
}

/// The ownership of pooled memory by a VM. Dropping this value frees all pooled blocks of the VM
/// and the memory cached by library kernels.
pub(crate) struct Owner {
    id: u64,
    /// Whether dropping the owner also returns free memory of the C allocator to the system.
    trim: bool,
}

impl Owner {
    pub(crate) fn new(trim: bool) -> Owner {
        Owner { id: new_owner(), trim }
    }

    /// Returns the id that marks the VM's blocks.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Makes the VM the owner of this thread's allocations until the returned guard is dropped. If
    /// the pool is unavailable, allocations have no owner and are not pooled.
    pub(crate) fn begin(&self) -> RunGuard {
        let mut pool = if CURRENT.get().is_none() { enter() } else { None };
        if let Some(pool) = &mut pool {
            pool.last_peak = pool.peak;
            (pool.taken, pool.peak) = (0, 0);
            CURRENT.set(Some(NonNull::from(&mut **pool)));
        }
        let outer = set_running(self.id);
        RunGuard { outer, pool, not_send: PhantomData }
    }
}

/// Sets the owner id of the VM that runs on this thread. Returns the previous id.
fn set_running(owner: u64) -> u64 {
    let Some(mut pool) = CURRENT.get() else { return NO_OWNER };
    // SAFETY: as in `with_pool`. There is no reference to the pool, because the pointer is not
    // taken.
    let running = unsafe { &mut pool.as_mut().running };
    std::mem::replace(running, owner)
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Must come first, so that blocks freed from here on are not pooled.
        end_owner(self.id);
        let take =
            |pool: &mut Pool| pool.extract(|owner| owner == self.id || owner == KERNEL_OWNER);
        drop(with_pool(take));
        POOLS.empty(take);
        pliant_pool::release();
        if self.trim {
            pliant_pool::trim();
        }
    }
}

/// Marks a VM as running on this thread until dropped. Not `Send`, because the pool belongs to the thread.
pub(crate) struct RunGuard {
    /// The owner id of the VM that ran on this thread before, to restore when the guard is dropped;
    /// [`NO_OWNER`] if no VM ran.
    outer: u64,
    /// The thread's pool. `None` if an enclosing run has already acquired the pool, or if [`enter`] could not acquire it.
    pool: Option<CacheGuard<'static, Pool>>,
    not_send: PhantomData<*const ()>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        set_running(self.outer);
        if let Some(pool) = &mut self.pool {
            CURRENT.set(None);
            pool.record_peak();
            let limit = pool.limit();
            if pool.bytes > limit {
                pool.evict_to(limit);
            }
        }
    }
}

/// Returns the size class for a request of `bytes` bytes, and the block size of this class in
/// bytes. Returns `None` on overflow.
fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let bytes = bytes.max(ALIGNMENT);
    let log = (bytes - 1).ilog2();
    // Sizes between 2^log and 2^(log + 1) are rounded up to a multiple of 2^(log - 2). `log` is at least 5, so the step is at least
    // 8 bytes.
    let step = 1usize << (log - 2);
    // `next_multiple_of` would divide.
    let size = bytes.checked_add(step - 1)? & !(step - 1);
    let quarter = (size >> (log - 2)) - 4;
    Some((4 * log as usize + quarter, size))
}

impl Pool {
    /// Takes a free block of the owner. `size` is the block size of the size class `class`. A large request may take a block of a
    /// larger class: in a convolutional network, later layers then reuse the large blocks of the first layers instead of allocating
    /// further ones.
    #[inline(always)]
    fn take(&mut self, class: usize, size: usize, owner: u64) -> Option<AlignedBuf> {
        let shared = if size < MIN_SHARED_BYTES { 0 } else { SHARED_CLASSES };
        let block = (class..=class + shared).find_map(|class| self.take_of(class, owner))?;
        self.bytes -= block.len();
        Some(block)
    }

    /// Takes a free block of one size class.
    #[inline(always)]
    fn take_of(&mut self, class: usize, owner: u64) -> Option<AlignedBuf> {
        let blocks = self.free.get_mut(class)?;
        // The most recently freed block is the most likely to be in a CPU cache.
        let at = blocks.iter().rposition(|block| block.owner() == owner)?;
        Some(blocks.swap_remove(at))
    }

    /// The current size limit of the pool in bytes.
    fn limit(&self) -> usize {
        let limit = LIMIT.load(Ordering::Relaxed);
        if self.running == NO_OWNER {
            return limit.max(self.peak.min(self.last_peak));
        }
        limit.saturating_mul(RUNNING_FACTOR).max(self.peak).max(self.last_peak)
    }

    /// Updates the maximum number of bytes that were taken. Must be called before `taken`
    /// decreases.
    #[inline(always)]
    fn record_peak(&mut self) {
        self.peak = self.peak.max(self.taken);
    }

    /// Adds a block to the pool. If the VM of the block was dropped, or the block exceeds the
    /// limit, frees the block instead.
    #[inline(always)]
    fn insert(&mut self, block: AlignedBuf) {
        self.record_peak();
        // A block may have been taken before the run, or by another thread.
        self.taken = self.taken.saturating_sub(block.len());
        let limit = self.limit();
        let Some((class, size)) = class_of(block.len()) else { return };
        let owner = block.owner();
        let live = owner == self.running && owner != NO_OWNER || is_live(owner);
        if size != block.len() || size > limit || !live {
            return;
        }
        if self.bytes + size > limit || self.free.is_empty() {
            self.evict_to(limit - size);
        }
        self.bytes += size;
        self.free[class].push(block);
    }

    /// Frees blocks until the pool has at most `limit` bytes. Frees the largest blocks first,
    /// because large blocks are the least likely to be reused.
    #[cold]
    fn evict_to(&mut self, limit: usize) {
        if self.free.is_empty() {
            self.free.resize_with(CLASSES, Vec::new);
        }
        let mut largest = CLASSES;
        while self.bytes > limit && largest > 0 {
            match self.free[largest - 1].pop() {
                Some(old) => self.bytes -= old.len(),
                None => largest -= 1,
            }
        }
    }

    /// Removes all blocks and returns them.
    fn take_all(&mut self) -> Vec<Vec<AlignedBuf>> {
        self.bytes = 0;
        std::mem::take(&mut self.free)
    }

    /// Removes and returns the blocks of all owners for which `of` returns true.
    fn extract(&mut self, of: impl Fn(u64) -> bool) -> Vec<AlignedBuf> {
        let mut taken = Vec::new();
        for blocks in &mut self.free {
            taken.extend(blocks.extract_if(.., |block| of(block.owner())));
        }
        self.bytes -= taken.iter().map(AlignedBuf::len).sum::<usize>();
        taken
    }
}

/// Takes a block from this thread's pool, or allocates one. The block belongs to the VM that runs on this thread, or to
/// `default_owner` if no VM runs.
fn take_block(bytes: usize, default_owner: u64) -> Result<AlignedBuf, TensorError> {
    let (class, size) = class_of(bytes).ok_or(TensorError::OutOfMemory { bytes })?;
    let mut owner = default_owner;
    let block = with_pool(|pool| {
        owner = if pool.running == NO_OWNER { default_owner } else { pool.running };
        let block = pool.take(class, size, owner);
        pool.taken = pool.taken.saturating_add(block.as_ref().map_or(size, AlignedBuf::len));
        block
    });
    let block = match block.flatten() {
        Some(block) => block,
        // Zero-filled, so that reading an unwritten element is never undefined behaviour.
        None => {
            let mut block = AlignedBuf::zeroed(size).inspect_err(|_| {
                with_pool(|pool| pool.taken = pool.taken.saturating_sub(size));
            })?;
            block.set_pool(owner, recycle_block);
            block
        }
    };
    // SAFETY: the block has `len` bytes and is not shared.
    unsafe { poison(block.as_ptr(), block.len()) };
    Ok(block)
}

fn recycle_block(block: AlignedBuf) {
    // During thread exit there is no pool, so the block is freed.
    let _ = with_pool(|pool| pool.insert(block));
}

/// Allocates a storage of at least `bytes` bytes. Its contents are arbitrary, but never data of another VM.
pub(crate) fn alloc_storage(bytes: usize) -> Result<Storage, TensorError> {
    Ok(Storage::from_buf(take_block(bytes, NO_OWNER)?))
}

/// The size in bytes of the header before each workspace block (one cache line). The header stores the [`AlignedBuf`] that owns
/// the block.
const HEADER: usize = ALIGNMENT;
const _: () = assert!(size_of::<AlignedBuf>() <= HEADER, "the owner fits the header");

/// Implements `KernelRuntime::alloc_workspace`: allocates scratch memory from this thread's pool.
pub(crate) unsafe extern "C" fn alloc_workspace(bytes: u64) -> *mut c_void {
    let size = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(HEADER));
    let block = size.map(|size| take_block(size, KERNEL_OWNER));
    let Some(Ok(block)) = block else { return std::ptr::null_mut() };
    let start = block.as_ptr();
    // SAFETY: the block has the header's bytes, aligned for `AlignedBuf`. Ownership moves into the
    // header.
    unsafe {
        start.cast::<ManuallyDrop<AlignedBuf>>().write(ManuallyDrop::new(block));
        start.add(HEADER).cast()
    }
}

/// Implements `KernelRuntime::free_workspace`: returns scratch memory to this thread's pool.
pub(crate) unsafe extern "C" fn free_workspace(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the pointer came from `alloc_workspace`, so the header before it holds the block.
    let block = unsafe { block.cast::<u8>().sub(HEADER).cast::<AlignedBuf>().read() };
    recycle_block(block);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Serializes the tests of this module, because dropping a VM empties the pools of all threads.
    fn serialize_tests() -> MutexGuard<'static, ()> {
        static LOCK: Mutex<()> = Mutex::new(());
        LOCK.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn size_classes_waste_at_most_a_quarter() {
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
    fn blocks_are_reused_within_the_pool_limit() {
        let _guard = serialize_tests();
        std::thread::spawn(|| {
            let owner = Owner::new(false);
            let running = owner.begin();
            let first = alloc_storage(1000).unwrap();
            let at = first.as_ptr();
            drop(first);
            assert_eq!(pooled_bytes(), 1024);
            assert_eq!(alloc_storage(900).unwrap().as_ptr(), at);
            let big: Vec<_> = (0..20).map(|_| alloc_storage(20 << 20).unwrap()).collect();
            drop(big);
            assert!(pooled_bytes() > DEFAULT_LIMIT);
            drop(running);
            assert!(pooled_bytes() <= DEFAULT_LIMIT, "a single large run keeps no memory");
            release_pooled();
            assert_eq!(pooled_bytes(), 0);
            assert!(alloc_storage(usize::MAX).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn equal_runs_reuse_more_memory_than_the_limit() {
        let _guard = serialize_tests();
        std::thread::spawn(|| {
            let owner = Owner::new(false);
            let size = RUNNING_FACTOR * DEFAULT_LIMIT + 1;
            let run = || {
                let _running = owner.begin();
                alloc_storage(size).unwrap().as_ptr()
            };
            run();
            assert_eq!(pooled_bytes(), 0, "a single large run keeps no memory");
            let second = run();
            assert!(pooled_bytes() >= size, "the next run may need as much");
            assert_eq!(run(), second);
            drop(owner.begin());
            assert_eq!(pooled_bytes(), 0, "a run without allocations releases the memory");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn blocks_are_reused_only_by_their_vm() {
        let _guard = serialize_tests();
        std::thread::spawn(|| {
            let (one, default_owner) = (Owner::new(false), Owner::new(false));
            let first = {
                let _running = one.begin();
                let first = alloc_storage(1000).unwrap();
                // SAFETY: the block has 1000 bytes.
                unsafe { first.as_ptr().write_bytes(7, 1000) };
                let at = first.as_ptr();
                drop(first);
                let _inner = default_owner.begin();
                let second = alloc_storage(1000).unwrap();
                assert_ne!(second.as_ptr(), at);
                drop(second);
                at
            };
            assert_eq!(pooled_bytes(), 2048);
            drop(alloc_storage(1000).unwrap());
            assert_eq!(pooled_bytes(), 2048, "blocks without an owner are not pooled");
            let running = one.begin();
            let again = alloc_storage(1000).unwrap();
            assert_eq!(again.as_ptr(), first);
            drop(running);
            drop(default_owner);
            assert_eq!(pooled_bytes(), 0);
            drop(one);
            drop(again);
            assert_eq!(pooled_bytes(), 0, "blocks that outlive their VM are not pooled");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn dropping_a_vm_frees_its_blocks_in_the_pools_of_other_threads() {
        let _guard = serialize_tests();
        use std::sync::mpsc::channel;
        let owner = Owner::new(false);
        let (say, said) = channel::<()>();
        let (ask, asked) = channel::<()>();
        std::thread::scope(|scope| {
            let owner = &owner;
            scope.spawn(move || {
                let running = owner.begin();
                drop(alloc_storage(5000).unwrap());
                drop(running);
                // SAFETY: the block is freed once.
                unsafe { free_workspace(alloc_workspace(3000)) };
                assert!(pooled_bytes() > 8000);
                say.send(()).unwrap();
                asked.recv().unwrap();
                assert_eq!(pooled_bytes(), 0);
            });
            said.recv().unwrap();
            drop(Owner { ..*owner });
            ask.send(()).unwrap();
        });
        std::mem::forget(owner);
    }

    #[test]
    fn workspaces_are_pooled_after_release() {
        let _guard = serialize_tests();
        // SAFETY: each block is written within its size and freed once.
        unsafe {
            let a = alloc_workspace(100);
            assert!(!a.is_null());
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
