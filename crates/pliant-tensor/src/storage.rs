//! Memory behind tensors: aligned buffers that Pliant owns and foreign memory that it borrows.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::poison::poison;
use crate::tensor::OBJECT;
use crate::{TensorError, budget};

/// Alignment of the memory that Pliant allocates: a cache line and an AVX-512 vector.
pub const ALIGNMENT: usize = 64;

/// What a buffer takes beside its bytes: what aligning it may skip, the allocator's header, and the storage and the tensor
/// that are made of nearly all of them.
const BESIDE: usize = ALIGNMENT + 2 * WORD + size_of::<Inner>() + 4 * WORD + OBJECT + 4 * WORD;
const WORD: usize = size_of::<usize>();

/// From this size on, zeroed memory comes untouched from the system.
const LARGE: usize = 128 << 10;

/// An owned, [`ALIGNMENT`]-aligned buffer of initialised bytes, freed on drop. Its contents may be stale.
pub struct AlignedBuf(Arc<Inner>);

// SAFETY: this is the only handle of its memory, which is its own; access through raw pointers is the accessor's
// responsibility.
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

    /// Allocates `len` bytes, not initialised.
    ///
    /// # Errors
    /// `OutOfMemory`.
    ///
    /// # Safety
    /// Every byte is written before safe code can read it, through a tensor for instance.
    pub unsafe fn uninit(len: usize) -> Result<Self, TensorError> {
        let buf = Self::with(len, len.max(ALIGNMENT), ALIGNMENT, alloc)?;
        // SAFETY: the buffer has `len` bytes and is not shared.
        unsafe { poison(buf.as_ptr(), len) };
        Ok(buf)
    }

    /// Allocates `len` zero bytes.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn zeroed(len: usize) -> Result<Self, TensorError> {
        if len < LARGE {
            return Self::with(len, len.max(ALIGNMENT), ALIGNMENT, alloc_zeroed);
        }
        // Over-aligned zeroed memory is zeroed by hand, page by page; with the system's own alignment, fresh pages
        // are known to be zero and stay untouched.
        let size = len.checked_add(ALIGNMENT).ok_or(TensorError::OutOfMemory { bytes: len })?;
        Self::with(len, size, align_of::<u128>(), alloc_zeroed)
    }

    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the buffer holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.ptr
    }

    /// The number of the owner whose data the buffer may hold, assigned by the pool that reuses it; 0 at first.
    pub fn owner(&self) -> u64 {
        self.0.owner()
    }

    /// Adds the buffer to a pool. It may hold data of `owner` from now on, and goes to `recycle` when the last
    /// [`Storage`] of it is dropped.
    pub fn set_pool(&mut self, owner: u64, recycle: Recycle) {
        match Arc::get_mut(&mut self.0).map(|inner| &mut inner.memory) {
            Some(Memory::Own { owner: own, recycle: back, .. }) => {
                (*own, *back) = (owner, Some(recycle));
            }
            _ => unreachable!("a buffer is the only handle of its own memory"),
        }
    }
}

/// Takes back the buffer of a dropped [`Storage`], to reuse or to free. Called on the dropping thread.
pub type Recycle = fn(AlignedBuf);

/// Memory from the system's allocator, counted by the memory limit and freed on drop.
struct Allocation {
    base: NonNull<u8>,
    layout: Layout,
}

impl Allocation {
    /// Allocates `size` bytes. Also returns the first aligned address among them; at least `len` bytes follow it.
    fn new(
        len: usize,
        size: usize,
        align: usize,
        alloc: unsafe fn(Layout) -> *mut u8,
    ) -> Result<(Self, NonNull<u8>), TensorError> {
        let refused = TensorError::OutOfMemory { bytes: len };
        let Ok(layout) = Layout::from_size_align(size, align) else { return Err(refused) };
        let counted = size.checked_add(BESIDE).ok_or(TensorError::OutOfMemory { bytes: len })?;
        budget::take(counted)?;
        // SAFETY: the callers ask for at least ALIGNMENT bytes, never zero.
        let allocated = || NonNull::new(unsafe { alloc(layout) });
        let base = allocated().or_else(|| {
            budget::release();
            allocated()
        });
        let Some(base) = base else {
            budget::give(counted);
            return Err(refused);
        };
        // Zero if the layout is aligned already; otherwise `size` includes the bytes that this skips.
        let skip = base.align_offset(ALIGNMENT);
        // SAFETY: `size` is at least `len` plus what aligning may skip.
        Ok((Allocation { base, layout }, unsafe { base.add(skip) }))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: the base came from the allocator with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
        budget::give(self.layout.size() + BESIDE);
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

/// Calls a function on drop.
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

/// A shared run of bytes that tensors view; cloning shares it.
#[derive(Clone)]
pub struct Storage(ManuallyDrop<Arc<Inner>>);

// SAFETY: the bytes are plain data whose owner is Send + Sync; those who write through the raw pointer answer for
// ordering their writes (see `Storage::as_ptr`).
unsafe impl Send for Storage {}
// SAFETY: as for Send.
unsafe impl Sync for Storage {}

impl Storage {
    /// Allocates `len` bytes, aligned to [`ALIGNMENT`], not initialised.
    ///
    /// # Errors
    /// `OutOfMemory`.
    ///
    /// # Safety
    /// As [`AlignedBuf::uninit`].
    pub unsafe fn uninit(len: usize) -> Result<Self, TensorError> {
        // SAFETY: by the caller's promise.
        Ok(Self::from_buf(unsafe { AlignedBuf::uninit(len) }?))
    }

    /// Allocates `len` zero bytes, aligned to [`ALIGNMENT`].
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn zeroed(len: usize) -> Result<Self, TensorError> {
        Ok(Self::from_buf(AlignedBuf::zeroed(len)?))
    }

    /// Shares a buffer. When the last user drops it, it goes back to its pool ([`AlignedBuf::set_pool`]) or is freed.
    pub fn from_buf(buf: AlignedBuf) -> Self {
        Storage(ManuallyDrop::new(buf.0))
    }

    /// Borrows foreign memory; `release` runs when the last user drops it. Every tensor on a `read_only` storage is
    /// read-only.
    ///
    /// # Safety
    /// `ptr` must be readable for `len` initialised bytes (writable too, unless `read_only`) from any thread until
    /// `release` runs. `len` may be 0, and then `ptr` may be anything.
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

    /// Bytes in the storage.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the storage holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The owner number of its buffer ([`AlignedBuf::owner`]); 0 for foreign memory.
    pub fn owner(&self) -> u64 {
        self.0.owner()
    }

    /// Whether the bytes must never be written, whatever the tensor.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// The first byte. Whoever writes through it must know that no one else reads or writes those bytes meanwhile
    /// and that the storage is not read-only.
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.ptr
    }

    /// Whether this handle is the only one.
    pub fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some()
    }

    /// Whether this handle is the only one of memory that was allocated here, so that nobody outside reads it either.
    pub(crate) fn is_sole_buffer(&self) -> bool {
        matches!(self.0.memory, Memory::Own { .. })
            && !self.0.read_only
            && Arc::strong_count(&self.0) == 1
            && Arc::weak_count(&self.0) == 0
    }

    /// Whether both handles name the same memory.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: taken once, here, and never used afterwards.
        let inner = unsafe { ManuallyDrop::take(&mut self.0) };
        // There are no weak handles, and nobody else can clone the only handle. If two threads drop the last two handles
        // at once, the buffer is freed.
        if let Memory::Own { recycle: Some(recycle), .. } = inner.memory
            && Arc::strong_count(&inner) == 1
        {
            // What other threads did with the memory before they dropped their handles has happened.
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
