//! Memory adjacent to guard pages: a kernel that accesses memory outside of its operand crashes the test.

use std::ffi::c_void;

/// An array between two guard pages, directly adjacent to one of them.
pub struct Guarded<T> {
    map: *mut c_void,
    bytes: usize,
    data: *mut T,
    len: usize,
}

impl<T: Copy> Guarded<T> {
    /// Copies `values` to memory that ends directly before a guard page (`at_end`), or starts directly after one.
    pub fn new(values: &[T], at_end: bool) -> Guarded<T> {
        Guarded::at_offset(values, at_end, 0)
    }

    /// Copies `values` to memory that ends directly before a guard page (`at_end`), or starts one
    /// byte after a guard page, at an odd address.
    pub fn bytes(values: &[T], at_end: bool) -> Guarded<T> {
        const { assert!(align_of::<T>() == 1) };
        Guarded::at_offset(values, at_end, 1)
    }

    /// Copies `values` to memory that ends directly before a guard page (`at_end`), or starts
    /// `offset` bytes after a guard page.
    fn at_offset(values: &[T], at_end: bool, offset: usize) -> Guarded<T> {
        // SAFETY: `sysconf` only returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let size = size_of_val(values);
        let data_bytes = (size + offset).next_multiple_of(page).max(page);
        let bytes = data_bytes + 2 * page;
        // SAFETY: a new private mapping, whose outer pages are then protected.
        let (map, data) = unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(map, libc::MAP_FAILED);
            for guard in [0, page + data_bytes] {
                assert_eq!(libc::mprotect(map.byte_add(guard), page, libc::PROT_NONE), 0);
            }
            let data = map
                .byte_add(if at_end { page + data_bytes - size } else { page + offset })
                .cast::<T>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), data, values.len());
            (map, data)
        };
        Guarded { map, bytes, data, len: values.len() }
    }

    pub fn as_ptr(&self) -> *mut T {
        self.data
    }

    pub fn values(&self) -> &[T] {
        // SAFETY: these elements were written when the mapping was created.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping.
        unsafe { libc::munmap(self.map, self.bytes) };
    }
}
