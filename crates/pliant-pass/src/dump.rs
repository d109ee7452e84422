//! Modules in files, for who looks for the cause of a failure.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pliant_ir::IRModule;

use crate::context::PassContext;
use crate::instrument::file_name;
use crate::text;

/// Writes a module for someone to look at; `None` where that fails, because the failure told matters more.
pub(crate) fn write(
    pass: &str,
    when: &str,
    module: &IRModule,
    ctx: &PassContext,
) -> Option<PathBuf> {
    let dir = ctx.dump_dir.clone().unwrap_or_else(std::env::temp_dir);
    let stem = format!("pliant-{when}-{}", file_name(pass));
    write_new(&dir, &stem, "py", &text::module_text(module, ctx.ops))
}

/// Writes into a file of the directory that did not exist, `stem-*`: a directory that others can write to may hold
/// anything of a name.
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
