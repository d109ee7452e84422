//! The code cache: object code of compilation units in a directory of the user, which later processes link instead of compiling
//! again.
//!
//! The key of an entry is a hash of LLVM's input: the unoptimized module, which also names the CPU and its features, the passes and
//! the version of LLVM. So an entry never becomes stale, and object code needs no other description. External functions are symbols
//! in it, which the linker resolves in the running process.
//!
//! Entries are machine code, so only files that nobody but the user can write are read: the directory and its files belong to the
//! user and give no permissions to others. Damaged entries are removed. Errors are ignored, because the cache only saves time.
//!
//! `PLIANT_CODE_CACHE` names another directory, or disables the cache with `off`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use inkwell::module::Module;
use sha2::{Digest, Sha256};

/// The environment variable with the directory of the cache, or `off`.
const VARIABLE: &str = "PLIANT_CODE_CACHE";
/// The first bytes of a file of the code cache, with the version of the file format.
const MAGIC: &[u8; 8] = b"PLNTOBJ1";
/// Maximum size in bytes of a file of the code cache. Larger files are ignored.
const MAX_ENTRY_BYTES: u64 = 64 << 20;
/// Maximum size of all files of the code cache together, in bytes. If they are larger, the files that were used least recently are
/// removed.
const MAX_TOTAL_BYTES: u64 = 256 << 20;
/// Number of files that a process adds to the code cache between two checks of the total size. The first check follows the first
/// file.
const ENTRIES_PER_CHECK: usize = 64;

/// The start of the names of code cache files that are being written.
const UNFINISHED_PREFIX: &str = ".unfinished-";

type Hash = [u8; 32];

/// The key of object code in the code cache: a hash of the LLVM module, the LLVM passes, and the versions of LLVM and
/// Pliant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheKey(Hash);

impl CacheKey {
    /// Returns the key of the object code to which LLVM compiles a module with `passes`. The module is not optimized yet.
    pub fn of(module: &Module<'_>, passes: &str) -> CacheKey {
        let mut hash = Sha256::new();
        let (major, minor, patch) = inkwell::support::get_llvm_version();
        let versions =
            format!("{} LLVM {major}.{minor}.{patch} {passes}\n", env!("CARGO_PKG_VERSION"));
        hash.update(versions);
        hash.update(module.write_bitcode_to_memory().as_slice());
        CacheKey(hash.finalize().into())
    }

    fn file_name(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A directory of cached object code.
#[derive(Debug)]
pub(crate) struct CodeCache {
    directory: PathBuf,
    /// The number of entries that this process has added to the cache.
    stored: AtomicUsize,
}

impl CodeCache {
    /// Returns the cache of this process; `None` if it is disabled or its directory cannot be used.
    pub fn get() -> Option<&'static CodeCache> {
        static CACHE: OnceLock<Option<CodeCache>> = OnceLock::new();
        CACHE.get_or_init(|| CodeCache::open(&selected_directory()?)).as_ref()
    }

    /// Opens the cache in a directory, which is created if it does not exist. `None` if the directory cannot be created, or if
    /// others than the user have permissions.
    fn open(directory: &Path) -> Option<CodeCache> {
        // The process may change its working directory later.
        let directory = std::path::absolute(directory).ok()?;
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
        let metadata = fs::metadata(&directory).ok().filter(|m| m.is_dir() && is_private(m));
        metadata.map(|_| CodeCache { directory, stored: AtomicUsize::new(0) })
    }

    /// Returns the object code with this key; `None` if the cache does not contain it or its file is damaged.
    pub fn load(&self, key: CacheKey) -> Option<Vec<u8>> {
        let path = self.directory.join(key.file_name());
        // Opening a pipe does not wait for a writer.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_private(&metadata) || metadata.len() > MAX_ENTRY_BYTES {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let Some(object) = decode(&bytes, key) else {
            let _ = fs::remove_file(&path);
            return None;
        };
        // The time of the last use, by which old entries are found.
        let _ = file.set_modified(SystemTime::now());
        Some(object.to_vec())
    }

