//! Starting threads when memory may be short.
//!
//! A newly started thread can still lack memory for its first accesses: its thread-local data, its
//! signal stack, the allocator's structures. In that case the C library or the standard library
//! aborts the process. Therefore a thread is started only if all of that fits beside its stack, and
//! the starting thread waits until the new one has touched it.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// The default stack size.
const STACK: usize = 2 << 20;
/// The address space that must be free before a helper is started. glibc's allocator reserves 128
/// MiB for the first allocations of a thread and keeps 64 MiB of it; the rest is for the helper's
/// work.
const ROOM: usize = 256 << 20;
/// The memory that a thread needs besides its stack: thread-local data, signal stack, first
/// allocations.
const FIRST: usize = 16 << 20;

/// Starts a helper thread with the default stack size. Other threads can do its work, so it is not
/// started if memory is low.
///
/// # Errors
/// If the system cannot start another thread or memory is low.
pub fn start_helper<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    check(STACK + ROOM, STACK + FIRST)?;
    let (started, starter) = Started::new();
    let handle = builder.stack_size(STACK).spawn(move || {
        started.tell();
        work()
    })?;
    starter.wait();
    Ok(handle)
}

/// Starts a scoped thread with a stack of `stack` bytes, for work that the starting thread waits
/// for.
///
/// # Errors
/// If the system cannot start another thread or memory is low.
pub fn start_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    check(stack.saturating_add(FIRST), stack.saturating_add(FIRST))?;
    let (started, starter) = Started::new();
    let handle = builder.stack_size(stack).spawn_scoped(scope, move || {
        started.tell();
        work()
    })?;
    starter.wait();
    Ok(handle)
}

/// Notifies the starting thread that the new thread has touched the memory that it needs first.
struct Started(SyncSender<()>);

struct Starter(Receiver<()>);

impl Started {
    fn new() -> (Started, Starter) {
        let (told, starter) = sync_channel(1);
        (Started(told), Starter(starter))
    }

    fn tell(self) {
        // The first allocation creates the thread's allocator arena; the handle creates its
        // thread-local data.
        let first =
            std::hint::black_box((Vec::<u8>::with_capacity(1 << 10), std::thread::current()));
        drop(first);
        // The starter waits for this message.
        let _ = self.0.send(());
    }
}

impl Starter {
    fn wait(self) {
        // A thread that ends without a message has started, too.
        let _ = self.0.recv();
    }
}

/// Checks that `space` bytes of address space and `writable` bytes of writable memory can still be
/// mapped.
fn check(space: usize, writable: usize) -> io::Result<()> {
    imp::probe(space, false)?;
    imp::probe(writable, true)
}

#[cfg(unix)]
mod imp {
    use std::io;
    use std::ptr::null_mut;

    /// Maps and unmaps `bytes` bytes without touching the pages.
    pub(super) fn probe(bytes: usize, writable: bool) -> io::Result<()> {
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe { libc::mmap(null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping that was made above.
        unsafe { libc::munmap(start, bytes) };
        Ok(())
    }
}

#[cfg(not(unix))]
mod imp {
    /// Not checked: on other systems, starting the thread fails instead.
    pub(super) fn probe(_bytes: usize, _writable: bool) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_start_and_are_joined() {
        let helper = start_helper(Builder::new(), || 3).expect("there is memory");
        assert_eq!(helper.join().expect("it ends"), 3);
        let mut text = String::new();
        std::thread::scope(|scope| {
            let work = || text.push('a');
            let thread = start_scoped(scope, Builder::new(), 1 << 20, work);
            thread.expect("there is memory").join().expect("it ends");
        });
        assert_eq!(text, "a");
    }

    #[test]
    fn a_stack_larger_than_memory_is_an_error() {
        std::thread::scope(|scope| {
            for stack in [usize::MAX, usize::MAX / 2] {
                assert!(start_scoped(scope, Builder::new(), stack, || ()).is_err());
            }
        });
    }
}
