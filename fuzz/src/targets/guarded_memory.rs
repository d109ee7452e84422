//! Memory between inaccessible guard pages, so that an access outside of it ends the process.

use std::ffi::c_void;
use std::ptr::null_mut;

/// Memory between two regions of guard pages. The data is a part of the memory.
pub struct Guarded {
    map: *mut c_void,
    mapped: usize,
    page: usize,
    margin: usize,
    capacity: usize,
    data: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this value; users of the address are responsible for races.
unsafe impl Send for Guarded {}
// SAFETY: as for Send.
unsafe impl Sync for Guarded {}

/// The value of the bytes between the data and the guard regions, which must not change.
const CANARY: u8 = 0xa5;

impl Guarded {
    /// Allocates data of `bytes` bytes that end at a guard page.
    ///
    /// # Panics
    /// If memory cannot be allocated.
    pub fn new(bytes: usize) -> Guarded {
        Guarded::with_margin(bytes, 1)
    }

    /// Allocates data like [`Guarded::new`], but with guard regions of `margin` bytes, rounded up to pages.
    ///
    /// # Panics
    /// If memory cannot be allocated.
    pub fn with_margin(bytes: usize, margin: usize) -> Guarded {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let margin = margin.next_multiple_of(page);
        let capacity = bytes.next_multiple_of(page).max(page);
        let mapped = capacity + 2 * margin;
        // SAFETY: a new private mapping, whose outer pages are then made inaccessible.
        let map = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map =
                libc::mmap(null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(map, libc::MAP_FAILED, "no memory for {bytes} bytes");
            for offset in [0, margin + capacity] {
                assert_eq!(libc::mprotect(map.byte_add(offset), margin, libc::PROT_NONE), 0);
            }
            map
        };
        let mut guarded = Guarded { map, mapped, page, margin, capacity, data: null_mut(), len: 0 };
        guarded.place(bytes, true);
        guarded
    }

    /// Moves the data to the last `len` bytes of the memory if `at_end`, otherwise to the first, and writes canaries to
    /// the bytes around it. The bytes of the data are unchanged.
    ///
    /// # Panics
    /// If the memory is smaller than `len`.
    pub fn place(&mut self, len: usize, at_end: bool) {
        assert!(len <= self.capacity);
        let first = if at_end { self.capacity - len } else { 0 };
        self.data = self.map.cast::<u8>().wrapping_add(self.margin + first);
        self.len = len;
        let fill = |bytes: &mut [u8]| bytes.fill(CANARY);
        let (before, after) = self.canary_ranges();
        // SAFETY: both lie between the guard regions, outside the data.
        unsafe {
            fill(std::slice::from_raw_parts_mut(before.0, before.1));
            fill(std::slice::from_raw_parts_mut(after.0, after.1));
        }
    }

    /// Returns the address and length of the bytes with canaries before and after the data, at most
    /// a page each.
    fn canary_ranges(&self) -> ((*mut u8, usize), (*mut u8, usize)) {
        let start = self.map.cast::<u8>().wrapping_add(self.margin);
        let before = self.data as usize - start as usize;
        let after = self.capacity - before - self.len;
        let (before, after) = (before.min(self.page), after.min(self.page));
        ((self.data.wrapping_sub(before), before), (self.data.wrapping_add(self.len), after))
    }

    /// Whether the canaries around the data are unchanged.
    pub fn is_intact(&self) -> bool {
        let (before, after) = self.canary_ranges();
        [before, after].into_iter().all(|(start, len)| {
            // SAFETY: these bytes lie between the guard regions and were written by `place`.
            unsafe { std::slice::from_raw_parts(start, len) }.iter().all(|&b| b == CANARY)
        })
    }

    /// Returns the address of the data.
    pub fn as_ptr(&self) -> *mut u8 {
        self.data
    }

    /// Returns the data as elements of a numeric type.
    pub fn as_mut<T: Copy>(&mut self) -> &mut [T] {
        assert!(self.data.cast::<T>().is_aligned());
        // SAFETY: the data is initialized memory of this mapping, and every bit pattern is a valid number.
        unsafe { std::slice::from_raw_parts_mut(self.data.cast(), self.len / size_of::<T>()) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.map, self.mapped) };
    }
}
