//! The memory limit: a run that needs too much memory fails with an error before the operating system kills the
//! process.
//!
//! The size of every [`AlignedBuf`](crate::AlignedBuf) counts towards the limit, including the overhead of the
//! allocator and of the buffer's handles. Other allocations whose size depends on the run reserve their size
//! ([`Reserved`]), so that they count, too.
//!
//! [`set_memory_limit`] or the environment variable `PLIANT_MEMORY_LIMIT` sets the limit (a number of bytes, or with a
//! binary unit: `512M`, `4G`). The default is nine tenths of the sum of held and available memory. Available memory is
//! the least of what the host, the control groups and the resource limits of the process allow. It is determined again
//! only when the held memory has grown, so most allocations cost one addition.
//!
//! Before an allocation fails, cached memory is released ([`on_low_memory`]).

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{TensorError, memory_reserve};

static HELD: AtomicUsize = AtomicUsize::new(0);
/// Number of held bytes up to which allocations succeed without checking the memory limit again.
static CEILING: AtomicUsize = AtomicUsize::new(0);
/// The memory limit in bytes that the user set; 0 if none is set.
static LIMIT: AtomicUsize = AtomicUsize::new(0);
/// The function that releases cached memory when memory is low.
static RELEASE_CACHES: OnceLock<fn()> = OnceLock::new();

/// Sets the maximum number of bytes that tensors, storages and scratch memory may hold at a time. `None` restores the default.
///
/// # Examples
/// ```
/// use pliant_tensor::{DType, Tensor, held_bytes, set_memory_limit};
///
/// set_memory_limit(Some(held_bytes() + (1 << 20)));
/// let large = || Tensor::zeros(&[1 << 20], DType::Float32);
/// assert!(large().is_err(), "4 MiB exceed the limit");
/// set_memory_limit(None);
/// assert!(large().is_ok());
/// ```
pub fn set_memory_limit(bytes: Option<usize>) {
    let limit = bytes.map_or(0, |b| b.max(1));
    LIMIT.store(limit, Ordering::Relaxed);
    CEILING.store(limit, Ordering::Relaxed);
    if bytes.is_some_and(|bytes| held_bytes() > bytes) {
        release();
    }
}

/// Registers the callback that releases the calling thread's cached memory when memory is low. Only the first registration has an
/// effect.
pub fn on_low_memory(release: fn()) {
    let _ = RELEASE_CACHES.set(release);
}

/// Releases the calling thread's cached memory, with the function that [`on_low_memory`] registered.
pub(crate) fn release() {
    if let Some(release) = RELEASE_CACHES.get() {
        release();
    }
}

/// A number of bytes that count towards the memory limit until this value is dropped.
#[derive(Debug)]
pub struct Reserved(usize);

impl Reserved {
    /// Reserves bytes that are about to be allocated by other means than [`AlignedBuf`](crate::AlignedBuf).
    ///
    /// # Errors
    /// `MemoryLimit` if the limit would be exceeded.
    pub fn new(bytes: usize) -> Result<Reserved, TensorError> {
        acquire(bytes)?;
        Ok(Reserved(bytes))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        release_bytes(self.0);
    }
}

/// Returns the memory limit in bytes that was set. `None` if the default applies, or if the
/// environment variable is invalid, which the next allocation reports.
///
/// # Examples
/// ```
/// use pliant_tensor::{memory_limit, set_memory_limit};
///
/// set_memory_limit(Some(1 << 30));
/// assert_eq!(memory_limit(), Some(1 << 30));
/// ```
pub fn memory_limit() -> Option<usize> {
    requested_limit().ok().flatten()
}

/// Returns the memory limit in bytes that the program or the environment sets; `None` if neither
/// sets one.
///
/// # Errors
/// `WrongLimit` if the environment variable is invalid.
fn requested_limit() -> Result<Option<usize>, TensorError> {
    match LIMIT.load(Ordering::Relaxed) {
        0 => environment_limit(),
        limit => Ok(Some(limit)),
    }
}

/// Returns the number of bytes that count towards the memory limit now, including cached free
/// blocks.
///
/// # Examples
/// ```
/// use pliant_tensor::{DType, Tensor, held_bytes};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let before = held_bytes();
/// let tensor = Tensor::zeros(&[1024], DType::Float32)?;
/// assert!(held_bytes() >= before + tensor.nbytes());
/// # Ok(())
/// # }
/// ```
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Returns the value of `PLIANT_MEMORY_LIMIT` in bytes.
///
/// # Errors
/// `WrongLimit` if it is invalid.
fn environment_limit() -> Result<Option<usize>, TensorError> {
    static VALUE: OnceLock<Option<String>> = OnceLock::new();
    let said = VALUE.get_or_init(|| {
        std::env::var_os("PLIANT_MEMORY_LIMIT").map(|text| text.to_string_lossy().into_owned())
    });
    let Some(text) = said.as_deref().filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let wrong = || TensorError::WrongLimit { text: text.to_owned() };
    parse_bytes(text).map(Some).ok_or_else(wrong)
}

/// Parses a positive number of bytes with an optional binary unit: `4096`, `512M`, `4 GiB`.
fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits].parse().ok().filter(|&number| number > 0)?;
    let unit = text[digits..].trim_start().to_ascii_uppercase();
    let letter = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
    let power = match letter {
        "" if unit != "IB" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    number.checked_mul(1024usize.checked_pow(power)?)
}

/// Adds bytes that are about to be allocated to the held memory.
///
/// # Errors
/// `MemoryLimit` if the limit would be exceeded even after releasing cached memory.
pub(crate) fn acquire(bytes: usize) -> Result<(), TensorError> {
    // When memory is low, allocations that can fail leave the reserve to those that cannot.
    memory_reserve::check()?;
    count(bytes).or_else(|_| {
        release();
        count(bytes)
    })
}

