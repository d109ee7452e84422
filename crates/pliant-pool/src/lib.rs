//! Worker teams: data-parallel loops over `0..extent`, for compiled code and for Rust code.
//!
//! A [`Team`] is a fixed set of threads. After each loop they spin for a short time and then park. Each thread gets an even share
//! of a loop's chunks. When its own chunks are done, it steals unclaimed chunks of other threads, so a late worker does not delay
//! the loop. Nested loops, and loops started while another thread uses the team, run serially on the calling thread. A team
//! survives `fork`.
//!
//! [`Stages`] is a parallel job with a barrier between its stages. [`ThreadCaches`] are per-thread caches that other threads can
//! empty.

mod affinity;
mod c_interface;
mod chunk_slot;
mod compile_threads;
mod global_teams;
mod job_queue;
mod preemption_backoff;
mod process_fork;
mod staged_job;
mod sync;
mod team;
mod team_latency;
mod thread_cache;
mod thread_count;
mod thread_start;
mod workers;

pub use c_interface::{ParallelBody, parallel_launch};
pub use compile_threads::{compile_threads, parallel_map};
pub use global_teams::{global, shared_team};
pub use staged_job::{MAX_PIECES, Stages};
pub use team::Team;
pub use team_latency::{fork_join, wake_up};
pub use thread_cache::{CacheGuard, ThreadCache, ThreadCaches, on_release, release, trim};
pub use thread_count::{MAX_THREADS, check_threads, default_threads};
pub use thread_start::{start_helper, start_scoped};
