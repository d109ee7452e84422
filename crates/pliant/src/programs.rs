//! [`Programs`]: small programs that are compiled when a run first needs them, in a bounded cache.

use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use indexmap::IndexMap;
use pliant_vm::VirtualMachine;

/// Maximum number of cached programs; the least recently used ones are evicted.
const MAX_PROGRAMS: usize = 512;

/// A program, or the error of its creation.
type Made<E> = Result<VirtualMachine, E>;

/// Programs by key, with the time of their last use.
pub(crate) struct Programs<K, E> {
    table: Mutex<Table<K, E>>,
}

/// A program that is created once, by the first thread that needs it.
type Kept<E> = Arc<OnceLock<Made<E>>>;

struct Table<K, E> {
    programs: Option<IndexMap<K, (Kept<E>, u64)>>,
    time: u64,
}

impl<K: Hash + Eq, E> Programs<K, E> {
    /// An empty cache.
    pub(crate) const fn new() -> Self {
        Programs { table: Mutex::new(Table { programs: None, time: 0 }) }
    }

    /// The current number of programs.
    pub(crate) fn len(&self) -> usize {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.programs.as_ref().map_or(0, IndexMap::len)
    }

    /// The program with that key, created the first time. Other threads that need the same one wait
    /// for it; those that need others do not.
    pub(crate) fn program(&self, key: K, make: impl FnOnce() -> Made<E>) -> Program<E> {
        let kept = self.table.lock().unwrap_or_else(PoisonError::into_inner).kept(key);
        kept.get_or_init(make);
        Program(kept)
    }
}

impl<K: Hash + Eq, E> Table<K, E> {
    fn kept(&mut self, key: K) -> Kept<E> {
        self.time += 1;
        let time = self.time;
        let programs = self.programs.get_or_insert_with(IndexMap::new);
        if let Some((program, used)) = programs.get_mut(&key) {
            *used = time;
            return program.clone();
        }
        if programs.len() >= MAX_PROGRAMS {
            // Evict a quarter at once, so that finding the oldest costs little per program.
            let mut times: Vec<u64> = programs.values().map(|(_, used)| *used).collect();
            times.sort_unstable();
            let oldest = times[MAX_PROGRAMS / 4];
            programs.retain(|_, (_, used)| *used > oldest);
        }
        let program = Arc::default();
        programs.insert(key, (Arc::clone(&program), time));
        program
    }
}

/// A handle of a program, which keeps it alive.
pub(crate) struct Program<E>(Kept<E>);

impl<E> std::ops::Deref for Program<E> {
    type Target = Made<E>;

    fn deref(&self) -> &Made<E> {
        self.0.wait()
    }
}
