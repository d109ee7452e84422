//! The texts of all scripts parsed from Python. Source locations in modules refer to them.
//!
//! Each text is stored once, even if it is parsed repeatedly: the text of a macro is parsed with each script that uses
//! it. Beyond a size limit, the oldest texts are dropped, and diagnostics for modules parsed from them no longer show
//! source lines.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pliant_diag::{FileId, SourceFile, SourceMap};

/// Maximum total size, in bytes, of the script texts that are kept for diagnostics.
const MAX_BYTES: usize = 64 << 20;

/// The number of bytes that each kept script text counts in addition to its characters, for the data structures that refer to it.
const OVERHEAD: usize = 256;

static SOURCES: Mutex<Option<Sources>> = Mutex::new(None);

#[derive(Default)]
struct Sources {
    map: SourceMap,
    ids: HashMap<SourceFile, FileId>,
    bytes: usize,
}

impl Sources {
    fn add(&mut self, file: SourceFile, limit: usize) -> FileId {
        if let Some(&id) = self.ids.get(&file) {
            return id;
        }
        self.bytes += cost(&file);
        let id = self.map.add(file.clone());
        self.ids.insert(file, id);
        self.drop_oldest(limit);
        id
    }

    /// If the kept script texts take more than `limit` bytes, drops the oldest ones, several at a time. The newest text is always
    /// kept.
    fn drop_oldest(&mut self, limit: usize) {
        if self.bytes <= limit {
            return;
        }
        let mut remaining = self.bytes;
        let target = limit / 4 * 3;
        let oldest = self.map.files().take_while(|file| {
            let exceeds = remaining > target;
            remaining = remaining.saturating_sub(cost(file));
            exceeds
        });
        let count = oldest.count().min(self.map.files().count().saturating_sub(1));
        for file in self.map.forget_oldest(count) {
            self.bytes = self.bytes.saturating_sub(cost(&file));
            self.ids.remove(&file);
        }
    }
}

fn cost(file: &SourceFile) -> usize {
    file.text.len() + OVERHEAD
}

/// Registers a script text before it is parsed.
pub fn add_source(file: SourceFile) -> FileId {
    with_locked(|sources| sources.add(file, MAX_BYTES))
}

/// Registers an ONNX model, to whose nodes source locations refer. [`name_nodes`] sets the names of the nodes after
/// they have been read.
pub fn add_graph(name: &str) -> FileId {
    with_locked(|sources| {
        sources.bytes += OVERHEAD;
        sources.map.add_graph(name)
    })
}

/// Sets the names of the nodes of a model that [`add_graph`] registered.
pub fn name_nodes(graph: FileId, names: &str) {
    with_locked(|sources| {
        sources.bytes += names.len();
        sources.map.name_nodes(graph, names);
        sources.drop_oldest(MAX_BYTES);
    });
}

/// Calls `work` with the script texts that are kept for diagnostics.
pub fn with_sources<T>(work: impl FnOnce(&SourceMap) -> T) -> T {
    with_locked(|sources| work(&sources.map))
}

fn with_locked<T>(work: impl FnOnce(&mut Sources) -> T) -> T {
    let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
    work(sources.get_or_insert_with(Sources::default))
}

/// Returns the number of registered script texts, and their size in bytes.
#[pyo3::pyfunction]
pub fn source_texts() -> (usize, usize) {
    with_locked(|sources| (sources.ids.len(), sources.bytes))
}
