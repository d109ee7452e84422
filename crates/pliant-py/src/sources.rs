//! The texts of all scripts that Python parsed: spans in modules point into them.
//!
//! Each text stands here once, however often it is parsed: a macro's is read with each script that uses it. Beyond a
//! bound the oldest are forgotten; what was made of them has no lines any more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pliant_diag::{FileId, SourceFile, SourceMap};

/// How many bytes of text are kept.
const MAX_BYTES: usize = 64 << 20;

/// What each text costs besides.
const OVERHEAD: usize = 256;

static SOURCES: Mutex<Option<Sources>> = Mutex::new(None);

#[derive(Default)]
struct Sources {
    map: SourceMap,
    known: HashMap<SourceFile, FileId>,
    bytes: usize,
}

impl Sources {
    fn add(&mut self, file: SourceFile, limit: usize) -> FileId {
        if let Some(&id) = self.known.get(&file) {
            return id;
        }
        self.bytes += cost(&file);
        let id = self.map.add(file.clone());
        self.known.insert(file, id);
        self.forget(limit);
        id
    }

    /// Forgets the oldest texts, but not the newest, where there are too many: a part at once.
    fn forget(&mut self, limit: usize) {
        if self.bytes <= limit {
            return;
        }
        let mut left = self.bytes;
        let least = limit / 4 * 3;
        let oldest = self.map.files().take_while(|file| {
            let over = left > least;
            left = left.saturating_sub(cost(file));
            over
        });
        let count = oldest.count().min(self.map.files().count().saturating_sub(1));
        for file in self.map.forget_oldest(count) {
            self.bytes = self.bytes.saturating_sub(cost(&file));
            self.known.remove(&file);
        }
    }
}

fn cost(file: &SourceFile) -> usize {
    file.text.len() + OVERHEAD
}

/// Adds a text that is parsed.
pub fn add_source(file: SourceFile) -> FileId {
    with(|sources| sources.add(file, MAX_BYTES))
}

/// Adds a model, whose nodes are named once they have been read.
pub fn add_graph(name: &str) -> FileId {
    with(|sources| {
        sources.bytes += OVERHEAD;
        sources.map.add_graph(name)
    })
}

/// Names the nodes of a model.
pub fn name_nodes(graph: FileId, names: &str) {
    with(|sources| {
        sources.bytes += names.len();
        sources.map.name_nodes(graph, names);
        sources.forget(MAX_BYTES);
    });
}

/// Calls `work` with the texts that are kept.
pub fn with_sources<T>(work: impl FnOnce(&SourceMap) -> T) -> T {
    with(|sources| work(&sources.map))
}

fn with<T>(work: impl FnOnce(&mut Sources) -> T) -> T {
    let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    work(sources.get_or_insert_with(Sources::default))
}

/// How many texts are kept, and how many bytes they take.
#[pyo3::pyfunction]
pub fn source_texts() -> (usize, usize) {
    with(|sources| (sources.known.len(), sources.bytes))
}
