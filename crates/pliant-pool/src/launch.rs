//! The C face of a team, which compiled loops call through a function pointer.

use std::ffi::c_void;
use std::mem::transmute;

use crate::Team;
use crate::slot::Context;

/// A compiled loop body: runs iterations `begin..end`; a result other than 0 stops the loop and is its result.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64) -> i64;

/// Runs `body` over `0..extent` on a team; returns 0 or the first other status of a chunk.
///
/// `grain` is the number of iterations worth a thread's while (about a microsecond of work); where one iteration is worth
/// several grains, it is minus their number.
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
    unsafe fn call([body, context, _]: Context, begin: i64, end: i64) -> i64 {
        // SAFETY: the function that is put there below.
        let body = unsafe { transmute::<*const (), ParallelBody>(body) };
        // SAFETY: the promise of `parallel_launch`'s caller.
        unsafe { body(context.cast_mut().cast(), begin, end) }
    }
    if extent <= 0 {
        return 0;
    }
    // SAFETY: null or live by the caller's promise.
    let Some(team) = (unsafe { team.cast::<Team>().as_ref() }) else {
        // SAFETY: the caller's promise.
        return unsafe { body(context, 0, extent) };
    };
    let context = [body as *const (), context.cast_const().cast(), std::ptr::null()];
    // SAFETY: the caller's promise; extern "C" functions do not unwind.
    unsafe { team.launch(call, context, extent, grain) }
}
