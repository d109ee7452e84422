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
use rustix::io::Errno;

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
    /// Describes the problem, with the location.
    pub(crate) fn map(&mut self, location: &str) -> Result<SharedMap, String> {
        if let Some(map) = self.maps.get(location) {
            return Ok(map.clone());
        }
        let file = self.open(location)?;
        // SAFETY: `Model::open` requires that the model's files do not change while they are mapped.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| {
            format!("the external data '{location}' cannot be mapped to memory: {e}")
        })?;
        let map = Arc::new(map);
        self.maps.insert(location.into(), map.clone());
        Ok(map)
    }

    /// Opens the file at `location`, which must be an ordinary file below the folder.
    fn open(&mut self, location: &str) -> Result<File, String> {
        let path = relative_path(location)?;
        let Some(folder) = &self.folder else {
            return Err(format!(
                "the model refers to the file '{location}' of external data in its own folder, but the folder is unknown, because \
                 the model was loaded from bytes; load the model by its path"
            ));
        };
        if self.handle.is_none() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            let fd = rustix::fs::open(folder, flags, Mode::empty())
                .map_err(|e| format!("the model's folder cannot be opened: {e}"))?;
            self.handle = Some(fd);
        }
        let handle = self.handle.as_ref().ok_or("the model has no folder")?;
        let file = open_beneath(handle, &path).map_err(|e| open_error(e, location))?;
        let file = File::from(file);
        check_regular_file(&file, location)?;
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
            Component::ParentDir => return Err(leaves_folder(location)),
            Component::RootDir | Component::Prefix(_) => {
                return Err(format!(
                    "the external data '{location}' has an absolute path, but the path must be relative to the model"
                ));
            }
        }
    }
    if out.as_os_str().is_empty() || location.contains('\0') {
        return Err(format!(
            "the location '{location}' of external data is not the path of a file"
        ));
    }
    Ok(out)
}

/// Returns the error message for a location outside of the model's folder.
fn leaves_folder(location: &str) -> String {
    format!(
        "the path of the external data '{location}' leaves the model's folder; move the file into the folder"
    )
}

/// Opens a relative path below `folder` without following symbolic links.
fn open_beneath(folder: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    // `NONBLOCK`, because opening a device or a pipe must not block. The file type is checked afterwards.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(folder, path, flags, Mode::empty(), resolve) {
        Ok(fd) => Ok(fd),
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(folder, path, flags),
        Err(e) => Err(e),
    }
}

/// Opens a path below `folder` component by component, for systems and sandboxes without `openat2`.
fn open_by_component(folder: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut current: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let inner = if parts.peek().is_some() { flags | OFlags::DIRECTORY } else { flags };
        let next =
            openat(current.as_ref().unwrap_or(folder), part.as_os_str(), inner, Mode::empty());
        current = Some(next?);
    }
    current.ok_or(Errno::NOENT)
}

/// Returns the error message for an error of the operating system on opening the file at `location`.
fn open_error(e: Errno, location: &str) -> String {
    match e {
        Errno::LOOP => {
            format!("the external data '{location}' is a symbolic link, which is not followed")
        }
        Errno::XDEV => leaves_folder(location),
        Errno::NOTDIR => format!(
            "the external data '{location}' is not in a folder, or its path contains a symbolic link"
        ),
        e => format!("the external data '{location}' cannot be opened: {e}"),
    }
}

/// Rejects everything but ordinary files: devices, pipes and folders. Hard links are rejected, too, because they may refer to any
/// file on the disk.
fn check_regular_file(file: &File, location: &str) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let meta = file
        .metadata()
        .map_err(|e| format!("the external data '{location}' cannot be read: {e}"))?;
    if !meta.is_file() {
        return Err(format!("the external data '{location}' is not a regular file"));
    }
    if meta.nlink() > 1 {
        return Err(format!(
            "the external data '{location}' is a hard link, which may refer to a file outside the model's folder; copy the file"
        ));
    }
    Ok(())
}
