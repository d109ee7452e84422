//! Test helpers: temporary directories, and a function that runs the command line in the test process.

use std::ffi::OsString;
use std::path::PathBuf;

/// A temporary directory that is removed on drop.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new(name: &str) -> TempDir {
        let path = std::env::temp_dir().join(format!("pliant-cli-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the command line. Returns the exit code, standard output and standard error.
pub fn pliant(args: &[&str]) -> (i32, String, String) {
    let args: Vec<OsString> = ["pliant"].iter().chain(args).map(Into::into).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = pliant_cli::run(args, &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}
