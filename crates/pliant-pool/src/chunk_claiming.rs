//! The chunks of a parallel loop that are assigned to one thread, and the atomic word through which
//! threads claim or steal chunks.
//!
//! The data of a thread take one cache line, which stays in the thread's cache while the thread
//! works. Two threads write the same line only if one steals chunks from the other.

use std::ops::Range;

use crate::sync_primitives::{AtomicU64, Ordering, UnsafeCell};

/// The body of a parallel loop: a function that runs the iterations `begin..end`. A nonzero result
/// stops the loop.
pub(crate) type Body = unsafe fn(context: Context, begin: i64, end: i64) -> i64;

/// The arguments of a loop body. They are stored in the same cache line as the rest of the job,
/// because a worker takes about 200 ns to read a line written by the caller.
pub(crate) type Context = [*const (); 3];

/// A loop to run: its body, context, number of iterations and number of chunks. The thread that
/// starts the loop writes the job; threads that have claimed one of its chunks read it.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) body: Body,
    pub(crate) context: Context,
    pub(crate) extent: i64,
    pub(crate) chunks: u32,
}

/// The chunks of a loop that are assigned to one thread, the owner.
///
/// The atomic word contains the range of unclaimed chunks (the owner claims from the front, other threads from the back), the
/// number of unfinished chunks, and whether the owner sleeps. A successful compare-exchange on the word claims a chunk of the job
/// that is current at that moment. A job ends only when all its chunks are finished, so a late thread never runs a chunk of an
/// earlier job.
pub(crate) struct Slot {
    word: AtomicU64,
    share: UnsafeCell<Share>,
}

// A worker waits for one cache line to read its share, not for two.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Slot>() <= 64);

/// A parallel loop (job), and the index of the first of its chunks that are assigned to the thread that owns the slot.
#[derive(Clone, Copy)]
struct Share {
    job: Job,
    first: u32,
}

// SAFETY: a share is written only by the team's owner between jobs, when no chunk is claimable. It
// is read only by threads that hold one of its chunks, after their acquiring exchange has
// synchronized with the owner's releasing swap.
unsafe impl Sync for Slot {}
// SAFETY: the context's pointers are only passed to `body`, and its callers guarantee that it may
// run on any thread.
unsafe impl Send for Slot {}

/// The end of a thread's range of unclaimed chunks from which a chunk is claimed: the owner claims
/// from the front, other threads from the back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeEnd {
    Front,
    Back,
}

/// The bit of a slot's atomic word that is set while the thread that owns the slot sleeps or is about to sleep.
const ASLEEP: u64 = 1 << 48;
/// The value to add to a slot's atomic word to count one more unfinished chunk.
const PENDING: u64 = 1 << 32;
/// Width in bits of each of three fields of the atomic word: the start and the end of the range of unclaimed chunks, and the number
/// of unfinished chunks.
const BITS: u32 = 16;
const MASK: u64 = (1 << BITS) - 1;
/// Maximum number of chunks of a parallel loop that can be assigned to one thread.
pub(crate) const MAX_CHUNKS: u32 = MASK as u32;

fn range(word: u64) -> Range<u64> {
    word & MASK..word >> BITS & MASK
}

unsafe fn no_op(_: Context, _: i64, _: i64) -> i64 {
    0
}

impl Slot {
    pub(crate) fn new() -> Slot {
        let job = Job { body: no_op, context: [std::ptr::null(); 3], extent: 0, chunks: 0 };
        Slot { word: AtomicU64::new(0), share: UnsafeCell::new(Share { job, first: 0 }) }
    }

    /// Whether any of the chunks that are assigned to the slot's owner is unclaimed.
    pub(crate) fn has_work(&self) -> bool {
        !range(self.word.load(Ordering::Acquire)).is_empty()
    }

    /// Whether all chunks that are assigned to the slot's owner have run. If so, all writes of these chunks are visible to the
    /// caller.
    pub(crate) fn is_done(&self) -> bool {
        self.word.load(Ordering::Acquire) & (MASK * PENDING) == 0
    }

    /// Makes `chunks` chunks of `job`, starting at index `first`, available for claiming. Returns whether the thread that owns
    /// the slot was asleep. If so, marks it as awake; the caller must wake the thread.
    ///
    /// # Safety
    /// The previous job has ended, the caller is the only publisher, and `body` may be called with
    /// `context` on any thread until [`Slot::is_done`]. `chunks` is at most [`MAX_CHUNKS`].
    pub(crate) unsafe fn publish(&self, job: Job, first: u32, chunks: u32) -> bool {
        debug_assert!(chunks <= MAX_CHUNKS, "a share counts its chunks in {BITS} bits");
        // SAFETY: no chunk is claimable or running, so no one reads the share.
        self.share.with_mut(|cell| unsafe { *cell = Share { job, first } });
        let chunks = u64::from(chunks);
        let old = self.word.swap((chunks << BITS) | (chunks * PENDING), Ordering::AcqRel);
        old & ASLEEP != 0
    }

