//! The team: its threads, how they wait, and how a loop is started on them.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::affinity::Placement;
use crate::default_threads;
use crate::job::{Board, Body, Job};

/// Chunks per thread: enough that a thread held up by other programs is relieved of most of its share.
const CHUNKS_PER_THREAD: usize = 4;
/// How long an idle worker spins before it parks. Spinning covers the gaps between the loops of one run.
const SPIN: Duration = Duration::from_micros(200);
/// A loop of fewer grains than this (a grain is about a microsecond) does not wait for parked workers: waking one
/// takes longer than the loop.
const WORTH_WAKING: i64 = 32;
/// Spins of the caller between two yields of its CPU, once its own chunks are done.
const SPINS_PER_YIELD: u32 = 2000;

struct Shared {
    board: Board,
    /// Held by the thread whose loop is on the board.
    busy: CachePadded<AtomicBool>,
    /// Workers that are parked or about to park.
    sleepers: CachePadded<AtomicUsize>,
    shutdown: AtomicBool,
    placements: Box<[Placement]>,
}

/// A fixed set of threads that run parallel loops together with the thread that starts them.
pub struct Team {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
    workers: Vec<Thread>,
}

impl Team {
    /// Starts a team of `threads` threads, the caller included (so `threads - 1` are started; 0 means 1).
    ///
    /// A system that refuses to start a thread gets a smaller team.
    pub fn new(threads: usize) -> Team {
        let count = threads.max(1) - 1;
        let shared = Arc::new(Shared {
            board: Board::new(),
            busy: CachePadded::new(AtomicBool::new(false)),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            shutdown: AtomicBool::new(false),
            placements: (0..count).map(|_| Placement::default()).collect(),
        });
        let mut handles = Vec::new();
        for index in 0..count {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name(format!("pliant-{}", index + 1));
            match builder.spawn(move || worker(&shared, index)) {
                Ok(handle) => handles.push(handle),
                Err(_) => break,
            }
        }
        let workers = handles.iter().map(|handle| handle.thread().clone()).collect();
        Team { shared, handles, workers }
    }

    /// The number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `body` with disjoint ranges that cover `0..extent`, on several threads where that pays.
    ///
    /// `grain` is the number of iterations worth a thread's while (about a microsecond of work); a loop of no more
    /// runs serially, as do loops within loops and loops started while another thread has the team.
    ///
    /// # Panics
    /// Passes on the panic of `body`, after all running chunks have ended.
    pub fn parallel_for(&self, extent: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        struct Context<'a> {
            body: &'a (dyn Fn(Range<usize>) + Sync),
            panic: Mutex<Option<Box<dyn Any + Send>>>,
        }
        unsafe fn call(context: *const (), begin: i64, end: i64) -> i64 {
            // SAFETY: `launch` passes the context below, which outlives the loop.
            let context = unsafe { &*context.cast::<Context<'_>>() };
            let range = begin as usize..end as usize;
            match catch_unwind(AssertUnwindSafe(|| (context.body)(range))) {
                Ok(()) => 0,
                Err(panic) => {
                    let mut slot = context.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.get_or_insert(panic);
                    1
                }
            }
        }
        let context = Context { body, panic: Mutex::new(None) };
        let extent = i64::try_from(extent).expect("an extent is at most isize::MAX");
        let grain = i64::try_from(grain).unwrap_or(i64::MAX);
        // SAFETY: the body is Sync, and the context lives until `launch` returns.
        unsafe { self.launch(call, (&raw const context).cast(), extent, grain) };
        let panic = context.panic.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs `body` over `0..extent` in chunks and returns the first status other than 0, or 0.
    ///
    /// # Safety
    /// `body` may be called with `context` on several threads at once until this returns, and does not unwind.
    pub(crate) unsafe fn launch(
        &self,
        body: Body,
        context: *const (),
        extent: i64,
        grain: i64,
    ) -> i64 {
        if extent <= 0 {
            return 0;
        }
        let grains = extent / grain.max(1);
        let shared = &*self.shared;
        if grains <= 1
            || self.workers.is_empty()
            || shared.busy.load(Ordering::Relaxed)
            || shared.busy.swap(true, Ordering::Acquire)
        {
            // SAFETY: the caller's promise.
            return unsafe { body(context, 0, extent) };
        }
        let asleep = shared.sleepers.load(Ordering::Relaxed);
        if asleep == self.workers.len() && grains < WORTH_WAKING {
            // Not worth waiting for, but the next loop will find the workers awake.
            self.wake();
            shared.busy.store(false, Ordering::Release);
            // SAFETY: the caller's promise.
            return unsafe { body(context, 0, extent) };
        }
        let chunks = grains.min((self.threads() * CHUNKS_PER_THREAD) as i64) as u32;
        // SAFETY: `busy` is held, so the previous job has ended and there is no other publisher.
        unsafe { shared.board.publish(Job { body, context, extent, chunks }) };
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
        shared.board.work(false);
        let mut spins = 0u32;
        while !shared.board.is_done() {
            spins += 1;
            if spins.is_multiple_of(SPINS_PER_YIELD) {
                // The worker that holds the last chunk may be queued on this very CPU.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
        let status = shared.board.status();
        shared.busy.store(false, Ordering::Release);
        status
    }

    fn wake(&self) {
        for (worker, placement) in self.workers.iter().zip(&self.shared.placements) {
            placement.avoid_this_cpu();
            worker.unpark();
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
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

fn worker(shared: &Shared, index: usize) {
    shared.placements[index].register();
    // Worker 0 is thread 1 of the team: odd threads take chunks from the back.
    let from_back = index.is_multiple_of(2);
    let mut idle_since: Option<Instant> = None;
    let mut spins = 0u32;
    while !shared.shutdown.load(Ordering::Relaxed) {
        if shared.board.has_work() {
            shared.board.work(from_back);
            (idle_since, spins) = (None, 0);
            continue;
        }
        spins += 1;
        if !spins.is_multiple_of(64) {
            std::hint::spin_loop();
            continue;
        }
        if idle_since.get_or_insert_with(Instant::now).elapsed() < SPIN {
            continue;
        }
        shared.sleepers.fetch_add(1, Ordering::SeqCst);
        if !shared.board.has_work() && !shared.shutdown.load(Ordering::SeqCst) {
            std::thread::park();
        }
        shared.sleepers.fetch_sub(1, Ordering::SeqCst);
        (idle_since, spins) = (None, 0);
    }
}

/// The team that the whole process shares, of [`default_threads`] threads; started by the first call.
pub fn global() -> &'static Team {
    static GLOBAL: OnceLock<Team> = OnceLock::new();
    GLOBAL.get_or_init(|| Team::new(default_threads()))
}
