//! Per-thread caches that persist between calls. Other threads can empty them.
//!
//! Every thread has its own cache in a list that only grows. A thread enters and leaves its cache
//! with one atomic operation each, without blocking. A thread that empties all caches empties idle
//! caches immediately, and marks caches in use. The owner of a marked cache empties it on leaving.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// State of a cache that no thread owns.
const FREE: u8 = 0;
/// State of a cache that its owner is not using.
const IDLE: u8 = 1;
/// State of a cache that its owner is using.
const BUSY: u8 = 2;
/// State of a cache that its owner is using and will empty when leaving it.
const BUSY_EMPTY_LATER: u8 = 3;
/// State of a cache that a thread other than its owner is emptying.
const EMPTYING: u8 = 4;
/// Maximum number of times that a thread yields while it waits for another thread to empty a cache.
/// The limit is necessary because the other thread may not exist in a forked child.
const YIELDS: usize = 1000;

/// The list of the caches of all threads. Each cache contains a value of type `T`.
///
/// # Examples
/// ```
/// use pliant_pool::ThreadCaches;
///
/// static SCRATCH: ThreadCaches<Vec<f32>> = ThreadCaches::new();
/// let cache = SCRATCH.claim();
/// cache.enter().expect("the cache is not in use").resize(1024, 0.0);
/// SCRATCH.empty(std::mem::take);
/// assert!(cache.enter().expect("the cache is not in use").is_empty());
/// ```
pub struct ThreadCaches<T> {
    first: AtomicPtr<Node<T>>,
}

struct Node<T> {
    state: AtomicU8,
    value: UnsafeCell<T>,
    /// The next node of the list. Set before the node is added to the list, and never changed.
    next: *const Node<T>,
}

// SAFETY: `next` never changes. Only the thread whose exchange set the state to BUSY or EMPTYING
// accesses the value.
unsafe impl<T: Send> Sync for Node<T> {}

/// The cache that the calling thread owns. Dropping the handle empties the cache and makes the
/// cache available to other threads.
pub struct ThreadCache<T: Default + Send + 'static>(&'static Node<T>);

/// Exclusive access of a thread to its cache. Dropping the guard ends the access.
pub struct CacheGuard<'a, T: Default>(&'a Node<T>);

impl<T: Default + Send> ThreadCaches<T> {
    /// Creates an empty list of caches.
    pub const fn new() -> Self {
        ThreadCaches { first: AtomicPtr::new(null_mut()) }
    }

