//! External data: weight files next to the model. Their paths cannot lead outside the model's folder.
//!
//! A location is resolved relative to an open handle of the folder. `openat2` rejects `..`, absolute paths and symbolic links.
//! Without that system call, the components of the path are opened one by one. Hard links and devices are rejected after opening,
//! based on the file's metadata.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use rustc_hash::FxHashMap;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};

use crate::model_file::SharedMap;

/// The external data files of one import. Each file is mapped once.
#[derive(Debug)]
pub(crate) struct ExternalData {
    folder: Option<PathBuf>,
    handle: Option<OwnedFd>,
    maps: FxHashMap<String, SharedMap>,
}

impl ExternalData {
    /// Creates the external data of a model in `folder`. Without a folder, the model has no external data.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        ExternalData { folder, handle: None, maps: FxHashMap::default() }
    }

    /// Maps the external data file at `location`, a path relative to the model's folder.
    ///
    /// # Errors
    /// Describes the problem, without the location.
    pub(crate) fn map(&mut self, location: &str) -> Result<SharedMap, String> {
        if let Some(map) = self.maps.get(location) {
            return Ok(map.clone());
        }
        let file = self.open(location)?;
        // SAFETY: `Model::open` requires that the model's files do not change while they are mapped.
        let map =
            unsafe { Mmap::map(&file) }.map_err(|e| format!("the file cannot be mapped: {e}"))?;
        let map = Arc::new(map);
        self.maps.insert(location.into(), map.clone());
        Ok(map)
    }

    /// Opens the file at `location`, which must be an ordinary file below the folder.
    fn open(&mut self, location: &str) -> Result<File, String> {
        let path = relative_path(location)?;
        let Some(folder) = &self.folder else {
            return Err("the file belongs next to the model, but the model was loaded from bytes and has no folder; \
                        load the model by its path"
                .into());
        };
        if self.handle.is_none() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            let fd = rustix::fs::open(folder, flags, Mode::empty())
                .map_err(|e| format!("the model's folder cannot be opened: {e}"))?;
            self.handle = Some(fd);
        }
        let handle = self.handle.as_ref().ok_or("the model has no folder")?;
        let file = File::from(open_beneath(handle, &path)?);
        check_regular_file(&file)?;
        Ok(file)
    }
}

/// Converts a location to a relative path of plain names, without `..`.
fn relative_path(location: &str) -> Result<PathBuf, String> {
    let path = Path::new(location);
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err("the path leaves the model's folder".into()),
            Component::RootDir | Component::Prefix(_) => {
                return Err("the location is an absolute path".into());
            }
        }
    }
    if out.as_os_str().is_empty() || location.contains('\0') {
        return Err("the path names no file".into());
    }
    Ok(out)
}

/// Opens a relative path below `folder` without following symbolic links.
fn open_beneath(folder: &OwnedFd, path: &Path) -> Result<OwnedFd, String> {
    // `NONBLOCK`, because opening a device or a pipe must not block. The file type is checked afterwards.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(folder, path, flags, Mode::empty(), resolve) {
        Ok(fd) => Ok(fd),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            open_by_component(folder, path, flags)
        }
        Err(e) => Err(open_error(e)),
    }
}

/// Opens a path below `folder` component by component, for systems and sandboxes without `openat2`.
fn open_by_component(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, String> {
    let mut current: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let inner = if parts.peek().is_some() { flags | OFlags::DIRECTORY } else { flags };
        let next =
            openat(current.as_ref().unwrap_or(folder), part.as_os_str(), inner, Mode::empty());
        current = Some(next.map_err(open_error)?);
    }
    current.ok_or_else(|| "the path names no file".into())
}

/// Describes an error of the operating system on opening a file.
fn open_error(e: rustix::io::Errno) -> String {
    match e {
        rustix::io::Errno::LOOP => "the file is a symbolic link, which is not followed".into(),
        rustix::io::Errno::XDEV => "the path leaves the model's folder".into(),
        rustix::io::Errno::NOTDIR => {
            "the file is not in a folder, or its path contains a symbolic link".into()
        }
        e => format!("the file cannot be opened: {e}"),
    }
}

/// Rejects everything but ordinary files: devices, pipes and folders. Hard links are rejected, too, because they may refer to any
/// file on the disk.
fn check_regular_file(file: &File) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata().map_err(|e| format!("the file cannot be read: {e}"))?;
    if !meta.is_file() {
        return Err("the file is not a regular file".into());
    }
    if meta.nlink() > 1 {
        return Err(
            "the file is a hard link, which may refer to a file outside the model's folder; copy the file"
                .into(),
        );
    }
    Ok(())
}
