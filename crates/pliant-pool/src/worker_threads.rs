//! The worker threads of a team in one process: how they wait, sleep and wake, and how they receive loops.
//!
//! `Workers::run` decides at run time whether a parallel loop is distributed. Work is counted in grains of about a microsecond. A
//! loop runs serially, on the calling thread alone, if
//! - it has at most one iteration, or less than two grains of work;
//! - the team has no workers;
//! - it has less than 400 grains, and a worker was probably preempted in the last 30 ms (`preemption_backoff.rs`);
//! - the team already runs a loop: one that encloses this loop, or a loop of another thread;
//! - all workers sleep, and it has less than `MIN_GRAINS_TO_WAKE` grains. The workers are woken for the next loop.
//!
//! Otherwise, `chunks` decides into how many chunks the loop is split: `CHUNKS_PER_THREAD` for each thread of the team, or one if a
//! thread would get less than `MIN_GRAINS_TO_SPLIT` grains, but never more chunks than grains or iterations. All threads of the
//! team claim chunks. `team_size.rs` determines how many threads the global team has.
//!
//! A loop that is launched without a team does not reach `Workers::run`: `parallel_launch` (`team_c_interface.rs`) runs it serially
//! if the team is null.

use std::sync::Arc;
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::chunk_claiming::Job;
use crate::fork_detection;
use crate::preemption_backoff::PreemptionBackoff;
use crate::running_parallel_loop::JobQueue;
use crate::sync_primitives::{AtomicBool, AtomicUsize, Ordering};
use crate::thread_spawning::start_helper;
use crate::worker_cpu_affinity::Placement;

/// Number of chunks into which each thread's part of a loop is split, so that other threads can
/// steal most of the part of a preempted thread.
const CHUNKS_PER_THREAD: i64 = 4;
/// Minimum number of grains (each about a microsecond of work) per thread for splitting the
/// thread's part of a loop into chunks. A smaller part is one chunk, because it would be finished
/// before another thread could steal from it.
const MIN_GRAINS_TO_SPLIT: i64 = 8;
/// The time for which an idle worker spins before it parks. The time covers the gaps between the
/// loops of one inference.
const SPIN_TIME: Duration = Duration::from_micros(200);
/// Minimum number of grains (each about a microsecond of work) of a loop that wakes parked workers. For a smaller loop, waking a
/// worker takes longer than the loop.
const MIN_GRAINS_TO_WAKE: i64 = 32;
/// Number of spins of the caller before it yields its CPU, while it waits for chunks of the workers.
const SPINS_PER_YIELD: u32 = 2000;

/// The state that the threads of a team share.
struct TeamState {
    queue: JobQueue,
    /// Whether a loop is running on the team.
    busy: CachePadded<AtomicBool>,
    /// The approximate number of sleeping workers.
    sleepers: CachePadded<AtomicUsize>,
    shutdown: AtomicBool,
    placements: Box<[Placement]>,
}

/// The worker threads of a team. They exist only in the process that started them.
pub(crate) struct Workers {
    shared: Arc<TeamState>,
    handles: Vec<JoinHandle<()>>,
    threads: Vec<Thread>,
    backoff: PreemptionBackoff,
    /// The number of forks that led to the process that started the threads ([`fork_detection::generation`]).
    fork_generation: u32,
}

