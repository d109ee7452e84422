//! The worker team: data-parallel loops over `0..extent`, for compiled code and for Rust code.
//!
//! A [`Team`] is a fixed set of threads. They spin for a short time after each loop and then park.
//! Each thread gets an even share of a loop's chunks and steals unclaimed chunks of other threads
//! when its own are done, so a late worker does not delay the loop. Nested loops, and loops started
//! while another thread uses the team, run serially on the calling thread. A team survives `fork`.
//!
//! [`Stages`] is a loop with a barrier between its stages.

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
