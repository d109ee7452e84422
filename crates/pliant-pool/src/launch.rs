//! The C face of a team, which compiled loops call through a function pointer.

use std::ffi::c_void;

use crate::Team;

/// A compiled loop body: runs iterations `begin..end`; a result other than 0 stops the loop and is its result.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64) -> i64;

/// Runs `body` over `0..extent` on a team; returns 0 or the first other status of a chunk.
///
/// `grain` is the number of iterations worth a thread's while (about a microsecond of work).
///
/// # Safety
/// `team` is null (run serially) or points to a live [`Team`]; `body` may be called with `context` on several threads
/// at once until this returns.
pub unsafe extern "C" fn parallel_launch(
    team: *const c_void,
    body: ParallelBody,
    context: *mut c_void,
    extent: i64,
    grain: i64,
) -> i64 {
    struct Call {
        body: ParallelBody,
        context: *mut c_void,
    }
    unsafe fn trampoline(call: *const (), begin: i64, end: i64) -> i64 {
        // SAFETY: `launch` passes the call below, which outlives the loop.
        let call = unsafe { &*call.cast::<Call>() };
        // SAFETY: the promise of `parallel_launch`'s caller.
        unsafe { (call.body)(call.context, begin, end) }
    }
    if extent <= 0 {
        return 0;
    }
    // SAFETY: null or live by the caller's promise.
    let Some(team) = (unsafe { team.cast::<Team>().as_ref() }) else {
        // SAFETY: the caller's promise.
        return unsafe { body(context, 0, extent) };
    };
    let call = Call { body, context };
    // SAFETY: the caller's promise; the call outlives the loop, and extern "C" functions do not unwind.
    unsafe { team.launch(trampoline, (&raw const call).cast(), extent, grain) }
}
