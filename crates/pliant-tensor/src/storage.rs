//! The memory of tensors: aligned buffers that Pliant allocates, and borrowed foreign memory.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::memory_poison::poison;
use crate::tensor::OBJECT;
use crate::{TensorError, memory_limit};

/// Alignment in bytes of memory allocated by Pliant: the size of a cache line and of an AVX-512 vector.
pub const ALIGNMENT: usize = 64;

/// Overhead of a buffer in bytes: padding for alignment, the allocator's header, and the storage and tensor handles that most
/// buffers have.
const OVERHEAD: usize = ALIGNMENT + 2 * WORD + size_of::<Inner>() + 4 * WORD + OBJECT + 4 * WORD;
const WORD: usize = size_of::<usize>();

/// Minimum size in bytes of a zeroed buffer that is allocated without [`ALIGNMENT`] and aligned by padding. For such an
/// allocation, the allocator uses fresh pages of the operating system, which are zero, without clearing them.
const LARGE_ZEROED: usize = 128 << 10;

/// A buffer of initialized bytes that is aligned to [`ALIGNMENT`] and freed on drop. It may contain stale data.
pub struct AlignedBuf(Arc<Inner>);

// SAFETY: this is the only handle to memory that it owns. Code that uses the raw pointer is
// responsible for synchronization.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads fields.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    fn with(
        len: usize,
        size: usize,
        align: usize,
        alloc: unsafe fn(Layout) -> *mut u8,
    ) -> Result<Self, TensorError> {
        let (allocation, ptr) = Allocation::new(len, size, align, alloc)?;
        let memory = Memory::Own { allocation, owner: 0, recycle: None };
        #[expect(clippy::arc_with_non_send_sync, reason = "AlignedBuf asserts Send and Sync")]
        let inner = Arc::new(Inner { ptr: ptr.as_ptr(), len, read_only: false, memory });
        Ok(AlignedBuf(inner))
    }

    /// Allocates `len` uninitialized bytes.
    ///
    /// # Errors
    /// `OutOfMemory` or `MemoryLimit` if the allocation fails.
    ///
    /// # Safety
    /// Every byte must be written before safe code can read it, for example through a tensor.
    pub unsafe fn uninit(len: usize) -> Result<Self, TensorError> {
        let buf = Self::with(len, len.max(ALIGNMENT), ALIGNMENT, alloc)?;
        // SAFETY: the buffer has `len` bytes and is not shared.
        unsafe { poison(buf.as_ptr(), len) };
        Ok(buf)
    }

    /// Allocates `len` zero bytes.
    ///
    /// # Errors
    /// `OutOfMemory` or `MemoryLimit` if the allocation fails.
    pub fn zeroed(len: usize) -> Result<Self, TensorError> {
        if len < LARGE_ZEROED {
            return Self::with(len, len.max(ALIGNMENT), ALIGNMENT, alloc_zeroed);
        }
        // The allocator clears zeroed memory with a large alignment explicitly, page by page. With its natural alignment, it knows
        // that fresh pages are zero and does not touch them.
        let size = len.checked_add(ALIGNMENT).ok_or(TensorError::OutOfMemory { bytes: len })?;
        Self::with(len, size, align_of::<u128>(), alloc_zeroed)
    }

    /// Returns the size of the buffer in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the size of the buffer is 0.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.ptr
    }

    /// Returns the id of the owner (such as a virtual machine) whose data the buffer may contain. A memory pool assigns the id
    /// ([`AlignedBuf::set_pool`]), so that it reuses the buffer only for the same owner. Initially 0.
    pub fn owner(&self) -> u64 {
        self.0.owner()
    }

    /// Assigns the buffer to a memory pool. From now on, the buffer may contain data of the owner (such as a virtual machine)
    /// with the id `owner`. When the last [`Storage`] of the buffer is dropped, the buffer is passed to `recycle`.
    pub fn set_pool(&mut self, owner: u64, recycle: Recycle) {
        match Arc::get_mut(&mut self.0).map(|inner| &mut inner.memory) {
            Some(Memory::Own { owner: own, recycle: back, .. }) => {
                (*own, *back) = (owner, Some(recycle));
            }
            _ => unreachable!("a buffer is the only handle of its own memory"),
        }
    }
}

/// A function that accepts the buffer of a dropped [`Storage`] for reuse. It is called on the thread that dropped the storage.
pub type Recycle = fn(AlignedBuf);

/// Memory from the system allocator. It counts towards the memory limit, and is freed on drop.
struct Allocation {
    base: NonNull<u8>,
    layout: Layout,
}

impl Allocation {
    /// Allocates `size` bytes. Also returns the first aligned address, after which at least `len` bytes follow.
    fn new(
        len: usize,
        size: usize,
        align: usize,
        alloc: unsafe fn(Layout) -> *mut u8,
    ) -> Result<(Self, NonNull<u8>), TensorError> {
        let error = TensorError::OutOfMemory { bytes: len };
        let Ok(layout) = Layout::from_size_align(size, align) else { return Err(error) };
        let counted = size.checked_add(OVERHEAD).ok_or(TensorError::OutOfMemory { bytes: len })?;
        memory_limit::acquire(counted)?;
        // SAFETY: all callers request at least ALIGNMENT bytes, so the size is not zero.
        let allocated = || NonNull::new(unsafe { alloc(layout) });
        let base = allocated().or_else(|| {
            memory_limit::release();
            allocated()
        });
        let Some(base) = base else {
            memory_limit::release_bytes(counted);
            return Err(error);
        };
        // 0 if the layout is aligned already. Otherwise `size` includes the skipped bytes.
        let skip = base.align_offset(ALIGNMENT);
        // SAFETY: `size` is at least `len` plus the bytes that alignment can skip.
        Ok((Allocation { base, layout }, unsafe { base.add(skip) }))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: the allocator returned the base for this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
        memory_limit::release_bytes(self.layout.size() + OVERHEAD);
    }
}

