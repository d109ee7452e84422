//! Worker teams: data-parallel loops over `0..extent`, for compiled code and for Rust code.
//!
//! A [`Team`] is a fixed set of threads. After each loop, the threads spin for a short time and
//! then park (sleep). Each thread gets an even share of a loop's chunks. A thread that has finished
//! its own chunks steals unclaimed chunks of other threads, so a late worker does not delay the
//! loop. Nested loops, loops started while another thread uses the team, and loops that are too
//! short run serially on the calling thread. `worker_threads.rs` lists all conditions, and decides
//! into how many chunks other loops are split. `team_size.rs` determines the number of threads of
//! the global team. A team survives `fork`.
//!
//! [`Stages`] is a parallel job with a barrier between its stages. [`ThreadCaches`] are per-thread
//! caches that other threads can empty.
//!
//! # Examples
//! ```
//! use pliant_pool::parallel_map;
//!
//! assert_eq!(parallel_map(vec![1, 2, 3], |x| x * x), [1, 4, 9]);
//! ```

mod chunk_claiming;
mod compile_thread_pool;
mod dispatch_latency;
mod fork_detection;
mod global_worker_teams;
mod per_thread_cache;
mod preemption_backoff;
mod running_parallel_loop;
mod staged_job;
mod sync_primitives;
mod team_c_interface;
mod team_size;
mod thread_spawning;
mod worker_cpu_affinity;
mod worker_team;
mod worker_threads;

pub use compile_thread_pool::{compile_threads, parallel_map};
pub use dispatch_latency::{fork_join, wake_up};
pub use global_worker_teams::{global, shared_team};
pub use per_thread_cache::{CacheGuard, ThreadCache, ThreadCaches, on_release, release, trim};
pub use staged_job::{MAX_PIECES, Stages};
pub use team_c_interface::{ParallelBody, parallel_launch};
pub use team_size::{MAX_THREADS, check_threads, default_threads};
pub use thread_spawning::{start_helper, start_scoped};
pub use worker_team::Team;
