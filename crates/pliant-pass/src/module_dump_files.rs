//! Writes modules to files for debugging after a failure.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use pliant_ir::IRModule;

use crate::module_text;
use crate::pass_context::PassContext;
use crate::pass_instruments::file_name;

/// Writes a module to a file in [`PassContext::dump_dir`], and returns the file's path. `when` is `before` or `after`, relative
/// to the pass. Returns `None` if writing fails; the caller then reports the failure of the pass without a file.
pub(crate) fn write(
    pass: &str,
    when: &str,
    module: &IRModule,
    ctx: &PassContext,
) -> Option<PathBuf> {
    let dir = ctx.dump_dir.clone().unwrap_or_else(std::env::temp_dir);
    let stem = format!("pliant-{when}-{}", file_name(pass));
    let text = module_text::module_text(module, ctx.ops);
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let same = recent.iter().find(|(s, t, p)| *s == stem && *t == text && p.starts_with(&dir));
    if let Some((_, _, path)) = same.filter(|(_, _, path)| path.exists()) {
        return Some(path.clone());
    }
    let path = write_new(&dir, &stem, "py", &text)?;
    let cached: usize = recent.iter().map(|(_, t, _)| t.len()).sum();
    if cached + text.len() > MAX_CACHED_BYTES {
        recent.clear();
    }
    recent.push((stem, text, path.clone()));
    Some(path)
}

/// The recently written dumps, each as (stem of the file name, text, path). They are kept so that a pass that repeatedly fails on
/// the same module writes only one file.
static RECENT: Mutex<Vec<(String, String, PathBuf)>> = Mutex::new(Vec::new());

/// Maximum total size of the texts in [`RECENT`], in bytes.
const MAX_CACHED_BYTES: usize = 4 << 20;

/// Writes the text to a new file `stem-*` in the directory, and returns its path; `None` if writing fails. Existing files are
/// never overwritten, because other users may be able to write to the directory.
pub fn write_new(dir: &Path, stem: &str, extension: &str, text: &str) -> Option<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    std::fs::create_dir_all(dir).ok()?;
    for _ in 0..1000 {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{stem}-{}-{number}.{extension}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(text.as_bytes()).ok().map(|()| path),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}
