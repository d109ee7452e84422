//! Prevents LLVM from compiling while the process exits or forks.
//!
//! At exit, the destructors of LLVM's static variables run. A thread that compiles at that time would use destroyed memory. A
//! forked child has only one thread, so what other threads were changing in LLVM at the time of the fork stays half done. Every
//! compilation therefore holds a shared lock, and both `exit` and `fork` take it exclusively.

use std::cell::RefCell;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pliant_codegen::CodegenError;

/// The lock that compilations hold shared, and that `exit` and `fork` take exclusively. Its value states whether the process is
/// exiting.
static EXITING: RwLock<bool> = RwLock::new(false);

thread_local! {
    /// The exclusive lock of [`EXITING`], which this thread holds while it forks.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, bool>>> = const { RefCell::new(None) };
    /// A value whose destructor stops LLVM when the thread ends. Only the main thread creates it: `exit` runs the destructors of
    /// that thread before those of static variables.
    static STOP_WITH_MAIN_THREAD: StopOnDrop = const { StopOnDrop };
}

struct StopOnDrop;

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        stop();
    }
}

/// Returns the lock that a thread must hold while it uses LLVM.
///
/// # Errors
/// `Host`: the process is exiting.
pub(crate) fn begin_compilation() -> Result<RwLockReadGuard<'static, bool>, CodegenError> {
    prepare();
    let exiting = EXITING.read().unwrap_or_else(PoisonError::into_inner);
    match *exiting {
        true => {
            Err(CodegenError::Host("LLVM cannot compile, because the process is exiting".into()))
        }
        false => Ok(exiting),
    }
}

/// Prepares the process for `exit` and `fork` while LLVM compiles. If the main thread calls this function, it stops LLVM when it
/// exits.
pub fn prepare() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the functions have the required signatures and do not unwind. If they cannot be registered, forks and exits
        // during a compilation are not safe, but others are.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork));
            libc::atexit(stop_at_exit);
        }
    });
    // SAFETY: the functions have no preconditions.
    let is_main = unsafe { libc::syscall(libc::SYS_gettid) == i64::from(libc::getpid()) };
    if is_main {
        let _ = STOP_WITH_MAIN_THREAD.try_with(|_| ());
    }
}

/// Waits until no thread uses LLVM, and prevents further compilations. A program must call this function before it exits on a
/// thread other than the main thread while LLVM may compile.
pub fn stop() {
    *EXITING.write().unwrap_or_else(PoisonError::into_inner) = true;
}

extern "C" fn stop_at_exit() {
    stop();
}

extern "C" fn before_fork() {
    let _ = FORKING.try_with(|forking| {
        let lock = EXITING.write().unwrap_or_else(PoisonError::into_inner);
        *forking.borrow_mut() = Some(lock);
    });
}

extern "C" fn after_fork() {
    let _ = FORKING.try_with(|forking| forking.borrow_mut().take());
}