    fn nodes(&'static self) -> impl Iterator<Item = &'static Node<T>> {
        // SAFETY: nodes are leaked boxes.
        let first = unsafe { self.first.load(Ordering::Acquire).cast_const().as_ref() };
        // SAFETY: as above.
        std::iter::successors(first, |node| unsafe { node.next.as_ref() })
    }

    /// Returns a cache for the calling thread: the cache of a thread that has ended, or a new one.
    pub fn claim(&'static self) -> ThreadCache<T> {
        let adopted = self.nodes().find(|node| node.exchange(FREE, IDLE));
        ThreadCache(adopted.unwrap_or_else(|| self.add()))
    }

    fn add(&'static self) -> &'static Node<T> {
        let value = UnsafeCell::new(T::default());
        let node = Box::new(Node { state: AtomicU8::new(IDLE), value, next: null_mut() });
        let node = Box::into_raw(node);
        let mut first = self.first.load(Ordering::Acquire);
        loop {
            // SAFETY: the node is not published yet.
            unsafe { (*node).next = first };
            match self.first.compare_exchange(first, node, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: the box is leaked.
                Ok(_) => return unsafe { &*node },
                Err(now) => first = now,
            }
        }
    }

    /// Calls `take` on each idle cache and drops the results. A cache in use is marked, and emptied when its thread leaves it.
    pub fn empty<R>(&'static self, take: impl Fn(&mut T) -> R) {
        for node in self.nodes() {
            let mut yields = 0;
            loop {
                let state = node.state.load(Ordering::Acquire);
                match state {
                    IDLE if node.exchange(IDLE, EMPTYING) => {
                        // SAFETY: the exchange gives this thread exclusive access until the store.
                        let taken = take(unsafe { &mut *node.value.get() });
                        node.state.store(IDLE, Ordering::Release);
                        drop(taken);
                        break;
                    }
                    BUSY if node.exchange(BUSY, BUSY_EMPTY_LATER) => break,
                    FREE | BUSY_EMPTY_LATER => break,
                    EMPTYING if yields == YIELDS => break,
                    EMPTYING => {
                        yields += 1;
                        std::thread::yield_now();
                    }
                    _ => {}
                }
            }
        }
    }
}

impl<T: Default + Send> Default for ThreadCaches<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Node<T> {
    fn exchange(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl<T: Default + Send> ThreadCache<T> {
    /// Begins exclusive access to the cache. Returns `None` if the cache is in use or is being
    /// emptied.
    #[inline]
    pub fn enter(&self) -> Option<CacheGuard<'static, T>> {
        self.0.exchange(IDLE, BUSY).then(|| CacheGuard(self.0))
    }
}

impl<T: Default + Send> Drop for ThreadCache<T> {
    fn drop(&mut self) {
        for _ in 0..YIELDS {
            if let Some(mut value) = self.enter() {
                *value = T::default();
                std::mem::forget(value);
                self.0.state.store(FREE, Ordering::Release);
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl<T: Default> Deref for CacheGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the state is BUSY or BUSY_EMPTY_LATER, so only this thread accesses the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T: Default> DerefMut for CacheGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`. Only one guard exists at a time, because `enter` checks the state.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T: Default> Drop for CacheGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.0.exchange(BUSY, IDLE) {
            **self = T::default();
            self.0.state.store(IDLE, Ordering::Release);
        }
    }
}

/// The functions that [`on_release`] has registered; unused entries are null.
static RELEASES: [AtomicPtr<()>; 8] = [const { AtomicPtr::new(null_mut()) }; 8];

/// Registers a function that [`release`] calls. Registering a function again has no effect.
///
/// # Panics
/// More than 8 functions are registered.
pub fn on_release(f: fn()) {
    let f = f as *mut ();
    let known = RELEASES.iter().any(|slot| {
        let put = slot.compare_exchange(null_mut(), f, Ordering::AcqRel, Ordering::Acquire);
        put.is_ok() || put == Err(f)
    });
    assert!(known, "on_release supports at most 8 functions");
}

/// Calls the functions registered with [`on_release`], which empty the caches of all threads.
pub fn release() {
    for slot in &RELEASES {
        let f = slot.load(Ordering::Acquire);
        if !f.is_null() {
            // SAFETY: `on_release` stored a function of this type.
            let f = unsafe { std::mem::transmute::<*mut (), fn()>(f) };
            f();
        }
    }
}

/// Returns free memory of the C allocator to the operating system, if the C library supports that.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointers and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn idle_caches_are_emptied_at_once_and_caches_in_use_when_left() {
        static CACHES: ThreadCaches<Vec<u8>> = ThreadCaches::new();
        let (to_thread, next) = channel::<()>();
        let (to_test, done) = channel::<Vec<u8>>();
        let thread = thread::spawn(move || {
            let cache = CACHES.claim();
            let mut used = cache.enter().expect("no other thread empties the cache");
            used.push(7);
            assert!(cache.enter().is_none(), "a cache in use cannot be entered again");
            to_test.send(used.clone()).expect("the test thread receives messages");
            next.recv().expect("the test thread sends a message to continue");
            assert_eq!(*used, [7], "a cache in use is not emptied");
            drop(used);
            let mut used = cache.enter().expect("no other thread empties the cache");
            let seen = used.clone();
            used.push(8);
            drop(used);
            to_test.send(seen).expect("the test thread receives messages");
            next.recv().expect("the test thread sends a message to continue");
            to_test
                .send(cache.enter().expect("an idle cache can be entered").clone())
                .expect("the test thread receives messages");
        });
        assert_eq!(done.recv().expect("the other thread sends a value"), [7]);
        CACHES.empty(std::mem::take);
        to_thread.send(()).expect("the worker thread receives messages");
        assert_eq!(done.recv().expect("the other thread sends a value"), [0u8; 0]);
        CACHES.empty(std::mem::take);
        to_thread.send(()).expect("the worker thread receives messages");
        assert_eq!(done.recv().expect("the other thread sends a value"), [0u8; 0]);
        thread.join().expect("the thread ends without a panic");
    }

    #[test]
    fn a_thread_reuses_the_emptied_cache_of_an_ended_thread() {
        static CACHES: ThreadCaches<Vec<u8>> = ThreadCaches::new();
        for _ in 0..5 {
            thread::spawn(|| {
                let cache = CACHES.claim();
                let mut used = cache.enter().expect("no other thread uses the cache");
                assert!(used.is_empty());
                used.push(1);
            })
            .join()
            .expect("the thread ends without a panic");
        }
        assert_eq!(CACHES.nodes().count(), 1);
    }

    #[test]
    fn threads_use_caches_while_others_empty_them() {
        static CACHES: ThreadCaches<Vec<usize>> = ThreadCaches::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let cache = CACHES.claim();
                    for i in 0..2000 {
                        let Some(mut used) = cache.enter() else { continue };
                        used.push(i);
                        assert_eq!(used.last(), Some(&i));
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| (0..500).for_each(|_| CACHES.empty(std::mem::take)));
            }
        });
    }

    #[test]
    fn a_function_is_registered_once() {
        use std::sync::atomic::AtomicUsize;
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        fn count() {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
        on_release(count);
        on_release(count);
        release();
        assert_eq!(CALLS.load(Ordering::Relaxed), 1);
        trim();
    }
}
