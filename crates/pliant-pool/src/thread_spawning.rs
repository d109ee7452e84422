//! Starts threads without the risk that the process is aborted if memory is short.
//!
//! A new thread needs memory for its first accesses: thread-local data, signal stack, allocator
//! structures. If that memory is missing, the C library or the standard library aborts the process.
//! Therefore a thread is started only if this memory is available besides its stack, and the
//! starting thread waits until the new thread has touched the memory.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// The default stack size of a helper thread in bytes.
const DEFAULT_STACK: usize = 2 << 20;
/// Minimum free address space, in bytes, for starting a helper thread. glibc's allocator reserves
/// 128 MiB for the first allocations of a thread and keeps 64 MiB. The rest is for the allocations
/// of the helper's work.
const MIN_ADDRESS_SPACE: usize = 256 << 20;
/// Memory in bytes that a new thread needs besides its stack: thread-local data, signal stack, first allocations.
const MIN_WRITABLE: usize = 16 << 20;

/// Starts a helper thread with the default stack size. A helper is optional, so it is not started
/// if memory is low.
///
/// # Errors
/// The system cannot start another thread, or memory is low.
pub fn start_helper<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    check(DEFAULT_STACK + MIN_ADDRESS_SPACE, DEFAULT_STACK + MIN_WRITABLE)?;
    let (started, starter) = StartSignal::new();
    let handle = builder.stack_size(DEFAULT_STACK).spawn(move || {
        started.send();
        work()
    })?;
    starter.wait();
    Ok(handle)
}

/// Starts a scoped thread with a stack of `stack` bytes. Checks only that there is memory for the thread's stack and first
/// allocations, which is less than a helper thread requires.
///
/// # Errors
/// The system cannot start another thread, or memory is low.
pub fn start_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    builder: Builder,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    check(stack.saturating_add(MIN_WRITABLE), stack.saturating_add(MIN_WRITABLE))?;
    let (started, starter) = StartSignal::new();
    let handle = builder.stack_size(stack).spawn_scoped(scope, move || {
        started.send();
        work()
    })?;
    starter.wait();
    Ok(handle)
}

/// A signal that a new thread sends after touching the memory of its thread-local data and first
/// allocations.
struct StartSignal(SyncSender<()>);

struct StartWaiter(Receiver<()>);

impl StartSignal {
    fn new() -> (StartSignal, StartWaiter) {
        let (sender, receiver) = sync_channel(1);
        (StartSignal(sender), StartWaiter(receiver))
    }

    fn send(self) {
        // The first allocation creates the allocator arena of the thread. The handle creates its thread-local data.
        let first =
            std::hint::black_box((Vec::<u8>::with_capacity(1 << 10), std::thread::current()));
        drop(first);
        // Cannot fail: the starting thread waits for this message.
        let _ = self.0.send(());
    }
}

impl StartWaiter {
    fn wait(self) {
        // A thread that ended without a message has started too.
        let _ = self.0.recv();
    }
}

/// Checks that `space` bytes of address space and `writable` bytes of memory can be mapped.
fn check(space: usize, writable: usize) -> io::Result<()> {
    imp::probe(space, false)?;
    imp::probe(writable, true)
}

#[cfg(unix)]
mod imp {
    use std::io;
    use std::ptr::null_mut;

    /// Checks that `bytes` bytes can be mapped, by mapping and unmapping them without touching the pages.
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
    /// Does nothing on operating systems other than Unix. There, starting a thread fails if memory is short.
    pub(super) fn probe(_bytes: usize, _writable: bool) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_start_and_are_joined() {
        let helper =
            start_helper(Builder::new(), || 3).expect("the system has memory for a thread");
        assert_eq!(helper.join().expect("the thread ends without a panic"), 3);
        let mut text = String::new();
        std::thread::scope(|scope| {
            let work = || text.push('a');
            let thread = start_scoped(scope, Builder::new(), 1 << 20, work);
            thread
                .expect("the system has memory for a thread")
                .join()
                .expect("the thread ends without a panic");
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