    /// Stores object code in the cache under a key.
    pub fn store(&self, key: CacheKey, object: &[u8]) {
        let written = self.write(key, object);
        let stored = self.stored.fetch_add(1, Ordering::Relaxed);
        if written.is_ok() && stored.is_multiple_of(ENTRIES_PER_CHECK) {
            self.remove_old_entries(MAX_TOTAL_BYTES);
        }
    }

    /// Writes an entry to a temporary file, and then renames it, so that other processes see either nothing or the whole entry.
    fn write(&self, key: CacheKey, object: &[u8]) -> std::io::Result<()> {
        let mut file =
            tempfile::Builder::new().prefix(UNFINISHED_PREFIX).tempfile_in(&self.directory)?;
        file.write_all(MAGIC)?;
        file.write_all(&key.0)?;
        file.write_all(&Sha256::digest(object))?;
        file.write_all(object)?;
        file.persist(self.directory.join(key.file_name()))?;
        Ok(())
    }

    /// Removes the entries that were used least recently until the others have at most `limit` bytes together. Other files in the
    /// directory are neither counted nor removed.
    fn remove_old_entries(&self, limit: u64) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let own = entries.flatten().filter(|e| e.file_name().to_str().is_some_and(is_own_name));
        let files = own.filter_map(|e| Some((e.path(), e.metadata().ok()?)));
        let mut files: Vec<_> = files.filter(|(_, m)| m.is_file()).collect();
        files.sort_by_key(|(_, m)| m.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        let mut total: u64 = files.iter().map(|(_, m)| m.len()).sum();
        for (path, metadata) in files {
            if total <= limit {
                break;
            }
            let _ = fs::remove_file(path);
            total -= metadata.len();
        }
    }
}

/// Whether a file name is that of an entry or of a file that a process was writing when it was killed.
fn is_own_name(name: &str) -> bool {
    let is_hash = name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash || name.starts_with(UNFINISHED_PREFIX)
}