fn count(bytes: usize) -> Result<(), TensorError> {
    let (mut before, mut allowed) = (HELD.load(Ordering::Relaxed), false);
    loop {
        // Count the bytes only if they fit, so that a rejected request does not affect other threads.
        match before.checked_add(bytes) {
            Some(held) if allowed || held <= CEILING.load(Ordering::Relaxed) => {
                let counted =
                    HELD.compare_exchange_weak(before, held, Ordering::Relaxed, Ordering::Relaxed);
                match counted {
                    Ok(_) => return Ok(()),
                    // The number of bytes held may have increased, so check again.
                    Err(now) => (allowed, before) = (allowed && now == before, now),
                }
            }
            Some(held) => {
                grow(before, held, bytes)?;
                allowed = true;
            }
            None => return Err(TensorError::OutOfMemory { bytes }),
        }
    }
}

/// Subtracts bytes that were freed from the held memory.
pub(crate) fn release_bytes(bytes: usize) {
    HELD.fetch_sub(bytes, Ordering::Relaxed);
}

/// Checks whether the process may hold `held` bytes after the allocation of `bytes` bytes. `before` is the number of bytes held
/// before it. If the allocation is allowed, raises [`CEILING`], below which further allocations need no check.
#[cold]
fn grow(before: usize, held: usize, bytes: usize) -> Result<(), TensorError> {
    let limit = match requested_limit()? {
        Some(limit) => {
            CEILING.store(limit, Ordering::Relaxed);
            limit
        }
        None => {
            let Some(left) = available() else {
                CEILING.store(usize::MAX, Ordering::Relaxed);
                return Ok(());
            };
            // The limit is based on the sum of held and available memory, so it stays constant as more is held.
            let limit = before.saturating_add(left) / 10 * 9;
            if held <= limit {
                // Allow half of the remainder before the next check.
                CEILING.store(held + (limit - held) / 2, Ordering::Relaxed);
            }
            limit
        }
    };
    if held <= limit {
        return Ok(());
    }
    Err(TensorError::MemoryLimit { bytes, held: before, limit })
}

/// Returns the number of bytes that the process can still allocate according to the host, the
/// control groups and the resource limits. `None` if unknown.
fn available() -> Option<usize> {
    let host = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| field(&text, "MemAvailable:").and_then(|kib| kib.checked_mul(1024)));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(available_in_cgroup);
    host.into_iter().chain(of_groups).chain(available_in_resource_limits()).min()
}

/// Returns the number of bytes that the process can still allocate within its resource limits (`ulimit -v`,
/// `ulimit -d`). Returns `None` if there are no limits.
fn available_in_resource_limits() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let left = |(limit, used): (&str, &str)| {
        let most = field(&limits, limit)?;
        let used = field(&status, used)?.checked_mul(1024)?;
        Some(most.saturating_sub(used))
    };
    let each = [("Max address space", "VmSize:"), ("Max data size", "VmData:")];
    each.into_iter().filter_map(left).min()
}

/// Returns the number after a keyword at the start of a line, in a text such as `/proc/meminfo`. Returns `None` if the
/// keyword or the number is missing.
fn field(text: &str, word: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the number of bytes available in a control group, given its line of `/proc/self/cgroup`: the least of the
/// group and its ancestors. Returns `None` if no limit is known.
fn available_in_cgroup(line: &str) -> Option<usize> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (root, max, now, cached) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "),
        _ if controllers.split(',').any(|c| c == "memory") => (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file ",
        ),
        _ => return None,
    };
    let whole = Path::new(root).join(path.trim_start_matches('/'));
    let groups = whole.ancestors().take_while(|group| group.starts_with(root));
    let number = |group: &Path, name: &str| -> Option<usize> {
        std::fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
    };
    let left = |group: &Path| {
        let (max, now) = (number(group, max)?, number(group, now)?);
        // Cached file pages can be evicted, so they count as available.
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let now = now.saturating_sub(field(&stat, cached).unwrap_or(0));
        Some(max.saturating_sub(now))
    };
    groups.filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_the_system() {
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|left| left > 0));
        }
        assert_eq!(field("a: 1 kB\nMemAvailable:   23 kB\n", "MemAvailable:"), Some(23));
        let limits =
            "Max data size   unlimited unlimited bytes\nMax address space   4096 unlimited bytes\n";
        assert_eq!(field(limits, "Max address space"), Some(4096));
        assert_eq!(field(limits, "Max data size"), None);
        assert_eq!(available_in_cgroup("5:devices:/"), None);
        assert_eq!(available_in_cgroup("nonsense"), None);
    }

    #[test]
    fn limits_are_parsed_with_binary_units() {
        assert_eq!(parse_bytes(" 4096 "), Some(4096));
        assert_eq!(parse_bytes("512M"), Some(512 << 20));
        assert_eq!(parse_bytes("4 GiB"), Some(4 << 30));
        assert_eq!(parse_bytes("2kb"), Some(2048));
        assert_eq!(parse_bytes("7B"), Some(7));
        for wrong in
            ["", "abc", "0", "0G", "-5", "1.5G", "4X", "4iB", "99999999999999999999", "99999999T"]
        {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_impossible_request_is_rejected_and_not_counted() {
        let before = held_bytes();
        let error = acquire(usize::MAX / 2);
        assert!(matches!(error, Err(TensorError::MemoryLimit { .. })), "{error:?}");
        assert!(held_bytes() < before + (usize::MAX / 4));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("out of memory") && text.contains("limit"), "{text}");
    }
}
