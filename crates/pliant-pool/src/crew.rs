//! The threads of a team in one process: how they wait, sleep and wake, and how loops reach them.

use std::sync::Arc;
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::affinity::Placement;
use crate::board::Board;
use crate::fork;
use crate::held_up::HeldUp;
use crate::slot::Job;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::thread_start::start_helper;

/// Chunks per thread: enough that other threads can take most of the share of a preempted thread.
const CHUNKS_PER_THREAD: i64 = 4;
/// A loop with fewer grains per thread gets one chunk per thread, because a share finishes before
/// another thread could steal a part of it.
const WORTH_CUTTING: i64 = 8;
/// How long an idle worker spins before it parks. This covers the gaps between loops of one
/// inference.
const SPIN: Duration = Duration::from_micros(200);
/// A loop with fewer grains (of about a microsecond each) does not wait for parked workers, because
/// waking one takes longer than the loop.
const WORTH_WAKING: i64 = 32;
/// The number of spins between two yields, while the caller waits after finishing its own chunks.
const SPINS_PER_YIELD: u32 = 2000;

struct Shared {
    board: Board,
    /// Set while a loop is published on the board.
    busy: CachePadded<AtomicBool>,
    /// The approximate number of sleeping workers.
    sleepers: CachePadded<AtomicUsize>,
    shutdown: AtomicBool,
    placements: Box<[Placement]>,
}

/// The workers of a team, in the process that started them.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
    workers: Vec<Thread>,
    held_up: HeldUp,
    /// The fork generation of the process that has the threads.
    born: u32,
}

impl Crew {
    /// Starts `count` workers, or fewer if the system cannot start more.
    pub(crate) fn new(count: usize) -> Crew {
        fork::watch();
        let shared = Arc::new(Shared {
            board: Board::new(count),
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
        let workers = handles.iter().map(|handle| handle.thread().clone()).collect();
        Crew { shared, handles, workers, held_up: HeldUp::new(), born: fork::generation() }
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Whether the threads belong to this process rather than to the parent of a fork.
    pub(crate) fn is_here(&self) -> bool {
        self.born == fork::generation()
    }

    /// Runs the job's loop on the caller and the workers. Returns 0 or the first nonzero status.
    /// `grains` is the size of the loop in units of work that are worth distributing.
    ///
    /// # Safety
    /// The job's body may be called with its context on several threads at once until this returns,
    /// and does not unwind.
    pub(crate) unsafe fn run(&self, mut job: Job, grains: i64) -> i64 {
        let shared = &*self.shared;
        if grains.min(job.extent) <= 1
            || self.workers.is_empty()
            || self.held_up.stays_alone(grains)
            || shared.busy.load(Ordering::Relaxed)
            || shared.busy.swap(true, Ordering::Acquire)
        {
            // SAFETY: the caller's promise.
            return unsafe { (job.body)(job.context, 0, job.extent) };
        }
        let threads = self.workers.len() + 1;
        if shared.sleepers.load(Ordering::Relaxed) == self.workers.len() && grains < WORTH_WAKING {
            // The loop is too short to wait for the workers, but waking them prepares the next
            // loop.
            (1..threads)
                .filter(|&thread| shared.board.slot(thread).rouse())
                .for_each(|thread| self.wake(thread));
            shared.busy.store(false, Ordering::Release);
            // SAFETY: the caller's promise.
            return unsafe { (job.body)(job.context, 0, job.extent) };
        }
        job.chunks = chunks(grains, job.extent, threads);
        // SAFETY: `busy` is held, so the previous job has ended and there is no other publisher.
        unsafe { shared.board.publish(job, threads, |thread| self.wake(thread)) };
        shared.board.work(0);
        self.wait(grains);
        let status = shared.board.status();
        shared.busy.store(false, Ordering::Release);
        status
    }

    /// Waits for the chunks that workers have claimed.
    fn wait(&self, grains: i64) {
        let mut spins = 0u32;
        let mut since: Option<Instant> = None;
        while !self.shared.board.is_done() {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(SPINS_PER_YIELD) {
                since.get_or_insert_with(Instant::now);
                // The worker that has the last chunk may be queued on the caller's CPU.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        if let Some(since) = since {
            self.held_up.waited(grains, since.elapsed());
        }
    }

    /// Wakes a sleeping thread.
    fn wake(&self, thread: usize) {
        let worker = thread - 1;
        self.shared.placements[worker].avoid_this_cpu();
        self.workers[worker].unpark();
    }

    /// Stops and joins the threads.
    pub(crate) fn end(mut self) {
        self.shared.shutdown.store(true, Ordering::SeqCst);
        for worker in &self.workers {
            worker.unpark();
        }
        for handle in self.handles.drain(..) {
            // Workers catch panics of bodies, so joining cannot fail in a way that matters here.
            let _ = handle.join();
        }
    }
}

/// The number of chunks of a loop with the given number of grains and iterations.
fn chunks(grains: i64, extent: i64, threads: usize) -> u32 {
    let threads = threads as i64;
    let each = if grains / threads < WORTH_CUTTING { 1 } else { CHUNKS_PER_THREAD };
    grains.min(threads * each).min(extent) as u32
}

fn worker(shared: &Shared, index: usize) {
    shared.placements[index].register();
    let thread = index + 1;
    let slot = shared.board.slot(thread);
    let mut idle_since: Option<Instant> = None;
    let mut spins = 0u32;
    while !shared.shutdown.load(Ordering::Relaxed) {
        if slot.has_work() {
            shared.board.work(thread);
            (idle_since, spins) = (None, 0);
            continue;
        }
        spins = spins.wrapping_add(1);
        if !spins.is_multiple_of(64) {
            std::hint::spin_loop();
            continue;
        }
        if idle_since.get_or_insert_with(Instant::now).elapsed() < SPIN {
            continue;
        }
        shared.placements[index].take_back();
        if slot.lie_down() {
            shared.sleepers.fetch_add(1, Ordering::Relaxed);
            while slot.sleeps() && !shared.shutdown.load(Ordering::SeqCst) {
                std::thread::park();
            }
            shared.sleepers.fetch_sub(1, Ordering::Relaxed);
            shared.placements[index].take_back();
        }
        (idle_since, spins) = (None, 0);
    }
}
