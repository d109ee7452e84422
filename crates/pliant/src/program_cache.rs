//! [`Programs`]: a bounded cache of small programs that are compiled at run time, on first use.

use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use indexmap::IndexMap;
use pliant_vm::VirtualMachine;

/// Maximum number of programs in a cache. If there are more, the program whose last use is the oldest is removed.
const MAX_PROGRAMS: usize = 512;

/// The result of a compilation: the program, or the error.
type CompileOutcome<E> = Result<VirtualMachine, E>;

/// A cache of programs by key. It records the last use of each program, so that the least recently used program is evicted first.
pub(crate) struct Programs<K, E> {
    table: Mutex<Table<K, E>>,
}

/// The cache entry of a program. The first thread that needs the program compiles it.
type CacheSlot<E> = Arc<OnceLock<CompileOutcome<E>>>;

struct Table<K, E> {
    programs: Option<IndexMap<K, (CacheSlot<E>, u64)>>,
    time: u64,
}

impl<K: Hash + Eq, E> Programs<K, E> {
    /// Creates an empty cache.
    pub(crate) const fn new() -> Self {
        Programs { table: Mutex::new(Table { programs: None, time: 0 }) }
    }

    /// Returns the number of programs currently in the cache.
    pub(crate) fn len(&self) -> usize {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.programs.as_ref().map_or(0, IndexMap::len)
    }

    /// Returns the program with this key, which is compiled with `compile` on first use. Other
    /// threads that request the same key wait for the result; requests for other keys do not wait.
    pub(crate) fn program(
        &self,
        key: K,
        compile: impl FnOnce() -> CompileOutcome<E>,
    ) -> Program<E> {
        let slot = self.table.lock().unwrap_or_else(PoisonError::into_inner).slot(key);
        slot.get_or_init(compile);
        Program(slot)
    }
}

impl<K: Hash + Eq, E> Table<K, E> {
    /// Returns the cache entry of a key, and adds an empty entry if there is none. If the cache is full, adding an entry
    /// evicts the program whose last use is the oldest.
    fn slot(&mut self, key: K) -> CacheSlot<E> {
        self.time += 1;
        let time = self.time;
        let programs = self.programs.get_or_insert_with(IndexMap::new);
        if let Some((program, last_use)) = programs.get_mut(&key) {
            *last_use = time;
            return program.clone();
        }
        if programs.len() >= MAX_PROGRAMS {
            // Evict a quarter at once, so that finding the oldest costs little per program.
            let mut times: Vec<u64> = programs.values().map(|(_, last_use)| *last_use).collect();
            times.sort_unstable();
            let oldest = times[MAX_PROGRAMS / 4];
            programs.retain(|_, (_, last_use)| *last_use > oldest);
        }
        let program = Arc::default();
        programs.insert(key, (Arc::clone(&program), time));
        program
    }
}

/// A handle that keeps a program alive after its eviction from the cache.
pub(crate) struct Program<E>(CacheSlot<E>);

impl<E> std::ops::Deref for Program<E> {
    type Target = CompileOutcome<E>;

    fn deref(&self) -> &CompileOutcome<E> {
        self.0.wait()
    }
}
