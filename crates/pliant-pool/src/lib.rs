//! The worker team: data-parallel loops over `0..extent`, for compiled kernels and for Rust code.
//!
//! A [`Team`] is a fixed set of threads that spin for a short while after each loop and then park. Each thread has an even
//! share of a loop's chunks, and takes those that others have not begun once its own are done, so a late worker costs nothing
//! but its help. Loops inside loops, and loops started while another thread has the team, run serially on the thread that
//! asks. A team survives `fork`.
//! [`Stages`] is a loop whose threads meet again and again.

mod affinity;
mod board;
mod crew;
mod fork;
mod held_up;
mod helpers;
mod latency;
mod launch;
mod shared;
mod size;
mod slot;
mod stages;
mod sync;
mod team;
mod thread_cache;
mod thread_start;

pub use helpers::{helpers, map};
pub use latency::{fork_join, wake_up};
pub use launch::{ParallelBody, parallel_launch};
pub use shared::{global, shared};
pub use size::{MAX_THREADS, check_threads, default_threads};
pub use stages::{MOST_PIECES, Stages};
pub use team::Team;
pub use thread_cache::{InUse, ThreadCache, ThreadCaches, on_release, release, trim};
pub use thread_start::{start_helper, start_scoped};