/// Returns the directory that the environment selects; `None` if the cache is disabled, or if the user has no home directory.
fn selected_directory() -> Option<PathBuf> {
    let non_empty = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match non_empty(VARIABLE) {
        Some(value) if value == "off" => None,
        Some(directory) => Some(directory.into()),
        None => {
            // The XDG base directory specification: relative paths are ignored.
            let xdg = non_empty("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
            let cache = xdg.or_else(|| Some(PathBuf::from(non_empty("HOME")?).join(".cache")));
            cache.map(|directory| directory.join("pliant").join("code"))
        }
    }
}

/// Whether a file or directory belongs to the user of the process and gives no permissions to others.
fn is_private(metadata: &fs::Metadata) -> bool {
    // SAFETY: the function has no preconditions.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o077 == 0
}

/// Returns the object code in the bytes of an entry; `None` if the entry is damaged or has another key.
fn decode(bytes: &[u8], key: CacheKey) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (stored_key, rest) = rest.split_first_chunk::<32>()?;
    let (hash, object) = rest.split_first_chunk::<32>()?;
    let actual: Hash = Sha256::digest(object).into();
    (*stored_key == key.0 && *hash == actual).then_some(object)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn cache() -> (tempfile::TempDir, CodeCache) {
        let dir = tempfile::tempdir().expect("the directory for temporary files is writable");
        let cache = CodeCache::open(&dir.path().join("a/b")).expect("the directory is private");
        (dir, cache)
    }

    const KEY: CacheKey = CacheKey([7; 32]);

    #[test]
    fn stored_code_is_loaded() {
        let (_dir, cache) = cache();
        assert_eq!(cache.load(KEY), None);
        cache.store(KEY, b"object");
        assert_eq!(cache.load(KEY).as_deref(), Some(&b"object"[..]));
        assert_eq!(cache.load(CacheKey([8; 32])), None);
        let entry = fs::metadata(cache.directory.join(KEY.file_name())).expect("an entry exists");
        assert!(is_private(&entry));
    }

    #[test]
    fn damaged_entries_are_removed() {
        let (_dir, cache) = cache();
        cache.store(KEY, b"object");
        let path = cache.directory.join(KEY.file_name());
        let bytes = fs::read(&path).expect("an entry exists");
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).expect("the entry is writable");
            assert_eq!(cache.load(KEY), None, "{length} bytes");
            assert!(!path.exists(), "{length} bytes");
            cache.store(KEY, b"object");
        }
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            fs::write(&path, &changed).expect("the entry is writable");
            assert_eq!(cache.load(KEY), None, "byte {position}");
            cache.store(KEY, b"object");
        }
    }

    #[test]
    fn entries_of_other_keys_are_rejected() {
        let (_dir, cache) = cache();
        cache.store(KEY, b"object");
        let other = CacheKey([9; 32]);
        let [from, to] = [KEY, other].map(|key| cache.directory.join(key.file_name()));
        fs::copy(from, to).expect("the directory is writable");
        assert_eq!(cache.load(other), None);
    }

    #[test]
    fn files_and_directories_with_permissions_for_others_are_ignored() {
        let (_dir, cache) = cache();
        cache.store(KEY, b"object");
        let path = cache.directory.join(KEY.file_name());
        let permit = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own file");
        };
        permit(&path, 0o620);
        assert_eq!(cache.load(KEY), None);
        permit(&path, 0o600);
        assert!(cache.load(KEY).is_some());
        permit(&cache.directory, 0o750);
        assert!(CodeCache::open(&cache.directory).is_none());
        permit(&cache.directory, 0o700);
        let link = cache.directory.join(CacheKey([1; 32]).file_name());
        std::os::unix::fs::symlink(&path, link).expect("the directory is writable");
        assert_eq!(cache.load(CacheKey([1; 32])), None);
    }

    #[test]
    fn unusable_directories_disable_the_cache() {
        let dir = tempfile::tempdir().expect("the directory for temporary files is writable");
        let file = dir.path().join("file");
        fs::File::create(&file).expect("the directory is writable");
        assert!(CodeCache::open(&file).is_none());
        assert!(CodeCache::open(&file.join("below")).is_none());
    }

    #[test]
    fn entries_used_least_recently_are_removed_first() {
        let (_dir, cache) = cache();
        let keys = [1, 2, 3].map(|k| CacheKey([k; 32]));
        for (age, key) in [30, 20, 10].into_iter().zip(keys) {
            cache.store(key, &[0; 100]);
            let file = fs::File::options().append(true).open(cache.directory.join(key.file_name()));
            let time = SystemTime::now() - std::time::Duration::from_secs(age);
            file.and_then(|f| f.set_modified(time)).expect("the entry is writable");
        }
        assert!(cache.load(keys[0]).is_some());
        cache.remove_old_entries(400);
        assert_eq!(keys.map(|key| cache.load(key).is_some()), [true, false, true]);
    }

    #[test]
    fn other_files_in_the_directory_are_kept() {
        let (_dir, cache) = cache();
        let other = cache.directory.join("thesis.tar");
        let unfinished = cache.directory.join(format!("{UNFINISHED_PREFIX}1"));
        for path in [&other, &unfinished] {
            fs::write(path, [0; 1000]).expect("the directory is writable");
        }
        cache.store(KEY, b"object");
        cache.remove_old_entries(0);
        assert!(other.exists() && !unfinished.exists());
        assert_eq!(cache.load(KEY), None);
    }

    #[test]
    fn pipes_in_place_of_entries_are_ignored() {
        let (_dir, cache) = cache();
        let path = cache.directory.join(KEY.file_name());
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: the name is a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(cache.load(KEY), None);
    }
}
