//! The C interface of a worker team. Compiled loop functions call it through a function pointer.

use std::ffi::c_void;
use std::mem::transmute;

use crate::Team;
use crate::chunk_claiming::Context;

/// A compiled loop body, which runs the iterations `begin..end`. A nonzero result stops the loop and becomes the status of the
/// loop.
pub type ParallelBody = unsafe extern "C" fn(context: *mut c_void, begin: i64, end: i64) -> i64;

/// Runs `body` over `0..extent` on a team. Returns 0 or the first nonzero status of a chunk.
///
/// A grain is a unit of work that is worth distributing, about a microsecond. A positive `grain` is the number of
/// iterations per grain. A negative `grain` is minus the number of grains per iteration.
///
/// # Safety
/// `team` is null (run serially) or points to a live [`Team`]. Until the function returns, `body` may be called with
/// `context` on several threads at once.
pub unsafe extern "C" fn parallel_launch(
    team: *const c_void,
    body: ParallelBody,
    context: *mut c_void,
    extent: i64,
    grain: i64,
) -> i64 {
    unsafe fn call([body, context, _]: Context, begin: i64, end: i64) -> i64 {
        // SAFETY: this is the function pointer stored in `context` below.
        let body = unsafe { transmute::<*const (), ParallelBody>(body) };
        // SAFETY: guaranteed by the caller of `parallel_launch`.
        unsafe { body(context.cast_mut().cast(), begin, end) }
    }
    if extent <= 0 {
        return 0;
    }
    // SAFETY: null or live, as the caller guarantees.
    let Some(team) = (unsafe { team.cast::<Team>().as_ref() }) else {
        // SAFETY: guaranteed by the caller.
        return unsafe { body(context, 0, extent) };
    };
    let context = [body as *const (), context.cast_const().cast(), std::ptr::null()];
    // SAFETY: guaranteed by the caller; extern "C" functions do not unwind.
    unsafe { team.launch(call, context, extent, grain) }
}