impl Workers {
    /// Starts `count` workers, or fewer if the operating system cannot start so many.
    pub(crate) fn new(count: usize) -> Workers {
        fork_detection::count_forks();
        let shared = Arc::new(TeamState {
            queue: JobQueue::new(count),
            busy: CachePadded::new(AtomicBool::new(false)),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            shutdown: AtomicBool::new(false),
            placements: (0..count).map(|_| Placement::default()).collect(),
        });
        let mut handles = Vec::new();
        for index in 0..count {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name(format!("pliant-{}", index + 1));
            match start_helper(builder, move || worker(&shared, index)) {
                Ok(handle) => handles.push(handle),
                Err(_) => break,
            }
        }
        let threads = handles.iter().map(|handle| handle.thread().clone()).collect();
        Workers {
            shared,
            handles,
            threads,
            backoff: PreemptionBackoff::new(),
            fork_generation: fork_detection::generation(),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// Whether the threads belong to the current process. Returns false in a child of `fork`.
    pub(crate) fn in_this_process(&self) -> bool {
        self.fork_generation == fork_detection::generation()
    }

    /// Runs the loop of `job` on the caller and the workers. Returns 0 or the first nonzero status.
    /// `grains` is the amount of work of the loop, in grains of about a microsecond.
    ///
    /// # Safety
    /// Until the function returns, the job's body may be called with its context on several threads
    /// at once. The body does not unwind.
    pub(crate) unsafe fn run(&self, mut job: Job, grains: i64) -> i64 {
        let shared = &*self.shared;
        if grains.min(job.extent) <= 1
            || self.threads.is_empty()
            || self.backoff.run_serial(grains)
            || shared.busy.load(Ordering::Relaxed)
            || shared.busy.swap(true, Ordering::Acquire)
        {
            // SAFETY: the caller's promise.
            return unsafe { (job.body)(job.context, 0, job.extent) };
        }
        let threads = self.threads.len() + 1;
        if shared.sleepers.load(Ordering::Relaxed) == self.threads.len()
            && grains < MIN_GRAINS_TO_WAKE
        {
            // The loop is too short to wait for the workers. Wake them for the next loop.
            (1..threads)
                .filter(|&thread| shared.queue.slot(thread).wake())
                .for_each(|thread| self.wake(thread));
            shared.busy.store(false, Ordering::Release);
            // SAFETY: the caller's promise.
            return unsafe { (job.body)(job.context, 0, job.extent) };
        }
        job.chunks = chunks(grains, job.extent, threads);
        // SAFETY: `busy` is held, so the previous job has ended and there is no other publisher.
        unsafe { shared.queue.publish(job, threads, |thread| self.wake(thread)) };
        shared.queue.run_chunks(0);
        self.wait(grains);
        let status = shared.queue.status();
        shared.busy.store(false, Ordering::Release);
        status
    }

    /// Waits until the workers have finished the chunks that they claimed. Records a long wait, relative to the `grains` grains of
    /// work of the loop, as a preemption of a worker.
    fn wait(&self, grains: i64) {
        let mut spins = 0u32;
        let mut since: Option<Instant> = None;
        while !self.shared.queue.is_done() {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(SPINS_PER_YIELD) {
                since.get_or_insert_with(Instant::now);
                // The worker with the last chunk may be queued on this CPU.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        if let Some(since) = since {
            self.backoff.record_wait(grains, since.elapsed());
        }
    }

    /// Wakes the sleeping worker with the index `thread` among the threads of the team.
    fn wake(&self, thread: usize) {
        let worker = thread - 1;
        self.shared.placements[worker].avoid_this_cpu();
        self.threads[worker].unpark();
    }

    /// Stops all worker threads and joins them.
    pub(crate) fn shut_down(mut self) {
        self.shared.shutdown.store(true, Ordering::SeqCst);
        for worker in &self.threads {
            worker.unpark();
        }
        for handle in self.handles.drain(..) {
            // Workers catch panics of loop bodies, so a join error can be ignored.
            let _ = handle.join();
        }
    }
}

/// Returns the number of chunks into which a loop is split. The loop has `extent` iterations and `grains` grains of work, each
/// about a microsecond, and runs on `threads` threads.
fn chunks(grains: i64, extent: i64, threads: usize) -> u32 {
    let threads = threads as i64;
    let each = if grains / threads < MIN_GRAINS_TO_SPLIT { 1 } else { CHUNKS_PER_THREAD };
    grains.min(threads * each).min(extent) as u32
}

fn worker(shared: &TeamState, index: usize) {
    shared.placements[index].register();
    let thread = index + 1;
    let slot = shared.queue.slot(thread);
    let mut idle_since: Option<Instant> = None;
    let mut spins = 0u32;
    while !shared.shutdown.load(Ordering::Relaxed) {
        if slot.has_work() {
            shared.queue.run_chunks(thread);
            (idle_since, spins) = (None, 0);
            continue;
        }
        spins = spins.wrapping_add(1);
        if !spins.is_multiple_of(64) {
            std::hint::spin_loop();
            continue;
        }
        if idle_since.get_or_insert_with(Instant::now).elapsed() < SPIN_TIME {
            continue;
        }
        shared.placements[index].restore_mask();
        if slot.try_sleep() {
            shared.sleepers.fetch_add(1, Ordering::Relaxed);
            while slot.is_asleep() && !shared.shutdown.load(Ordering::SeqCst) {
                std::thread::park();
            }
            shared.sleepers.fetch_sub(1, Ordering::Relaxed);
            shared.placements[index].restore_mask();
        }
        (idle_since, spins) = (None, 0);
    }
}