    /// Claims a chunk from one end of the range of unclaimed chunks. Returns the job and the
    /// iterations of the chunk, or `None`. The caller must call [`Slot::finish`] afterwards.
    pub(crate) fn claim(&self, from: RangeEnd) -> Option<(Job, Range<i64>)> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let left = range(word);
            if left.is_empty() {
                return None;
            }
            let (chunk, rest) = match from {
                RangeEnd::Front => (left.start, word + 1),
                RangeEnd::Back => (left.end - 1, word - (1 << BITS)),
            };
            match self.word.compare_exchange_weak(word, rest, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: this thread holds a claimed chunk, so the share is current and not
                    // being written.
                    let Share { job, first } = self.share.with(|cell| unsafe { *cell });
                    return Some((job, chunk_range(first + chunk as u32, job.chunks, job.extent)));
                }
                Err(actual) => word = actual,
            }
        }
    }

    /// Marks a chunk that the calling thread has claimed and run as finished.
    pub(crate) fn finish(&self) {
        self.word.fetch_sub(PENDING, Ordering::Release);
    }

    /// Marks the thread that owns the slot as asleep unless there are unclaimed chunks. Returns whether the thread may sleep. If
    /// so, the next [`Slot::publish`] returns true, unless [`Slot::wake`] is called first.
    pub(crate) fn try_sleep(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // Publishing a share changes the word. So either the owner sees the share, or the publisher sees that the owner sleeps.
        range(word).is_empty()
            && self
                .word
                .compare_exchange(word, word | ASLEEP, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Marks the thread that owns the slot as awake. Returns whether it was asleep.
    pub(crate) fn wake(&self) -> bool {
        self.word.fetch_and(!ASLEEP, Ordering::AcqRel) & ASLEEP != 0
    }

    /// Whether the thread that owns the slot is marked as asleep.
    pub(crate) fn is_asleep(&self) -> bool {
        self.word.load(Ordering::Acquire) & ASLEEP != 0
    }
}

/// Returns the iterations of chunk `index` if a loop of `extent` iterations is split into `chunks`
/// chunks. The sizes of chunks differ by at most one.
pub(crate) fn chunk_range(index: u32, chunks: u32, extent: i64) -> Range<i64> {
    let (size, rest) = (extent / i64::from(chunks), extent % i64::from(chunks));
    let start = |i: i64| i * size + i.min(rest);
    start(i64::from(index))..start(i64::from(index) + 1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_extent_once_and_evenly() {
        for extent in [1i64, 2, 7, 8, 9, 64, 1000, i64::MAX - 1] {
            for chunks in [1u32, 2, 3, 7, 8] {
                let mut at = 0;
                for i in 0..chunks {
                    let range = chunk_range(i, chunks, extent);
                    assert_eq!(range.start, at);
                    let size = extent / i64::from(chunks);
                    assert!((size..=size + 1).contains(&(range.end - range.start)));
                    at = range.end;
                }
                assert_eq!(at, extent);
            }
        }
    }

    #[test]
    fn chunks_are_claimed_from_both_ends() {
        let slot = Slot::new();
        let job = Job { body: no_op, context: [std::ptr::null(); 3], extent: 40, chunks: 4 };
        assert!(slot.is_done() && !slot.has_work());
        // SAFETY: nothing was published before, and the body takes any context.
        assert!(!unsafe { slot.publish(job, 1, 3) });
        let claim = |end| slot.claim(end).map(|(_, range)| range);
        assert_eq!(claim(RangeEnd::Back), Some(30..40));
        assert_eq!(claim(RangeEnd::Front), Some(10..20));
        assert_eq!(claim(RangeEnd::Back), Some(20..30));
        assert_eq!(claim(RangeEnd::Front), None);
        for _ in 0..3 {
            assert!(!slot.is_done());
            slot.finish();
        }
        assert!(slot.is_done());
    }

    #[test]
    fn a_sleeping_owner_is_reported_once() {
        let slot = Slot::new();
        let job = Job { body: no_op, context: [std::ptr::null(); 3], extent: 1, chunks: 1 };
        assert!(slot.try_sleep() && slot.is_asleep());
        assert!(slot.wake() && !slot.is_asleep() && !slot.wake());
        assert!(slot.try_sleep());
        // SAFETY: nothing was published before, and the body takes any context.
        assert!(unsafe { slot.publish(job, 0, 1) });
        assert!(!slot.is_asleep() && !slot.try_sleep(), "there is work");
        assert!(slot.claim(RangeEnd::Front).is_some());
        assert!(slot.try_sleep(), "another thread's chunk may be running");
        slot.finish();
        assert!(slot.is_done() && slot.is_asleep());
    }
}