enum Memory {
    Own {
        #[expect(dead_code, reason = "frees the memory on drop")]
        allocation: Allocation,
        owner: u64,
        recycle: Option<Recycle>,
    },
    Foreign(#[expect(dead_code, reason = "calls the owner on drop")] Release),
}

/// The function that releases foreign memory. It is called when this value is dropped.
struct Release(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(release) = self.0.take() {
            release();
        }
    }
}

struct Inner {
    ptr: *mut u8,
    len: usize,
    read_only: bool,
    memory: Memory,
}

impl Inner {
    fn owner(&self) -> u64 {
        match self.memory {
            Memory::Own { owner, .. } => owner,
            Memory::Foreign(_) => 0,
        }
    }
}

/// A shared range of bytes, on which tensors are views. Clones share it.
#[derive(Clone)]
pub struct Storage(ManuallyDrop<Arc<Inner>>);

// SAFETY: the bytes are plain data whose owner is Send + Sync. Code that writes through the raw
// pointer must synchronize its writes (see `Storage::as_ptr`).
unsafe impl Send for Storage {}
// SAFETY: as for Send.
unsafe impl Sync for Storage {}

impl Storage {
    /// Allocates `len` uninitialized bytes, aligned to [`ALIGNMENT`].
    ///
    /// # Errors
    /// `OutOfMemory` or `MemoryLimit` if the allocation fails.
    ///
    /// # Safety
    /// Every byte must be written before safe code can read it, for example through a tensor.
    pub unsafe fn uninit(len: usize) -> Result<Self, TensorError> {
        // SAFETY: guaranteed by the caller.
        Ok(Self::from_buf(unsafe { AlignedBuf::uninit(len) }?))
    }

    /// Allocates `len` zero bytes, aligned to [`ALIGNMENT`].
    ///
    /// # Errors
    /// `OutOfMemory` or `MemoryLimit` if the allocation fails.
    pub fn zeroed(len: usize) -> Result<Self, TensorError> {
        Ok(Self::from_buf(AlignedBuf::zeroed(len)?))
    }

    /// Creates a storage from a buffer. When the last handle is dropped, the buffer returns to its pool ([`AlignedBuf::set_pool`])
    /// or is freed.
    pub fn from_buf(buf: AlignedBuf) -> Self {
        Storage(ManuallyDrop::new(buf.0))
    }

    /// Borrows foreign memory. `release` is called when the last handle is dropped. Tensors on a `read_only` storage are read-only.
    ///
    /// # Safety
    /// `ptr` must be readable for `len` initialized bytes (and writable, unless `read_only`) from
    /// any thread until `release` is called. If `len` is 0, `ptr` may be invalid.
    pub unsafe fn from_foreign(
        ptr: *mut u8,
        len: usize,
        read_only: bool,
        release: impl FnOnce() + Send + Sync + 'static,
    ) -> Self {
        #[expect(clippy::arc_with_non_send_sync, reason = "Storage asserts Send and Sync")]
        let inner = Arc::new(Inner {
            ptr,
            len,
            read_only,
            memory: Memory::Foreign(Release(Some(Box::new(release)))),
        });
        Storage(ManuallyDrop::new(inner))
    }

    /// Returns the size of the storage in bytes.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the size of the storage is 0.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the id of the owner (such as a virtual machine) whose data the memory may contain ([`AlignedBuf::owner`]); 0 for
    /// foreign memory.
    pub fn owner(&self) -> u64 {
        self.0.owner()
    }

    /// Whether the memory is read-only.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Returns the address of the first byte. Code that writes through it must ensure that the
    /// storage is not read-only and that nothing else accesses these bytes at the same time.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.ptr
    }

    /// Whether this is the only handle to the storage.
    pub fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some()
    }

    /// Whether this is the only handle to memory allocated by Pliant. If so, no foreign code can access it.
    pub(crate) fn is_unique_buffer(&self) -> bool {
        matches!(self.0.memory, Memory::Own { .. })
            && !self.0.read_only
            && Arc::strong_count(&self.0) == 1
            && Arc::weak_count(&self.0) == 0
    }

    /// Whether both handles refer to the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: taken only here, and not used afterwards.
        let inner = unsafe { ManuallyDrop::take(&mut self.0) };
        // There are no weak handles, and no other thread can clone the only handle. If two threads drop the last two handles at the
        // same time, neither sees a count of 1, and the buffer is freed instead of recycled.
        if let Memory::Own { recycle: Some(recycle), .. } = inner.memory
            && Arc::strong_count(&inner) == 1
        {
            // Synchronizes with accesses by other threads before they dropped their handles.
            fence(Ordering::Acquire);
            recycle(AlignedBuf(inner));
        }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.memory {
            Memory::Own { .. } => "owned",
            Memory::Foreign(_) => "foreign",
        };
        write!(f, "Storage({} bytes, {kind})", self.0.len)
    }
}
