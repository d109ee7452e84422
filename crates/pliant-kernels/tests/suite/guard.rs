//! Memory that ends, or begins, at a page that may not be touched: a kernel that reaches outside its operand dies.

use std::ffi::c_void;

/// Elements with a forbidden page before and after; they touch the one or the other.
pub struct Guarded<T> {
    map: *mut c_void,
    bytes: usize,
    data: *mut T,
    len: usize,
}

impl<T: Copy> Guarded<T> {
    /// A copy of `values` that ends right before a forbidden page, or begins right after one.
    pub fn new(values: &[T], at_end: bool) -> Guarded<T> {
        Guarded::after(values, at_end, 0)
    }

    /// As [`Guarded::new`], or one byte after a forbidden page: an odd address.
    pub fn bytes(values: &[T], at_end: bool) -> Guarded<T> {
        const { assert!(align_of::<T>() == 1) };
        Guarded::after(values, at_end, 1)
    }

    /// As [`Guarded::new`], or so many bytes after a forbidden page.
    fn after(values: &[T], at_end: bool, apart: usize) -> Guarded<T> {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let size = size_of_val(values);
        let room = (size + apart).next_multiple_of(page).max(page);
        let bytes = room + 2 * page;
        // SAFETY: a new private mapping; the outer pages are then forbidden.
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
            for offset in [0, page + room] {
                assert_eq!(libc::mprotect(map.byte_add(offset), page, libc::PROT_NONE), 0);
            }
            let data =
                map.byte_add(if at_end { page + room - size } else { page + apart }).cast::<T>();
            std::ptr::copy_nonoverlapping(values.as_ptr(), data, values.len());
            (map, data)
        };
        Guarded { map, bytes, data, len: values.len() }
    }

    pub fn as_ptr(&self) -> *mut T {
        self.data
    }

    pub fn values(&self) -> &[T] {
        // SAFETY: these elements were written when the mapping was made.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.map, self.bytes) };
    }
}
